"""Warnings about producers and consumers whose group does not suit what they do."""

from collections.abc import Iterator

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from faults.process import Kill, PowerOff, Restart
from nodes.protocol.model import ConsumeFromWhere, MessageModel
from nodes.proxy.tables.topic_types import TopicMessageType


def unsuited_groups(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """All warnings about groups."""
    yield from _shared_producer_groups(scenario)
    yield from _unordered_groups(scenario)


def _shared_producer_groups(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Producers of transactions of different topics in one group: a broker asks any of them."""
    groups: dict[str, list[ProducerSpec]] = {}
    for producer in scenario.producers:
        if producer.transactions is not None:
            # A proxy knows a producer of RocketMQ 5 by its topics.
            for group in producer.topics if producer.endpoints else (producer.group,):
                groups.setdefault(group, []).append(producer)
    for group, producers in groups.items():
        topics = dict.fromkeys(topic for producer in producers for topic in producer.topics)
        if len(topics) > 1 and len(producers) > 1:
            yield HarmfulSetting(
                "transactions-of-two-applications-in-one-group",
                ", ".join(producer.name for producer in producers),
                f"they send transactions of {' and '.join(topics)} in group {group}: a broker asks any producer of the "
                "group how a transaction went, so each has to know those of all others, or rolls them back",
            )


def _unordered_groups(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Groups of RocketMQ 5 that read a FIFO topic, and that no broker knows as ordered."""
    fifo = [topic.name for topic in scenario.topics if topic.message_type is TopicMessageType.FIFO]
    for group in scenario.consumers:
        topics = [topic for topic in group.topics if topic in fifo]
        if topics and group.mode.is_of_proxies and not group.orderly and not _is_made_ordered(scenario, group):
            yield HarmfulSetting(
                "unordered-group-of-a-fifo-topic",
                group.group,
                f"{', '.join(topics)} is FIFO, and the group is not: brokers hand its messages out in order to groups "
                "with consumeMessageOrderly alone (orderly = true), so several may be under way at once",
            )


def _is_made_ordered(scenario: Scenario, group: ConsumerGroupSpec) -> bool:
    """Whether an administrator makes the group ordered."""
    if not scenario.acts:
        return False
    from emulator.acts.groups import UpdateSubGroup  # noqa: PLC0415 - few scenarios have acts

    acts = [timed.act for timed in scenario.acts if isinstance(timed.act, UpdateSubGroup)]
    return any(act.group == group.group and act.options.get("consumeMessageOrderly") == "true" for act in acts)


_AWAY = (Kill, PowerOff, Restart)
_SHORTEST_MS = 5_000
"""A group that joins sooner finds next to nothing."""


def late_groups(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """A warning for each group whose members are all away at the start of a topic that producers send to."""
    sent_to = {topic for producer in scenario.producers for topic in producer.topics}
    for group in scenario.consumers:
        if group.mode.is_of_proxies:
            continue  # A proxy has brokers begin at the end of a queue.
        where, model = group.config.consume_from_where, group.config.message_model
        if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET or model is MessageModel.BROADCASTING:
            continue
        topics = [topic for topic in group.topics if topic in sent_to]
        if topics and _joins_ms(scenario, group) >= _SHORTEST_MS:
            yield HarmfulSetting(
                "first-offset-of-a-late-group",
                group.group,
                f"{where.value} will have no effect: the group joins {', '.join(topics)} when it has messages, and a "
                "broker answers 0 to a group without an offset as long as it has the first message of a queue in "
                "memory, so the group consumes all messages from the first one on",
            )


def _joins_ms(scenario: Scenario, group: ConsumerGroupSpec) -> int:
    """When the first member comes, if it is to start later, or faults keep all away from the start on; else 0."""
    comes_ms = []
    for name in group.names:
        away = [
            timed.end_ms
            for timed in scenario.faults.faults
            if isinstance(timed.fault, _AWAY)
            and timed.fault.scope.matches(name)
            and timed.at_ms <= scenario.start_spread_ms
            and timed.end_ms is not None
        ]
        comes_ms.append(max([group.start_after_ms, *away]))
    return min(comes_ms, default=0)
