"""Warnings about groups that join a topic with messages and expect to begin at its end, or at a time."""

from collections.abc import Iterator

from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from faults.process import Kill, PowerOff, Restart
from nodes.protocol.model import ConsumeFromWhere, MessageModel

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
