"""What a change of members did to the queues of a topic, taken from the rows of a trace.

Seconds count from the begin of the fault, or from the new process of the member
if it has come back.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import attrs

from emulator.spec import Scenario
from emulator.trace.schema import FAULTS, LIFECYCLE, MESSAGES, OWNERSHIP
from faults.plan import Phase
from nodes.beliefs import LifecycleEvent, MessageEvent, OwnershipEvent
from studies.timelines.events import Instants
from support.run_rows import table_rows

_NS = 1_000_000_000
_ENDS = (LifecycleEvent.KILLED, LifecycleEvent.STOPPED)
QueueKey = tuple[str, int]


@attrs.frozen
class HoldRow:
    """A member gained or lost a queue; without queue: its process ended."""

    seq: int
    t_ns: int
    node: str
    event: str
    queue: QueueKey | None


@attrs.frozen
class ConsumedRow:
    """A listener has had a message."""

    t_ns: int
    queue: QueueKey
    offset: int


@attrs.frozen(kw_only=True)
class MemberChange:
    """The rows of one run that matter here, each kind in order."""

    holds: tuple[HoldRow, ...]
    consumed: tuple[ConsumedRow, ...]
    member: str
    """Who went away."""
    begin_ns: int
    end_ns: int
    """The last thing that happened."""


@attrs.frozen
class OwnerSpan:
    """How many owners a queue had from when to when."""

    start_ns: int
    end_ns: int
    owners: int


def read_hand_over(run: Path, scenario: Scenario) -> MemberChange:
    """Read what a run of one topic and one fault has left."""
    topic = scenario.topics[0].name
    lives = list(table_rows(run, LIFECYCLE, ("seq", "t_ns", "node", "event")))
    fault = next(table_rows(run, FAULTS, ("t_ns", "subject", "parameters"), ("event", "==", Phase.BEGIN.value)))
    begin_ns = fault["t_ns"]
    member = scenario.faults.faults[0].fault.scope.describe()
    later = [(r["event"], r["t_ns"]) for r in lives if r["node"] == member and r["t_ns"] > begin_ns]
    # What has not come back by itself is started when the run ends, and never ready.
    back = [t_ns for event, t_ns in later if event == LifecycleEvent.STARTED] if _is_ready(later) else []
    holds = [
        HoldRow(r["seq"], r["t_ns"], r["node"], r["event"], (r["broker_name"], r["queue_id"]))
        for r in table_rows(
            run,
            OWNERSHIP,
            ("seq", "t_ns", "node", "event", "broker_name", "queue_id"),
            ("topic", "==", topic),
            ("event", "in", (OwnershipEvent.ACQUIRED.value, OwnershipEvent.DROPPED.value)),
        )
    ]
    holds += [HoldRow(r["seq"], r["t_ns"], r["node"], r["event"], None) for r in lives if r["event"] in _ENDS]
    consumed = table_rows(
        run,
        MESSAGES,
        ("t_ns", "broker_name", "queue_id", "offset"),
        ("event", "==", MessageEvent.CONSUMED.value),
        ("topic", "==", topic),
    )
    return MemberChange(
        holds=tuple(sorted(holds, key=lambda row: row.seq)),
        consumed=tuple(ConsumedRow(r["t_ns"], (r["broker_name"], r["queue_id"]), r["offset"]) for r in consumed),
        member=member,
        begin_ns=back[0] if back else begin_ns,
        end_ns=lives[-1]["t_ns"],
    )


def _is_ready(later: Sequence[tuple[str, int]]) -> bool:
    return any(event == LifecycleEvent.READY for event, _ in later)


def hand_over(story: MemberChange) -> Instants:
    """All figures of a run: seconds, and how many messages were consumed twice."""
    spans = [
        span
        for of_queue in owner_spans(story.holds, story.end_ns).values()
        for span in of_queue
        if span.end_ns > story.begin_ns
    ]
    found = {
        "owned_once": _latest(story, [span for span in spans if span.owners != 1]),
        "no_owner": _longest(story, [span for span in spans if span.owners == 0]),
        "two_owners": _longest(story, [span for span in spans if span.owners > 1]),
        "pause": _longest_pause(story),
        "consumed_twice": float(_consumed_twice(story)),
    }
    taken_over = _taken_over(story)
    return {event: (round(value, 3),) for event, value in (taken_over | found).items()}


def _owners(holds: Sequence[HoldRow]) -> Iterator[tuple[int, dict[QueueKey, list[str]]]]:
    """After each instant: its end, and queue -> owners."""
    held: dict[QueueKey, list[str]] = {}
    for t_ns, rows in groupby(holds, key=lambda row: row.t_ns):
        for row in rows:
            if row.queue is None:
                held = {queue: [name for name in names if name != row.node] for queue, names in held.items()}
            elif row.event == OwnershipEvent.ACQUIRED:
                held.setdefault(row.queue, []).append(row.node)
            else:
                held[row.queue] = [name for name in held.get(row.queue, []) if name != row.node]
        yield t_ns, held


def owner_spans(holds: Sequence[HoldRow], end_ns: int) -> dict[QueueKey, list[OwnerSpan]]:
    """QueueKey -> how many owners it had from its first one to the end of the run."""
    spans: dict[QueueKey, list[OwnerSpan]] = {}
    since: dict[QueueKey, tuple[int, int]] = {}
    for t_ns, held in _owners(holds):
        for queue, names in held.items():
            start_ns, owners = since.get(queue, (t_ns, -1))
            if len(names) != owners:
                if owners >= 0:
                    spans.setdefault(queue, []).append(OwnerSpan(start_ns, t_ns, owners))
                since[queue] = (t_ns, len(names))
    for queue, (start_ns, owners) in since.items():
        spans.setdefault(queue, []).append(OwnerSpan(start_ns, end_ns, owners))
    return spans


def _seconds(story: MemberChange, t_ns: int) -> float:
    return (t_ns - story.begin_ns) / _NS


def _latest(story: MemberChange, spans: Sequence[OwnerSpan]) -> float:
    return max((_seconds(story, span.end_ns) for span in spans), default=0.0)


def _longest(story: MemberChange, spans: Sequence[OwnerSpan]) -> float:
    return max(((span.end_ns - max(span.start_ns, story.begin_ns)) / _NS for span in spans), default=0.0)


def _longest_pause(story: MemberChange) -> float:
    """The longest time for which a queue gave no message to any listener."""
    last: dict[QueueKey, int] = {}
    longest_ns = 0
    for row in story.consumed:
        if row.t_ns > story.begin_ns:
            longest_ns = max(longest_ns, row.t_ns - last.get(row.queue, row.t_ns))
        last[row.queue] = row.t_ns
    return longest_ns / _NS


def _consumed_twice(story: MemberChange) -> int:
    before: dict[tuple[QueueKey, int], None] = {}
    twice: dict[tuple[QueueKey, int], None] = {}
    for row in story.consumed:
        message = (row.queue, row.offset)
        if row.t_ns > story.begin_ns and message in before:
            twice[message] = None
        before[message] = None
    return len(twice)


def _taken_over(story: MemberChange) -> dict[str, float]:
    """When others owned all queues of a member that never let go of them; nothing where it let go first."""
    mine: list[QueueKey] | None = None
    for t_ns, held in _owners(story.holds):
        if t_ns <= story.begin_ns:
            mine = [queue for queue, names in held.items() if story.member in names]
        elif mine and all(story.member in held[queue] for queue in mine):
            if all(len(held[queue]) > 1 for queue in mine):
                return {"taken_over": _seconds(story, t_ns)}
        else:
            break
    return {}
