"""Scenario files: reading TOML or plain values, and writing plain values for the manifest of a run.

`examples/half_seen_consumer.toml` shows the format. Options have RocketMQ's
camelCase names; snake_case is accepted, too.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from emulator.acts.act import TimedAct
from emulator.spec.bundled import bundled_campaigns, bundled_scenarios, campaign_advice, scenario_path
from emulator.spec.code.user_code import UserCode
from emulator.spec.model.guest_limits import GuestLimits
from emulator.spec.model.networks import Network
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import (
    BrokerSpec,
    ConsumerGroupSpec,
    ControllerSpec,
    NameserverSpec,
    Scenario,
    StatefulSetSpec,
    options_of_spec,
)
from emulator.spec.model.service_limits import ServiceLimits
from emulator.spec.reading.applications import write_application
from emulator.spec.reading.faults import read_nemeses, read_plan, write_nemeses, write_plan
from emulator.spec.reading.node_tables import (
    ScenarioKeys,
    read_accounts,
    read_address_server,
    read_brokers,
    read_consumers,
    read_controllers,
    read_domains,
    read_nameservers,
    read_preset,
    read_private_networks,
    read_producers,
    read_proxies,
    read_statefulsets,
    read_topics,
)
from emulator.spec.reading.secrets import marked
from emulator.spec.reading.toml_file import TomlFile, in_own_keys
from emulator.spec.reading.user_functions import violations_of_functions
from emulator.spec.refusals.unreliable_parts import UnreliableParts
from emulator.spec.refusals.violations import violations
from emulator.spec.tables.mistakes import EnoughMistakesError, Reading, SpecError
from emulator.spec.tables.options import write_options
from emulator.spec.tables.section import Section, keys_of, written

_ARRAYS = (
    "private_network",
    "nameserver",
    "domain",
    "controller",
    "proxy",
    "broker",
    "topic",
    "consumer",
    "producer",
    "statefulset",
    "account",
    "fault",
    "nemesis",
    "admin",
)
SCENARIO_TABLES = ("scenario", "network", "guest_limits", "service", "address_server", *_ARRAYS)
"""What a scenario file may have at its top."""
_CAMPAIGN = "campaign"
"""The table of a campaign file that no scenario has."""
_NO_CODE = UserCode()
_Also = Callable[[Scenario], Iterable[SpecError]]
_PART = re.compile(r"(?P<section>\w+)\[(?P<index>\d+)\]")


def load(path: str | Path, *, allow_code: bool = False) -> Scenario:
    """Read a scenario file, to run it.

    Args:
        path: of the file; or the name of a scenario of the package, `half-seen-consumer`.
        allow_code: whether it may run code that it names; else only below a folder that the user trusts.

    Raises:
        SpecError: the file cannot be read, is not TOML, describes an invalid scenario, or names code that is not
            allowed; with all mistakes.
    """
    file = scenario_path(path)
    return playable(_of_scenario(TomlFile.read(file)), code=UserCode.next_to(file, allow=allow_code))


def loads(text: str, name: str, *, code: UserCode = _NO_CODE) -> Scenario:
    """Read a scenario from the text of a file.

    Args:
        text: TOML.
        name: origin of the text, for messages.
        code: what it may run of the code that it names.

    Raises:
        SpecError: the text is not TOML, or describes an invalid scenario; with all mistakes and their lines.
    """
    return playable(TomlFile.of(text, name), code=code)


def read(path: str | Path, *, allow_code: bool = False) -> Scenario:
    """Read a scenario file, to look at it: code that it names and that is not allowed is no mistake, and does not run.

    Args:
        path: as of `load`.
        allow_code: as of `load`.

    Raises:
        SpecError: as of `load`.
    """
    file = scenario_path(path)
    code = UserCode.next_to(file, allow=allow_code)
    text = _of_scenario(TomlFile.read(file))
    return playable(text, code=code) if code.is_allowed else _located(text, text.tables, lambda _: (), code)


def is_campaign_file(path: str | Path) -> bool:
    """Whether a file, given by its path or by a name of the package, describes a campaign.

    Raises:
        SpecError: the file cannot be read, or is not TOML.
    """
    if not Path(path).is_file() and Path(path).name in bundled_campaigns():
        return Path(path).name not in bundled_scenarios()
    return _CAMPAIGN in TomlFile.read(scenario_path(path)).tables


def _of_scenario(file: TomlFile) -> TomlFile:
    """Refuse a campaign file in one line, since each of its tables would be an unknown key."""
    if _CAMPAIGN in file.tables:
        raise file.located(SpecError(_CAMPAIGN, campaign_advice(file.name)))
    return file


def playable(file: TomlFile, tables: Mapping[str, Any] | None = None, *, code: UserCode = _NO_CODE) -> Scenario:
    """The scenario of a file, when the functions that it names have been found.

    Args:
        file: the file.
        tables: those of the file that describe the scenario; None: all.
        code: what it may run.

    Raises:
        SpecError: they describe an invalid scenario, or a function is not allowed or cannot be imported; with all
            mistakes and lines.
    """
    return _located(file, file.tables if tables is None else tables, violations_of_functions, code)


def _located(file: TomlFile, tables: Mapping[str, Any], also: _Also, code: UserCode) -> Scenario:
    try:
        return _scenario(tables, also, code)
    except SpecError as error:
        raise file.located(error) from None


def from_dict(tables: Mapping[str, Any], name: str = "scenario", *, code: UserCode = _NO_CODE) -> Scenario:
    """Build a scenario from plain values: those of a parsed file, or of `to_dict`.

    Args:
        tables: a scenario file as the TOML parser returns it.
        name: origin of the values, for messages.
        code: what it may run, when it runs, of the code that it names.

    Raises:
        SpecError: they describe an invalid scenario; with all mistakes.
    """
    try:
        return _scenario(tables, lambda _: (), code)
    except SpecError as error:
        raise error.within(name) from None


def to_dict(scenario: Scenario) -> dict[str, Any]:
    """The canonical form of a scenario: plain values from which `from_dict` builds an equal one.

    Times are milliseconds and every node has a name; options are included only where
    they differ from the default. A reference or a mark stands for each secret, so these are not equal any more.
    """
    scenario = marked(scenario)
    return {
        "scenario": written(scenario),
        "network": written(scenario.network),
        **({"private_network": [*map(written, scenario.private_networks)]} if scenario.private_networks else {}),
        **({"guest_limits": written(scenario.guest_limits)} if scenario.guest_limits != GuestLimits() else {}),
        **({"service": written(scenario.service)} if scenario.service != ServiceLimits() else {}),
        "nameserver": [_with_options(nameserver) for nameserver in scenario.nameservers],
        **({"address_server": written(scenario.address_server)} if scenario.address_server is not None else {}),
        **({"domain": [written(domain) for domain in scenario.domains]} if scenario.domains else {}),
        **(
            {"controller": [_with_options(controller) for controller in scenario.controllers]}
            if scenario.controllers
            else {}
        ),
        **({"proxy": [_with_options(proxy) for proxy in scenario.proxies]} if scenario.proxies else {}),
        "broker": [_with_options(broker) for broker in scenario.brokers],
        "topic": [written(topic) for topic in scenario.topics],
        "consumer": [_consumers(consumer, scenario.statefulset_of(consumer.group)) for consumer in scenario.consumers],
        "producer": [{**_with_options(producer), **write_application(producer)} for producer in scenario.producers],
        **(
            {"statefulset": [_with_options(statefulset) for statefulset in scenario.statefulsets]}
            if scenario.statefulsets
            else {}
        ),
        **({"account": [written(account) for account in scenario.accounts]} if scenario.accounts else {}),
        "fault": write_plan(scenario.faults),
        **({"nemesis": write_nemeses(scenario.nemeses)} if scenario.nemeses else {}),
        **({"admin": _write_acts(scenario.acts)} if scenario.acts else {}),
    }


def _read_acts(root: Section) -> tuple[TimedAct, ...]:
    """The acts of a file; all kinds of them take long to import, and few files have any."""
    if "admin" not in root.values:
        return ()
    from emulator.spec.reading.acts import read_acts  # noqa: PLC0415

    return read_acts(root)


def _write_acts(acts: tuple[TimedAct, ...]) -> list[dict[str, Any]]:
    from emulator.spec.reading.acts import write_acts  # noqa: PLC0415

    return write_acts(acts)


def _with_options(
    spec: NameserverSpec | ControllerSpec | ProxySpec | BrokerSpec | ConsumerGroupSpec | ProducerSpec | StatefulSetSpec,
) -> dict[str, Any]:
    return {**written(spec), "options": write_options(options_of_spec(spec))}


def _consumers(group: ConsumerGroupSpec, statefulset: StatefulSetSpec | None) -> dict[str, Any]:
    kinds = {"lite_pull": group.lite_pull, "classic_pull": group.classic_pull}
    table = {**_with_options(group), **{key: True for key, is_kind in kinds.items() if is_kind}}
    if statefulset is not None:
        table.pop("names", None)  # they follow from its replicas
    return table


def _scenario(tables: Mapping[str, Any], also: _Also, code: UserCode) -> Scenario:
    """Read tables, and refuse them with all their mistakes.

    Args:
        tables: of a scenario.
        also: what else may be wrong with a scenario.
        code: what it may run.
    """
    reading = Reading()
    with suppress(EnoughMistakesError):
        root = Section.of("", tables, SCENARIO_TABLES, reading)
        parts, places = _read(root)
        parts["code"] = code
        scenario = Scenario(**parts)
        unreliable_parts = UnreliableParts.of(reading, scenario)
        place = partial(_place, places)
        others = (SpecError(place(mistake.key), mistake.problem) for mistake in also(scenario))
        for mistake in chain(violations(scenario, place), others):
            if not unreliable_parts.cover(mistake):
                reading.add(mistake)
        if not reading.mistakes:
            return scenario
    raise SpecError.of([in_own_keys(tables, mistake) for mistake in reading.mistakes])


def _place(places: Mapping[str, Sequence[str]], key: str) -> str:
    """The path in the file of something in a part of a scenario: a table may describe several brokers."""
    part = _PART.match(key)
    paths = places.get(part["section"], ()) if part else ()
    index = int(part["index"]) if part else 0
    return f"{paths[index]}{key[part.end() :]}" if part and index < len(paths) else key


def _read(root: Section) -> tuple[dict[str, Any], dict[str, Sequence[str]]]:
    """The parts of a scenario as far as they can be read: mapping field -> value; and the table of each, by section."""
    head = root.table("scenario", (*keys_of(Scenario), *keys_of(ScenarioKeys)))
    fields = head.attempt(lambda: head.fields(Scenario), None)
    preset = read_preset(head)
    broker_tables = root.attempt(lambda: read_brokers(root, preset), ())
    brokers = tuple(broker for made in broker_tables for broker in made)
    statefulsets = read_statefulsets(root)
    consumers = root.attempt(lambda: read_consumers(root, preset, statefulsets), ())
    parts: dict[str, Any] = {
        "network": root.table("network", keys_of(Network)).build(Network),
        "private_networks": read_private_networks(root),
        "guest_limits": root.table("guest_limits", keys_of(GuestLimits)).build(GuestLimits),
        "service": root.table("service", keys_of(ServiceLimits)).build(ServiceLimits),
        "nameservers": (nameservers := read_nameservers(root, preset)),
        "address_server": read_address_server(root, nameservers),
        "domains": read_domains(root),
        "controllers": read_controllers(root, preset, nameservers),
        "proxies": read_proxies(root),
        "brokers": brokers,
        "topics": read_topics(
            root, tuple(dict.fromkeys(broker.broker_name for broker in brokers if not broker.added_later))
        ),
        "consumers": consumers,
        "producers": read_producers(root),
        "statefulsets": statefulsets,
        "accounts": read_accounts(root),
        "faults": read_plan(root),
        "nemeses": read_nemeses(root),
        "acts": _read_acts(root),
    }
    places: dict[str, Sequence[str]] = {key: root.retained(key) for key in _ARRAYS}
    places["broker"] = [path for path, made in zip(root.retained("broker"), broker_tables, strict=True) for _ in made]
    if fields is None:  # as long as all faults and acts need
        instants = (timed.at_ms for timed in (*parts["faults"].faults, *parts["acts"]))
        fields = {"name": "unread", "run_for_ms": 1 + max(instants, default=0)}
    return {**fields, **parts}, places
