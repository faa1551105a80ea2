"""What happened to each kind of message in one run, and which trap explains each harm."""

from collections import Counter
from enum import StrEnum
from itertools import pairwise

import attrs

from nodes.broker.tables.pop.check_point import CK_TAG, PopOutcome
from studies.special_messages.fates import Fate, Fates, Kind

_REACHED = (PopOutcome.STORED, PopOutcome.REMOTE)


class Impact(StrEnum):
    """What should not happen to a message."""

    LOST = "lost"
    TWICE = "twice"


class Trap(StrEnum):
    """What explains a harm; the rows that show it stand behind each."""

    P20 = "P20: an acting slave can store neither the copy nor a new check point"
    """REVIVED refused or remote, and RE_PUT refused."""
    P21 = "P21: three puts of a wheel fail, and it gives up"
    """DROPPED, of the message or of its check point."""
    P22 = "P22: check point and acknowledgement leave the wheel for different queues"
    """REVIVED after ACKED."""
    P26 = "P26: the broker that revives does not know topic or group"
    """LOST, unknown."""
    P27 = "P27: master and slave both revive"
    """REVIVED by two members of the group."""
    P28 = "P28: the message is not in its queue any more"
    """LOST, gone."""
    P29 = "P29: a wheel has the message twice"
    """DELIVERED twice since the master died."""
    CHECK_POINT_AGE = "3 s: the slave's copy of the timer's progress is old"
    """DELIVERED by the master and once more by another broker."""
    OFFSET_SYNC = "60 s: the slave's copy of the offsets is old"
    """DELIVERED, or POPPED, at the master and once more at another broker."""
    OFFSET_FLUSH = "10 s: a broker that was killed has lost the offsets of levels since it wrote them last"
    """DELIVERED twice by one broker."""
    HALF_TWICE = "60 s: the slave's copy of the progress in half messages is old, so that some escape that have ended"
    """Two brokers stored the commit."""
    REQUESTED_TWICE = "60 s: the broker's progress in half messages is an old copy, so it asks again"
    """One broker stored the commit twice: its producer answered two questions."""
    ACK_LATE = "no acknowledgement reached a broker: the client's went to a dead master, and no one repeats it"
    """REVIVED although it was consumed; no ACKED."""
    HANDED_OVER = "a queue changed hands before its offset was committed"
    """Stored for consumers once, and CONSUMED by two of them."""
    CHECK_POINT_LOST = "P2: handed out without a check point that anybody stored"
    """POPPED, and no row behind it."""
    OTHER = "other"


@attrs.frozen
class KindReported:
    """What happened to the messages of one kind in one run."""

    kind: Kind
    sent: int
    delivered: int
    """At least once."""
    lost: int
    """Not until the end of the run."""
    twice: int
    """Twice or more often."""
    late_ms: int
    """Longest time from the instant at which a message was due to its first delivery."""
    gap_ms: int
    """Longest time without a delivery, from the first instant at which a message was due to the last delivery."""
    traps: dict[str, int]
    """Harm and trap, with `: ` between -> messages."""


def reported(fates: Fates) -> tuple[KindReported, ...]:
    """What happened to all messages of a run, by kind."""
    by_kind: dict[Kind, list[Fate]] = {}
    for fate in fates.of.values():
        by_kind.setdefault(fate.kind, []).append(fate)
    return tuple(_reported(kind, by_kind[kind]) for kind in Kind if kind in by_kind)


def _reported(kind: Kind, fates: list[Fate]) -> KindReported:
    delivered = [fate for fate in fates if fate.consumed_ns]
    traps: Counter[str] = Counter()
    for fate in fates:
        if not fate.consumed_ns:
            traps[f"{Impact.LOST}: {why_lost(fate)}"] += 1
        elif len(fate.consumed_ns) > 1:
            traps[f"{Impact.TWICE}: {why_twice(fate)}"] += 1
    instants = sorted([min(fate.due_ns for fate in fates), *(at for fate in delivered for at in fate.consumed_ns)])
    gaps_ns = [later - earlier for earlier, later in pairwise(instants)]
    return KindReported(
        kind=kind,
        sent=len(fates),
        delivered=len(delivered),
        lost=len(fates) - len(delivered),
        twice=sum(len(fate.consumed_ns) > 1 for fate in delivered),
        late_ms=max((fate.consumed_ns[0] - fate.due_ns for fate in delivered), default=0) // 1_000_000,
        gap_ms=max(gaps_ns, default=0) // 1_000_000,
        traps=dict(sorted(traps.items())),
    )


def why_lost(fate: Fate) -> Trap:
    """The trap of a message that no one has consumed."""
    if fate.kind is not Kind.POP:
        return Trap.P21 if fate.dropped else Trap.OTHER
    if PopOutcome.REFUSED in fate.re_put:
        return Trap.P20
    if PopOutcome.UNKNOWN in fate.lost:
        return Trap.P26
    if PopOutcome.GONE in fate.lost:
        return Trap.P28
    if CK_TAG in fate.records_dropped:
        return Trap.P21
    return Trap.CHECK_POINT_LOST if fate.popped else Trap.OTHER


def why_twice(fate: Fate) -> Trap:
    """The trap of a message that was consumed more than once."""
    match fate.kind:
        case Kind.DELAYED | Kind.TIMER:
            return _released_twice(fate)
        case Kind.TRANSACTIONAL:
            if len(fate.released) < 2:
                return _consumed_twice(fate)
            return Trap.HALF_TWICE if len({node for _, node in fate.released}) > 1 else Trap.REQUESTED_TWICE
        case Kind.POP:
            return _popped_twice(fate)


def _consumed_twice(fate: Fate) -> Trap:
    return Trap.HANDED_OVER if len(dict.fromkeys(fate.consumers)) > 1 else Trap.OTHER


def _released_twice(fate: Fate) -> Trap:
    if len(fate.released) < 2:
        return _consumed_twice(fate)
    if len({node for _, node in fate.released}) == 1:
        return Trap.P29 if fate.kind is Kind.TIMER else Trap.OFFSET_FLUSH
    return Trap.CHECK_POINT_AGE if fate.kind is Kind.TIMER else Trap.OFFSET_SYNC


def _popped_twice(fate: Fate) -> Trap:
    revivers = {node for node, outcome in fate.revived if outcome in _REACHED}
    places = [place for place, _ in fate.popped]
    if len(places) > len(dict.fromkeys(places)):
        return Trap.OFFSET_SYNC
    if fate.revived_after_ack:
        return Trap.P22
    if len(revivers) > 1:
        return Trap.P27
    return Trap.ACK_LATE if revivers else Trap.OTHER
