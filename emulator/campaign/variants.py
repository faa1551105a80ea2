"""The `[[variant]]` tables of a campaign file: what a variant changes in the scenario.

Variants are paired: each is run with the same seeds, and random streams have names, so what a variant does not
change happens in it at the same instants and with the same draws as in the scenario itself.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from emulator.acts.act import TimedAct
from emulator.campaign.campaign import BETWEEN, Variant
from emulator.spec import Network, Scenario, SpecError, from_dict
from emulator.spec.model.presets import Preset
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import (
    BROKER,
    CONSUMER,
    CONTROLLER,
    NAMESERVER,
    PRODUCER,
    PROXY,
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    StatefulSetSpec,
)
from emulator.spec.model.service_limits import ServiceLimits
from emulator.spec.reading.acts import read_acts
from emulator.spec.reading.faults import read_nemeses, read_plan
from emulator.spec.reading.user_functions import with_user_functions
from emulator.spec.refusals.violations import fitting
from emulator.spec.tables.bounds import SCENARIO_NAME
from emulator.spec.tables.mistakes import require_known
from emulator.spec.tables.options import with_options
from emulator.spec.tables.section import Section, keys_of
from faults.plan import Plan, PlanError
from nodes.fields import NAMES, TEXT, quoted

CHANGES = ("preset", "tables", "options", "network", "service", "leave_out", "fault", "nemesis", "admin")
VARIANT_KEYS = ("name", *CHANGES)
CONDITION_KEYS = tuple(key for key in VARIANT_KEYS if key not in ("preset", "tables"))
"""What is read once more would undo what the variant has changed."""
_Spec = TypeVar("_Spec", NameserverSpec, BrokerSpec, ProxySpec, ConsumerGroupSpec, ProducerSpec, StatefulSetSpec)
_Part = TypeVar("_Part", Network, ServiceLimits)
STATEFULSET = "statefulset"
ROLES = (NAMESERVER, CONTROLLER, BROKER, PROXY, CONSUMER, PRODUCER, STATEFULSET)
TOPIC = "topic"


def read_variant(section: Section, tables: Mapping[str, Any], base: Scenario) -> Variant:
    """Read one table.

    Args:
        section: the table.
        tables: of the scenario, as they are written.
        base: the scenario that they describe.

    Raises:
        SpecError: the table has a mistake, changes nothing, or makes a scenario that cannot be.
    """
    name = section.get("name", SCENARIO_NAME)
    try:
        scenario = _changed(section, tables, base)
    except _RefusedError as refused:
        raise SpecError(section.path, f"its scenario cannot be: {refused}") from None
    if scenario == base:
        subject = (
            "its changes are what the scenario says" if len(section.values) > 1 else f"expected {', '.join(CHANGES)}"
        )
        raise SpecError(section.path, f"{name} changes nothing: {subject}")
    return Variant(name, scenario)


def under_condition(section: Section, variant: Variant) -> Variant:
    """The variant in a condition.

    Args:
        section: the table of the condition, which may change nothing.
        variant: as its own table describes it.

    Raises:
        SpecError: the table has a mistake, or makes a scenario that cannot be.
    """
    name = section.get("name", SCENARIO_NAME)
    if BETWEEN in name:
        raise SpecError(section.at("name"), f"expected a name without {BETWEEN}, not {name}")
    try:
        return variant.under(name, _changed(section, {}, variant.scenario))
    except _RefusedError as refused:
        raise SpecError(section.path, f"the scenario of {variant.name} cannot be: {refused}") from None


class _RefusedError(Exception):
    """The parts of a changed scenario do not fit together."""


def _changed(section: Section, tables: Mapping[str, Any], base: Scenario) -> Scenario:
    scenario = _with_tables(section, tables, base)
    scenario = _with_options(section, scenario)
    network = _part(section, "network", scenario.network)
    scenario = attrs.evolve(scenario, network=network, service=_part(section, "service", scenario.service))
    return _with_faults(section, scenario)


def _made(make: Callable[[], Scenario]) -> Scenario:
    """A scenario, whose mistakes stand in no key of the variant."""
    try:
        return make()
    except SpecError as error:
        raise _RefusedError(f"{error.key}: {error.problem}") from None


def _with_tables(section: Section, tables: Mapping[str, Any], base: Scenario) -> Scenario:
    """The scenario with another preset, and with other keys in its tables of a role."""
    head = dict(tables.get("scenario", {}))
    if "preset" in section.values:
        head["preset"] = section.get("preset", TEXT)
        require_known(section.at("preset"), "preset", head["preset"], list(Preset))
    changed = _with_keys(section, tables)
    if not changed and "preset" not in section.values:
        return base
    # Options that the scenario sets itself take precedence over a preset, so the tables are read once more.
    return _made(lambda: from_dict({**tables, **changed, "scenario": head}, code=base.code))


def _with_keys(section: Section, tables: Mapping[str, Any]) -> dict[str, Any]:
    given = section.table("tables", (*ROLES, TOPIC))
    for role, keys in given.values.items():
        if not isinstance(keys, Mapping):
            raise SpecError(given.at(role), f"expected a table, not {quoted(keys)}")
        if role not in tables:
            raise SpecError(given.at(role), f"expected a role of the scenario, which has no {role}")
    return {role: [{**table, **keys} for table in tables[role]] for role, keys in given.values.items()}


def _with_options(section: Section, scenario: Scenario) -> Scenario:
    by_name = {
        NAMESERVER: [spec.name for spec in scenario.nameservers],
        CONTROLLER: [spec.name for spec in scenario.controllers],
        BROKER: [spec.name for spec in scenario.brokers],
        PROXY: [spec.name for spec in scenario.proxies],
        CONSUMER: [spec.group for spec in scenario.consumers],
        PRODUCER: [spec.name for spec in scenario.producers],
        STATEFULSET: [spec.name for spec in scenario.statefulsets],
    }
    known = [*ROLES, *(name for names in by_name.values() for name in names)]
    options = section.table("options", known)
    for role, names in by_name.items():
        if role in options.values and not names:
            raise SpecError(options.at(role), f"expected a role of the scenario, which has no {role}")

    def of(role: str, specs: tuple[_Spec, ...]) -> tuple[_Spec, ...]:
        return tuple(_optioned(options, role, *pair) for pair in zip(by_name[role], specs, strict=True))

    parts: dict[str, Any] = {
        "nameservers": of(NAMESERVER, scenario.nameservers),
        "controllers": of(CONTROLLER, scenario.controllers),
        "brokers": of(BROKER, scenario.brokers),
        "proxies": of(PROXY, scenario.proxies),
        "consumers": of(CONSUMER, scenario.consumers),
        "producers": of(PRODUCER, scenario.producers),
        "statefulsets": of(STATEFULSET, scenario.statefulsets),
    }
    return _made(lambda: with_user_functions(fitting(attrs.evolve(scenario, **parts))))


def _optioned(options: Section, role: str, name: str, spec: _Spec) -> _Spec:
    """A node or group with the options for its role, and then those for itself, unless it has the name of a role."""
    for key in (role,) if name in ROLES else (role, name):
        if key in options.values:
            spec = attrs.evolve(spec, config=with_options(options, key, spec.config))
    return spec


def _part(section: Section, key: str, base: _Part) -> _Part:
    """The network or the service limits, with the keys that the table has."""
    given = section.table(key, keys_of(type(base)))
    built = given.build(type(base))
    return attrs.evolve(base, **{name: getattr(built, name) for name in given.values})


def _with_faults(section: Section, scenario: Scenario) -> Scenario:
    left_out = tuple(_left_out(section, scenario))
    added = read_plan(section, len(scenario.faults.faults) + 1)
    nemeses = read_nemeses(section, len(scenario.nemeses) + 1)
    acts = _with_acts(section, scenario, left_out)
    retained = (timed for timed in scenario.faults.faults if timed.id not in left_out)
    try:
        plan = Plan((*retained, *added.faults))
    except PlanError as error:
        raise SpecError(section.at("fault"), f"{error.field}: {error.expected}; leave_out frees an id") from None
    remaining = tuple(nemesis for nemesis in scenario.nemeses if nemesis.id not in left_out)
    changed = attrs.evolve(scenario, faults=plan, nemeses=(*remaining, *nemeses), acts=acts)
    return _made(lambda: fitting(changed))


def _with_acts(section: Section, scenario: Scenario, left_out: tuple[str, ...]) -> tuple[TimedAct, ...]:
    """The acts of the administrator that stay, and those that the table adds."""
    retained = tuple(timed for timed in scenario.acts if timed.id not in left_out)
    taken = [timed.id for timed in retained]
    added = read_acts(section, len(scenario.acts) + 1)
    for index, timed in enumerate(added):
        if timed.id in taken:
            problem = f"expected an id of its own, {timed.id} is taken; leave_out frees an id"
            raise SpecError(f"{section.at('admin')}[{index}].id", problem)
    return (*retained, *added)


def _left_out(section: Section, scenario: Scenario) -> Iterator[str]:
    known = [timed.id for timed in scenario.faults.faults] + [nemesis.id for nemesis in scenario.nemeses]
    known += [timed.id for timed in scenario.acts]
    for index, fault_id in enumerate(section.get("leave_out", NAMES, ())):
        require_known(
            f"{section.at('leave_out')}[{index}]", "fault or act" if scenario.acts else "fault", fault_id, known
        )
        yield fault_id
