"""The findings of an analysis as frozen values: the report, and one class per table of it.

Times are emulated nanoseconds since the run began.
"""

import json
from enum import StrEnum

import attrs

from emulator.state.owners import GroupQueue


@attrs.frozen
class Camp:
    """Nodes that held the same value."""

    value_hash: str
    value: str
    """JSON."""
    nodes: tuple[str, ...]


@attrs.frozen
class Divergence:
    """Nodes of one role disagreed about a subject."""

    kind: str
    role: str
    subject: str
    start_ns: int
    end_ns: int
    views_max: int
    open: bool
    camps: tuple[Camp, ...]
    """The camps of the constellation that lasted longest."""
    camps_ns: int
    violation: bool


@attrs.frozen
class Overlap:
    """A queue had two or more owners."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    owners_max: int
    owners: tuple[str, ...]
    open: bool
    violation: bool


@attrs.frozen
class Orphan:
    """A queue had no owner although its group had a live member."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    open: bool
    violation: bool


@attrs.frozen
class Agreement:
    """Time that a layer took to agree after a disturbance."""

    layer: str
    t_ns: int
    next_ns: int
    what: tuple[str, ...]
    took_ns: int
    open: bool
    """Whether it had not agreed by the next disturbance or the end of the run."""


@attrs.frozen
class RunPhase:
    """Divergence between one disturbance and the next, integrated over subjects and queues."""

    start_ns: int
    end_ns: int
    what: tuple[str, ...]
    view_ns: int
    overlap_ns: int
    orphan_ns: int


@attrs.frozen
class Hold:
    """A consumer owned a queue."""

    queue: GroupQueue
    node: str
    incarnation: int
    start_ns: int
    end_ns: int
    open: bool


@attrs.frozen
class FaultSpan:
    """A fault from its begin to its end."""

    fault_id: str
    kind: str
    subject: str
    start_ns: int
    end_ns: int
    open: bool


@attrs.frozen
class LifeMark:
    """A process was started, stopped, killed, suspended or resumed after the first agreement."""

    t_ns: int
    node: str
    event: str


@attrs.frozen
class DutySpan:
    """The members of a broker group that ran the special services, from one change to the next."""

    broker_name: str
    kind: str
    """`one`, `two` or `nobody`."""
    start_ns: int
    end_ns: int
    nodes: tuple[str, ...]
    open: bool


@attrs.frozen
class Disorder:
    """A listener consumed messages of an ordered queue without the broker's lock (V3)."""

    queue: GroupQueue
    node: str
    start_ns: int
    end_ns: int
    messages: int
    disordered: bool
    """Whether another client held the lock meanwhile."""
    violation: bool


@attrs.frozen
class OffsetSlip:
    """A commit below the last one, or a start that differs from it (V4, V5)."""

    queue: GroupQueue
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
class LostMessages:
    """Messages of a queue that will never be consumed (V7)."""

    queue: GroupQueue
    first_offset: int
    last_offset: int
    lost: int
    skipped: int
    """How many of them a new owner's start skipped."""


@attrs.frozen
class DeadLetters:
    """Messages that a group sent to its dead-letter topic."""

    group: str
    dead_letters: int


@attrs.frozen(kw_only=True)
class Invariants:
    """The findings of V3 to V7; V1 and V2 are the overlaps and orphans of the report."""

    disorders: tuple[Disorder, ...]
    offset_slips: tuple[OffsetSlip, ...]
    half_views: tuple[HalfView, ...]
    losses: tuple[LostMessages, ...]
    dead_letters: tuple[DeadLetters, ...]
    """Not judged."""


@attrs.frozen
class Duplicates:
    """Number of repeated consumptions of a queue's messages."""

    queue: GroupQueue
    duplicates: int


@attrs.frozen
class HandOver:
    """The cost of a change of owner; see `emulator.analysis.hand_overs`."""

    queue: GroupQueue
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
    """Members of a group without a queue of a topic at the end of the run."""

    group: str
    topic: str
    members: int
    queues: int
    idle: int
    unavoidable: int


@attrs.frozen
class Skew:
    """The fewest and the most queues of a member over all topics at the end of the run."""

    group: str
    topics: int
    members: int
    least: int
    most: int


@attrs.frozen(kw_only=True)
class Limits:
    """Costs and limits of rebalancing; measured, not judged."""

    duplicates: tuple[Duplicates, ...]
    hand_overs: tuple[HandOver, ...]
    idle: tuple[Idle, ...]
    skew: tuple[Skew, ...]


class Verdict(StrEnum):
    """The verdict about a run."""

    VALID = "valid"
    """No oracle was violated."""
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The trace is incomplete, or contains nothing to judge."""


EXIT_STATUS = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}


@attrs.frozen
class Report:
    """The judged report of one run; all rows are in order of time."""

    run_id: str
    scenario: str
    seed: int
    mode: str
    digest: str
    end_ns: int
    round_ms: int
    """Longest divergence that is baseline, in ms."""
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why the run is not valid, one sentence each; empty if it is."""
    views: tuple[Divergence, ...]
    """Consumers that allocated from different views: judged."""
    overlaps: tuple[Overlap, ...]
    """Judged."""
    orphans: tuple[Orphan, ...]
    """Judged."""
    invariants: Invariants
    """Judged."""
    limits: Limits
    beliefs: tuple[Divergence, ...]
    """Other beliefs that differed; explains, but is not judged."""
    agreement: tuple[Agreement, ...]
    phases: tuple[RunPhase, ...]
    duties: tuple[DutySpan, ...]
    """Broker groups in which the special services moved; not judged."""
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    marks: tuple[LifeMark, ...]
    names: dict[str, str]
    """Mapping address -> node, to show client ids as names."""

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_STATUS[self.verdict]

    def to_json(self) -> str:
        """The whole report as JSON; keys are the names of the attributes."""
        content = attrs.asdict(self) | {"exit_status": self.exit_status}
        return json.dumps(content, indent=1)
