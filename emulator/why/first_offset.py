"""Where a new group begins: why it starts at offset 0 although it wants to start at the end, or at a time.

A consumer asks the broker for the group's offset first. If the group has none, a broker answers 0 as long as it still
has the first message of the queue in memory. Only where it answers that there is no offset does `consumeFromWhere`
count: in a queue that is empty, or whose first messages are gone.
"""

from collections.abc import Iterator

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.spec import from_dict
from emulator.trace.schema import LIFECYCLE, MESSAGES, OWNERSHIP
from emulator.why.backlog import broadcasts, subscriptions_of
from emulator.why.words import seconds
from nodes.beliefs import LifecycleEvent, MessageEvent, OwnershipEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX, ConsumeFromWhere

_OFFSETS = tuple(
    event.value for event in (MessageEvent.COMMITTED, MessageEvent.LOADED, MessageEvent.COPIED, MessageEvent.RESET)
)
"""After any of these a group has an offset."""
_RULE = "the group had no offset, and a broker answers 0 as long as it has the first message of the queue in memory"
_HISTORY_NS = 5 * 1_000_000_000
"""Messages that are younger came while the group started."""
Place = tuple[str, str, int]
"""Topic, brokerName, queue id."""
_PLACE_AND_SEQ = ("topic", "broker_name", "queue_id", "seq")


@attrs.frozen
class BegunAtZero:
    """A queue with messages in which a new group began at its first one."""

    place: Place
    t_ns: int
    older: int
    """Messages that were there already."""


@attrs.frozen
class BegunAtEnd:
    """A queue in which a member began behind messages that had come since its process started."""

    place: Place
    node: str
    started_ns: int
    t_ns: int
    missed: int


def consume_from_where(trace: TraceRows, group: str) -> ConsumeFromWhere | None:
    """What the members of a group are configured with; None: they are programs of others."""
    plan = trace.head.get("scenario")
    if not plan:
        return None
    for spec in from_dict(plan).consumers:
        if spec.group == group:
            return spec.config.consume_from_where
    return None


def begun_at_zero(trace: TraceRows, group: str, at_ns: int | None, only: Place | None) -> Iterator[BegunAtZero]:
    """The queues in which a group began at offset 0, though messages had been there for a while; or one of them."""
    acquired = trace.select(OWNERSHIP, group=group, event=OwnershipEvent.ACQUIRED.value, until_ns=at_ns)
    first: dict[Place, TraceRow] = {}
    for row in acquired:
        if only in (None, _place(row)):
            first.setdefault(_place(row), row)
    first = {place: row for place, row in first.items() if row.number("offset") == 0}
    known: dict[Place, int] = {}
    # Only offsets from before count, which are few: a run has as many as messages.
    until_ns = max((row.t_ns for row in first.values()), default=-1)
    offsets = trace.tuples(MESSAGES, _PLACE_AND_SEQ, group=group, event=_OFFSETS, until_ns=until_ns)
    for topic, broker_name, queue_id, seq in offsets:
        known.setdefault((topic, broker_name, queue_id), seq)
    for place, row in first.items():
        if known.get(place, row.seq) >= row.seq and not place[0].startswith(RETRY_TOPIC_PREFIX):
            older = _stored(trace, place, row)
            if older and older[0].t_ns <= row.t_ns - _HISTORY_NS:
                yield BegunAtZero(place, row.t_ns, len(older))


def first_offset_lines(trace: TraceRows, group: str, at_ns: int | None, only: Place | None = None) -> tuple[str, ...]:
    """Why a group began at offset 0; none if it did not, or meant to.

    Args:
        trace: of the run.
        group: the consumer group.
        at_ns: the instant; None: the end of the run.
        only: one queue; None: all of them.
    """
    wanted = consume_from_where(trace, group)
    found = list(begun_at_zero(trace, group, at_ns, only))
    if not found or wanted is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return ()
    older = sum(item.older for item in found)
    queues = "1 queue" if len(found) == 1 else f"{len(found)} queues"
    where = "it" if only is not None else f"in {queues} it"
    although = "whatever its consumeFromWhere is" if wanted is None else f"although consumeFromWhere is {wanted.value}"
    effect = "" if wanted is None else f"; so {wanted.value} has no effect"
    began = f"{where} began at offset 0 at {seconds(found[0].t_ns)}, {although}: {_RULE}{effect}"
    return (f"{began}; {_messages(older)} that were older came, too",)


def begun_at_end(trace: TraceRows, group: str, at_ns: int | None) -> Iterator[BegunAtEnd]:
    """The queues in which members of a group that broadcasts began behind messages that they might have expected."""
    if not broadcasts(subscriptions_of(trace, group, at_ns)):
        return
    acquired = trace.select(OWNERSHIP, group=group, event=OwnershipEvent.ACQUIRED.value, until_ns=at_ns)
    first: dict[tuple[str, int, Place], TraceRow] = {}
    for row in acquired:
        first.setdefault((row.text("node"), row.number("incarnation"), _place(row)), row)
    for (node, incarnation, place), row in first.items():
        started = trace.newest(
            LIFECYCLE, node=node, incarnation=incarnation, event=LifecycleEvent.STARTED.value, until_ns=row.t_ns
        )
        if started is not None:
            missed = [
                item
                for item in _stored(trace, place, row)
                if item.t_ns > started.t_ns and item.number("offset") < row.number("offset")
            ]
            if missed:
                yield BegunAtEnd(place, node, started.t_ns, row.t_ns, len(missed))


def missed_at_start_lines(
    trace: TraceRows, group: str, at_ns: int | None, only: Place | None = None
) -> tuple[str, ...]:
    """What members that broadcast have missed between the start of their process and their first pull.

    Args:
        trace: of the run.
        group: the consumer group.
        at_ns: the instant; None: the end of the run.
        only: one queue; None: all of them.
    """
    of: dict[tuple[str, int], list[BegunAtEnd]] = {}
    for item in begun_at_end(trace, group, at_ns):
        if only in (None, item.place):
            of.setdefault((item.node, item.started_ns), []).append(item)
    return tuple(
        f"{node} misses {_messages(sum(element.missed for element in found))}: its process started at "
        f"{seconds(started_ns)}, and it began at the end of the queue at {seconds(found[0].t_ns)}, "
        f"behind what had come meanwhile"
        for (node, started_ns), found in of.items()
    )


def _messages(number: int) -> str:
    return f"{number:,} {'message' if number == 1 else 'messages'}"


def _stored(trace: TraceRows, place: Place, row: TraceRow) -> list[TraceRow]:
    """The messages that a queue had when a consumer began with it."""
    topic, broker_name, queue_id = place
    event = MessageEvent.STORED.value
    return trace.select(
        MESSAGES, event=event, topic=topic, broker_name=broker_name, queue_id=queue_id, until_seq=row.seq
    )


def _place(row: TraceRow) -> Place:
    return row.text("topic"), row.text("broker_name"), row.number("queue_id")
