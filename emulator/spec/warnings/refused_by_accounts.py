"""Emulated nodes that brokers with `aclEnable` will refuse, as far as a scenario shows it."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import attrs

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from nodes.broker.tables.auth.errors import AclError, AuthError
from nodes.broker.tables.clients.plain_access import AccessRequest, PlainPermissionManager
from nodes.config.client import ClientConfig
from nodes.protocol.acl_signature import signed
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.protocol.names import INNER_PRODUCER_GROUP, TRACE_TOPIC
from nodes.secret import Secret

_Client = TypeVar("_Client", ConsumerGroupSpec, ProducerSpec)
_UNKNOWN = "not known yet"
Validate = Callable[[str, int, Mapping[str, str], int], None]


def refused_by_accounts(scenario: Scenario, ips: Mapping[str, str]) -> Iterator[HarmfulSetting]:
    """Warnings about clients and slaves that brokers with `aclEnable` refuse.

    Args:
        ips: mapping node -> IP address.
    """
    strict = [broker for broker in scenario.brokers if broker.config.acl_enable and broker.config.knows_plain_acl]
    if not strict:
        return
    scenario = with_known_secrets(scenario)
    access = PlainPermissionManager(scenario.accounts, scenario.global_white_remote_addresses)

    def validate(ip: str, code: int, fields: Mapping[str, str], _at_ms: int) -> None:
        access.validate(AccessRequest(ip, code, fields))

    by = f"{', '.join(broker.name for broker in strict)} with aclEnable"
    yield from refused_clients(scenario, ips, validate, by)
    for broker in strict:
        peers = [
            item.name
            for item in scenario.brokers
            if item.broker_name == broker.broker_name and item.name != broker.name
        ]
        outside = [name for name in peers if not access.lets_in(ips[name])]
        if outside:
            white = ", ".join(ips[name] for name in outside)
            yield HarmfulSetting(
                "brokers-refused-by-accounts",
                ", ".join(outside),
                f"brokers sign nothing: {broker.name} with aclEnable gives them no topics, groups and offsets as its "
                f"slaves, no locks and messages as its peers; add them to global_white_remote_addresses ({white})",
            )


def with_known_secrets(scenario: Scenario) -> Scenario:
    """The scenario in which each secret has a value; what is not known yet counts as the key of the account."""
    keys = {
        account.access_key: account.secret_key if account.secret_key.is_known else Secret(_UNKNOWN)
        for account in scenario.accounts
    }
    unknown = [account.access_key for account in scenario.accounts if not account.secret_key.is_known]

    def known(spec: _Client) -> _Client:
        config = spec.config
        if not config.access_key or (config.secret_key.is_known and config.access_key not in unknown):
            return spec
        key = keys.get(config.access_key, Secret(_UNKNOWN))
        return attrs.evolve(spec, config=attrs.evolve(config, secret_key=key))

    return attrs.evolve(
        scenario,
        accounts=tuple(attrs.evolve(account, secret_key=keys[account.access_key]) for account in scenario.accounts),
        consumers=tuple(map(known, scenario.consumers)),
        producers=tuple(map(known, scenario.producers)),
    )


def refused_clients(
    scenario: Scenario, ips: Mapping[str, str], validate: Validate, by: str
) -> Iterator[HarmfulSetting]:
    """Warnings about clients whose requests are refused: pulls, sends, what they send back, and their traces.

    Args:
        scenario: with a value for each secret.
        ips: mapping node -> IP address.
        validate: raises an error for a request that is refused: of an address, its code, its header, its instant in ms.
        by: the brokers that refuse it.
    """
    for group in scenario.consumers:
        if group.config5 is not None:
            continue  # it sends brokers nothing
        requests = [
            *((RequestCode.PULL_MESSAGE, {"topic": topic, "consumerGroup": group.group}) for topic in group.topics),
            *_sent_back(group),
            *_traced(group.config, group.group),
        ]
        for code, fields in requests:
            yield from _refused(validate, group.names, ips, code, fields, group.config, group.start_after_ms, by)
    for producer in scenario.producers:
        if producer.config5 is not None:
            continue
        sends = [(RequestCode.SEND_MESSAGE_V2, {"a": producer.group, "b": topic}) for topic in producer.topics]
        names = (producer.name,)
        for code, fields in (*sends, *_traced(producer.config, producer.group)):
            yield from _refused(validate, names, ips, code, fields, producer.config, producer.start_after_ms, by)


def _sent_back(group: ConsumerGroupSpec) -> Iterator[tuple[RequestCode, Mapping[str, str]]]:
    """What consumers send whose listeners fail: in order by their inner producer, else to the broker of the message."""
    if not group.fail_times or not group.has_listener:
        return
    if group.config.consume_orderly:
        fields = {"a": INNER_PRODUCER_GROUP, "b": f"{RETRY_TOPIC_PREFIX}{group.group}"}
        yield RequestCode.SEND_MESSAGE_V2, fields
    else:
        yield RequestCode.CONSUMER_SEND_MSG_BACK, {"group": group.group}


def _traced(config: ClientConfig, group: str) -> Iterator[tuple[RequestCode, Mapping[str, str]]]:
    """What a client sends about its messages."""
    if config.enable_trace:
        yield RequestCode.SEND_MESSAGE_V2, {"a": group, "b": config.trace_topic or TRACE_TOPIC}


def _refused(
    validate: Validate,
    names: tuple[str, ...],
    ips: Mapping[str, str],
    code: RequestCode,
    fields: Mapping[str, str],
    config: ClientConfig,
    at_ms: int,
    by: str,
) -> Iterator[HarmfulSetting]:
    """The warning if requests of this kind are refused."""
    if config.access_key:
        fields = signed(fields, None, access_key=config.access_key, secret_key=config.secret_key.reveal())
    why: dict[str, list[str]] = {}
    for name in names:
        try:
            validate(ips[name], int(code), fields, at_ms)
        except (AclError, AuthError) as error:
            why.setdefault(str(error), []).append(name)
    for problem, refused in why.items():
        yield HarmfulSetting(
            "clients-refused-by-accounts", ", ".join(refused), f"{by} refuse their {code.name}: {problem}"
        )
