"""What a fail-over does to messages that are delayed or popped, from the trace of a run."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import attrs

from emulator.spec import Scenario
from emulator.trace.schema import FAULTS, MESSAGES
from faults.plan import Phase
from nodes.beliefs import MessageEvent
from nodes.protocol.names import SCHEDULE_TOPIC
from studies.timelines.events import Instants
from support.run_rows import table_rows

_DELAYED = "reminders"
_NS_PER_S = 1_000_000_000


@attrs.frozen
class MessageOfKey:
    """A message was stored or consumed; every message has a key of its own."""

    t_ns: int
    node: str
    event: str
    group: str
    topic: str
    key: str


def special_messages(run: Path, scenario: Scenario) -> Instants:
    """When the acting slave served the dead master's messages, and how many came twice.

    Returns:
        For each group, of the messages that its producers had sent to the broker that dies: `served_GROUP`, seconds
        from the death to the first that is consumed for the first time; `gap_GROUP`, the longest time in s between two
        such; of all messages: `again_GROUP`, how often one was consumed again, and `lost_GROUP`.
    """
    columns = tuple(field.name for field in attrs.fields(MessageOfKey))
    rows = [MessageOfKey(**row) for row in table_rows(run, MESSAGES, columns)]
    died_ns = next(row["t_ns"] for row in table_rows(run, FAULTS, ("t_ns",), ("event", "==", Phase.BEGIN.value)))
    (dead,) = (timed.fault.scope.describe() for timed in scenario.faults.faults)
    reported: dict[str, tuple[float, ...]] = {}
    for group in scenario.consumers:
        for event, value in _of_group(rows, group.group, group.topics[0], dead, died_ns):
            reported[f"{event}_{group.group}"] = (value,)
    return reported


def _of_group(
    rows: Sequence[MessageOfKey], group: str, topic: str, dead: str, died_ns: int
) -> Iterator[tuple[str, float]]:
    places = (topic, SCHEDULE_TOPIC) if group == _DELAYED else (topic,)
    # The first place counts: a message that waited is stored once more when it is due.
    stored = {row.key: row.node for row in reversed(rows) if row.event == MessageEvent.STORED and row.topic in places}
    first: dict[str, int] = {}
    times = 0
    for row in rows:
        if row.event == MessageEvent.CONSUMED and row.group == group:
            first.setdefault(row.key, row.t_ns)
            times += 1
    of_dead = sorted(t_ns for key, t_ns in first.items() if stored[key] == dead)
    after = [t_ns for t_ns in of_dead if t_ns > died_ns]
    if after:
        yield "served", (after[0] - died_ns) / _NS_PER_S
    yield "gap", max(later - earlier for earlier, later in pairwise(of_dead)) / _NS_PER_S
    yield "again", float(times - len(first))
    yield "lost", float(len(stored) - len(first))
