"""Rows of a report about messages and offsets: what broke an invariant of consumption, what a hand-over cost."""

import attrs

from emulator.analysis.rows import Queue


@attrs.frozen
class Disorder:
    """A listener had messages of an ordered queue without holding the broker's lock (V3)."""

    queue: Queue
    node: str
    start_ns: int
    end_ns: int
    messages: int
    disordered: bool
    """Somebody else held the lock meanwhile."""
    violation: bool


@attrs.frozen
class OffsetSlip:
    """A commit or a start that was not where the last commit was (V4, V5)."""

    queue: Queue
    what: str
    """`OffsetFault`."""
    t_ns: int
    who: str
    expected: int
    offset: int
    violation: bool


@attrs.frozen
class HalfView:
    """Consumers disagreed about one half of a view (V6)."""

    part: str
    """`ViewPart`."""
    subject: str
    start_ns: int
    end_ns: int
    views_max: int
    open: bool
    violation: bool


@attrs.frozen
class Loss:
    """Messages of a queue that nobody will consume (V7)."""

    queue: Queue
    first_offset: int
    last_offset: int
    lost: int
    skipped: int
    """Of these: jumped over by a new owner's start."""


@attrs.frozen
class DeadLetters:
    """Messages that a group gave up."""

    group: str
    dead_letters: int


@attrs.frozen(kw_only=True)
class Invariants:
    """V3 to V7, beside the overlaps (V1) and orphans (V2) of the report."""

    disorders: tuple[Disorder, ...]
    offset_slips: tuple[OffsetSlip, ...]
    half_views: tuple[HalfView, ...]
    losses: tuple[Loss, ...]
    dead_letters: tuple[DeadLetters, ...]
    """Not judged."""


@attrs.frozen
class Duplicates:
    """Consumptions of a queue's messages beyond the first."""

    queue: Queue
    duplicates: int


@attrs.frozen
class HandOver:
    """What a change of owner cost; see `hand_overs`."""

    queue: Queue
    acquired_ns: int
    resume_ns: int
    pause_ns: int
    overlap_ns: int
    before: str
    after: str
    predicted: int
    duplicates: int
    backlog: int
    spike_percent: int
    drain_ns: int


@attrs.frozen
class Idle:
    """Members of a group without a queue of a topic, when the run ended."""

    group: str
    topic: str
    members: int
    queues: int
    idle: int
    unavoidable: int


@attrs.frozen
class Skew:
    """The fewest and the most queues that a member has over all topics, when the run ended."""

    group: str
    topics: int
    members: int
    least: int
    most: int


@attrs.frozen(kw_only=True)
class Limits:
    """What rebalancing costs and cannot even out; measured, not judged."""

    duplicates: tuple[Duplicates, ...]
    hand_overs: tuple[HandOver, ...]
    idle: tuple[Idle, ...]
    skew: tuple[Skew, ...]
