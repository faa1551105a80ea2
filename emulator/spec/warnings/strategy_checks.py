"""Warnings about allocation strategies: settings that nothing in RocketMQ refuses, and trials of the user's own."""

from collections.abc import Iterator, Mapping
from itertools import groupby, product
from types import MappingProxyType

from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from nodes.allocation.by_user import foreign_queues
from nodes.allocation.strategies import STRATEGIES_OF_BROKERS, strategy_name, strategy_of
from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.config import AllocateStrategy, ConsumerConfig, option_name, options
from nodes.config.user_functions import named_functions
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel, MessageQueue

_READ_BY: Mapping[str, AllocateStrategy] = MappingProxyType(
    {
        "message_queue_list": AllocateStrategy.CONFIG,
        "consumeridcs": AllocateStrategy.MACHINE_ROOM,
        "machine_rooms": AllocateStrategy.MACHINE_ROOM_NEARBY,
        "inner_allocate_strategy": AllocateStrategy.MACHINE_ROOM_NEARBY,
        "virtual_node_cnt": AllocateStrategy.CONSISTENT_HASH,
        "hash_function": AllocateStrategy.CONSISTENT_HASH,
    }
)
"""Option -> the strategy that reads it."""
_QUEUES, _MEMBERS = (1, 2, 3, 5, 8), (1, 2, 3, 5)
"""Sizes of trials: fewer queues than members, as many, and more."""


def harmful_strategies(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """All warnings about the strategies of a scenario."""
    for consumers in scenario.consumers:
        yield from _unknown_to_brokers(consumers)
        yield from _parameters_of_others(consumers)
        if scenario.code.is_allowed:
            yield from _tried(consumers, scenario)
    by_group: dict[str, list[ConsumerGroupSpec]] = {}
    for consumers in scenario.consumers:
        by_group.setdefault(consumers.group, []).append(consumers)
    for group, tables in by_group.items():
        yield from _two_strategies(group, tables)
        yield from _two_dividers(group, tables)


def _unknown_to_brokers(consumers: ConsumerGroupSpec) -> Iterator[HarmfulSetting]:
    name = strategy_name(consumers.config)
    if _asks_brokers(consumers.config) and name not in STRATEGIES_OF_BROKERS:
        yield HarmfulSetting(
            "strategy-unknown-to-brokers",
            consumers.group,
            f"clientRebalance = false lets brokers assign the queues, and they know "
            f"{' and '.join(STRATEGIES_OF_BROKERS)}, not {name}: they answer nothing, so members keep what they have, "
            "which is no queue from the start, and ask again every second",
        )


def _asks_brokers(config: ConsumerConfig) -> bool:
    """Whether any broker of the topic assigns the queues: ordered and broadcasting consumers never ask."""
    allocates_itself = config.consume_orderly or config.message_model is MessageModel.BROADCASTING
    return not (config.client_rebalance or config.pinned_assigner or allocates_itself)


def _parameters_of_others(consumers: ConsumerGroupSpec) -> Iterator[HarmfulSetting]:
    config = consumers.config
    in_use: list[str] = [config.allocate_message_queue_strategy]
    if config.allocate_message_queue_strategy is AllocateStrategy.MACHINE_ROOM_NEARBY:
        in_use.append(config.inner_allocate_strategy)
    shipped = {field.name: field.default for field in options(type(config)).values()}
    for field, reader in _READ_BY.items():
        if getattr(config, field) != shipped[field] and reader not in in_use:
            yield HarmfulSetting(
                "parameter-of-another-strategy",
                consumers.group,
                f"only {reader} reads {option_name(field)}, and the group allocates by {strategy_name(config)}: it "
                "changes nothing",
            )


def _two_strategies(group: str, tables: list[ConsumerGroupSpec]) -> Iterator[HarmfulSetting]:
    allocating = [table for table in tables if table.config.message_model is MessageModel.CLUSTERING]
    rules = {_rule(table.config): _who(table) for table in reversed(allocating)}
    if len(rules) > 1:
        text = " but ".join(f"{node} by {name}" for (name, *_), node in reversed(rules.items()))
        yield HarmfulSetting(
            "two-strategies-in-one-group",
            group,
            f"{text}: each member takes what its own strategy gives it and no one compares them, so some queues have "
            "two owners and their messages are consumed twice, others have none and theirs are not consumed",
        )


def _two_dividers(group: str, tables: list[ConsumerGroupSpec]) -> Iterator[HarmfulSetting]:
    allocating = [table for table in tables if table.config.message_model is MessageModel.CLUSTERING]
    identity = {_allocator(table.config): _who(table) for table in reversed(allocating)}
    if len(identity) > 1:
        text = " but ".join(f"{allocator} for {members}" for allocator, members in reversed(identity.items()))
        yield HarmfulSetting(
            "two-dividers-in-one-group",
            group,
            f"{text}: no one compares what they give, so wherever it differs queues have two owners or none",
        )


def _allocator(config: ConsumerConfig) -> str:
    """Who allocates the queues: ordered consumers ask no broker but the assigner, lite pull consumers none."""
    if config.client_rebalance or (config.consume_orderly and not config.pinned_assigner):
        return "each member allocates"
    return "the assigner allocates" if config.pinned_assigner else "any broker allocates"


def _rule(config: ConsumerConfig) -> tuple[object, ...]:
    """What has to be equal in all members; with CONFIG they are meant to differ."""
    name = strategy_name(config)
    if config.allocate_message_queue_strategy is AllocateStrategy.CONFIG:
        return (name,)
    read = [field for field, reader in _READ_BY.items() if str(reader) in name.split("-")]
    return (name, *(getattr(config, field) for field in read))


def _who(consumers: ConsumerGroupSpec) -> str:
    return ", ".join(consumers.names) or f"the processes of {consumers.share_process_with}"


def _tried(consumers: ConsumerGroupSpec, scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Trials of a function of the user's own; one warning of each kind, with the first input that shows it."""
    config = consumers.config
    if not any(named_functions(config)):
        return
    allocate = strategy_of(config)
    found: dict[str, str] = {}
    for mq_all, cids in _inputs(consumers, scenario):
        for name, subject in _faults(allocate, consumers.group, mq_all, cids):
            found.setdefault(name, f"{subject}, given {_counted(mq_all, 'queue')} and {_counted(cids, 'member')}")
    for name, subject in found.items():
        yield HarmfulSetting(name, consumers.group, f"{strategy_name(config)} {subject}: {_CONSEQUENCES[name]}")


def _inputs(
    consumers: ConsumerGroupSpec, scenario: Scenario
) -> Iterator[tuple[tuple[MessageQueue, ...], tuple[str, ...]]]:
    """Queues and members as in the scenario: its topics and brokers, ids as clients have them."""
    topic = next(topic for topic in scenario.topics if topic.name == consumers.topics[0])
    brokers = sorted(topic.brokers)
    for count, members in product(_QUEUES, _MEMBERS):
        places = (divmod(number, len(brokers)) for number in range(count))
        queues = sorted(MessageQueue(topic.name, brokers[broker], queue_id) for queue_id, broker in places)
        yield tuple(queues), _client_ids(members)
    # Push consumers call it for their retry topic, too.
    yield (MessageQueue(RETRY_TOPIC_PREFIX + consumers.group, brokers[0], 0),), _client_ids(2)


def _client_ids(members: int) -> tuple[str, ...]:
    return tuple(f"127.0.0.{number}@{100 + number}#{number}000000000" for number in range(1, members + 1))


def _faults(
    allocate: AllocateMessageQueueStrategy, group: str, mq_all: tuple[MessageQueue, ...], cids: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Name and description of what is wrong with one allocation."""
    try:
        shares = [allocate(group, cid, mq_all, cids) for cid in cids]
        again = [allocate(group, cid, mq_all, cids) for cid in cids]
    except AllocationError as error:
        yield "strategy-throws", f"failed with {error}"
        return
    if shares != again:
        yield "strategy-is-not-steady", "gave other queues when it was asked a second time"
    given = sorted(queue for mine in shares for queue in mine)
    for queue in foreign_queues(given, mq_all):
        yield "strategy-gives-foreign-queues", f"gave {queue}, which was not there to be allocated"
    for queue, times in ((queue, len(list(same))) for queue, same in groupby(given)):
        if times > 1:
            yield "strategy-gives-a-queue-twice", f"gave {queue} {times} times"
    for queue in mq_all:
        if queue not in given:
            yield "strategy-forgets-a-queue", f"gave {queue} to no one"


def _counted(items: tuple[object, ...], noun: str) -> str:
    return f"{len(items)} {noun}{'s' if len(items) > 1 else ''}"


_CONSEQUENCES: Mapping[str, str] = MappingProxyType(
    {
        "strategy-throws": "a member keeps the queues that it has, which is none at the start, and tries again every "
        "second",
        "strategy-is-not-steady": "members do not agree on the owner of a queue, and queues move without need",
        "strategy-gives-foreign-queues": "RocketMQ takes them as they are; if they belong to another topic or exist "
        "nowhere, the member rebalances every second for ever",
        "strategy-gives-a-queue-twice": "RocketMQ takes it as it is; two owners consume the messages of a queue twice",
        "strategy-forgets-a-queue": "no consumer consumes its messages",
    }
)
