"""Warnings about producers and consumers whose group does not suit what they do."""

from collections.abc import Iterator

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
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
