"""How long queues were without an owner, reported by the rows of their owners alone."""

from collections.abc import Iterator

from emulator.spec.model.scenario import Scenario
from emulator.testing import Trace
from nodes.beliefs import PROCESS_ENDS

Queue = tuple[str, str, int]


def unowned_ms(trace: Trace, scenario: Scenario, *, after_ms: float = 0) -> float:
    """Milliseconds without an owner, summed over the queues of all topics but retry topics."""
    return sum(end - start for _, start, end in unowned(trace, scenario, after_ms=after_ms))


def unowned(trace: Trace, scenario: Scenario, *, after_ms: float = 0) -> Iterator[tuple[Queue, float, float]]:
    """(queue, from, until) of each interval without an owner, also of queues that no one sees."""
    topics = [topic for topic in scenario.topics if not topic.name.startswith("%")]
    for queue in [
        (item.name, broker, number) for item in topics for broker in item.brokers for number in range(item.queues)
    ]:
        since: float | None = after_ms
        for at_ms, owners in _owners(trace, queue):
            if not owners and since is None:
                since = at_ms
            elif owners and since is not None:
                if at_ms > max(since, after_ms):
                    yield queue, max(since, after_ms), at_ms
                since = None
        if since is not None:
            yield queue, max(since, after_ms), scenario.run_for_ms


def _owners(trace: Trace, queue: Queue) -> Iterator[tuple[float, list[str]]]:
    """(instant, owners from then on) of each change."""
    owners: list[str] = []
    topic, broker_name, queue_id = queue
    held = trace.select("ownership", topic=topic, broker_name=broker_name, queue_id=queue_id)
    ends = [row for row in trace.select("lifecycle", role="consumer") if row.event in PROCESS_ENDS]
    for row in sorted([*held, *ends], key=lambda row: row.seq):
        if row.event == "acquired":
            owners = [*owners, row.node]
        elif row.event in ("dropped", *PROCESS_ENDS):
            owners = [node for node in owners if node != row.node]
        yield row.at_ms, owners
