"""Warnings about queues in which messages are stored, and that no consumer reads."""

from collections.abc import Iterator

from emulator.acts.act import Act
from emulator.acts.groups import UpdateSubGroup
from emulator.acts.topics import UpdateTopic
from emulator.spec.model.scenario import Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from nodes.protocol.names import retry_topic

_RETRY_QUEUES = "retryQueueNums"


def unread_queues(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """All warnings about queues that nobody reads; an act that is mended by a later one is none."""
    timed = sorted(scenario.acts, key=lambda item: item.at_ms)
    for place, item in enumerate(timed):
        later = [other.act for other in timed[place + 1 :]]
        if isinstance(item.act, UpdateTopic):
            yield from _more_write_queues(item.act, later)
        elif isinstance(item.act, UpdateSubGroup):
            yield from _more_retry_queues(scenario, item.act, item.at_ms, later)


def _more_write_queues(act: UpdateTopic, later: list[Act]) -> Iterator[HarmfulSetting]:
    read, write = _read_queues(act), act.queues if act.write is None else act.write
    if write > read and not _is_read_later(act.topic, write, later):
        yield HarmfulSetting(
            "more-write-queues-than-read-queues",
            act.topic,
            f"producers send to {write} queues at each broker and consumers read {read} of them: what is stored in the "
            "others waits until their number is raised, too",
        )


def _more_retry_queues(
    scenario: Scenario, act: UpdateSubGroup, at_ms: int, later: list[Act]
) -> Iterator[HarmfulSetting]:
    """A group has more retry queues than its retry topic, which its first heartbeat creates, and nothing grows."""
    topic, wanted = retry_topic(act.group), int(act.options.get(_RETRY_QUEUES, "1"))
    starts = [group.start_after_ms for group in scenario.consumers if group.group == act.group]
    declared = next((item.queues for item in scenario.topics if item.name == topic), 1)
    has_joined = any(start_ms < at_ms for start_ms in starts)
    if has_joined and wanted > declared and not _is_read_later(topic, wanted, later):
        yield HarmfulSetting(
            "more-retry-queues-than-its-topic-has",
            act.group,
            f"brokers store what is sent back in one of {wanted} queues ({_RETRY_QUEUES}), and {topic} keeps the "
            f"{declared} that it has: what is stored in the others is never consumed, until update-topic gives it as "
            "many",
        )


def _is_read_later(topic: str, queues: int, later: list[Act]) -> bool:
    return any(isinstance(act, UpdateTopic) and act.topic == topic and _read_queues(act) >= queues for act in later)


def _read_queues(act: UpdateTopic) -> int:
    return act.queues if act.read is None else act.read
