"""The findings about one run as frozen values: the report, and one class per kind of finding.

Times are emulated nanoseconds since the run began. An interval that had not
ended with the run ends there, and is censored. `cause` and `because` name what
explains an interval, if anything does; `excess_ns` is how long it lasted beyond
that (see `emulator.analysis.causes`).
"""

import json
from enum import StrEnum

import attrs

from emulator.analysis.bounds import Bounds
from emulator.analysis.hand_overs import HandOver
from emulator.analysis.offsets import OffsetSlip
from emulator.analysis.phases import Agreement, FaultSpan, LifeMark, RunPhase
from emulator.analysis.services import Duty
from emulator.analysis.shares import Idle, Skew
from emulator.analysis.views import Camp
from emulator.state.owners import GroupQueue


@attrs.frozen
class Divergence:
    """Nodes of one role disagreed about a subject."""

    kind: str
    role: str
    subject: str
    start_ns: int
    end_ns: int
    censored: bool
    active_ns: int
    """How long nodes that were awake disagreed: a suspended node acts on nothing."""
    views_max: int
    camps: tuple[Camp, ...]
    """The camps of the constellation that lasted longest."""
    camps_ns: int
    cause: str
    because: str
    excess_ns: int
    violation: bool


@attrs.frozen
class Overlap:
    """A queue had two or more owners (V1)."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    censored: bool
    owners_max: int
    owners: tuple[str, ...]
    active_ns: int
    """How long at least two owners were awake: only they can do harm."""
    duplicates: int
    """Messages of the queue that were consumed again meanwhile."""
    cause: str
    because: str
    excess_ns: int
    """Of `active_ns`."""
    violation: bool


@attrs.frozen
class Orphan:
    """A readable queue had no owner although its group had a live member (V2)."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    censored: bool
    cause: str
    because: str
    excess_ns: int
    violation: bool


@attrs.frozen
class Stall:
    """A readable queue had a backlog, and its group made no progress for a second or more (V8)."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    start_ns: int
    end_ns: int
    censored: bool
    backlog: int
    """Messages at its end."""
    cause: str
    because: str
    excess_ns: int
    violation: bool


@attrs.frozen
class Hold:
    """A consumer owned a queue."""

    queue: GroupQueue
    node: str
    incarnation: int
    start_ns: int
    end_ns: int
    censored: bool


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
    cause: str
    because: str
    excess_ns: int
    violation: bool


@attrs.frozen
class HalfView:
    """Consumers disagreed about one half of a view (V6)."""

    part: str
    """`ViewPart`."""
    subject: str
    start_ns: int
    end_ns: int
    censored: bool
    active_ns: int
    """As in `Divergence`."""
    views_max: int
    cause: str
    because: str
    excess_ns: int
    violation: bool


@attrs.frozen
class LostMessages:
    """Messages of a queue that will never be consumed (V7)."""

    queue: GroupQueue
    node: str
    """The consumer that misses them, in a group that broadcasts; else empty."""
    first_offset: int
    last_offset: int
    lost: int
    skipped: int
    """Of these: an owner started above them."""
    overwritten: int
    """Of these: a broker lost them with its disk."""
    reused: int
    """Of these: their offsets had belonged to such messages, and the group had passed them."""
    unsubscribed: int
    """Of these: their owner does not subscribe to them, another member does."""


@attrs.frozen
class DeadLetters:
    """Messages that a group sent to its dead-letter topic; not judged."""

    group: str
    dead_letters: int


@attrs.frozen
class DutySpan:
    """The members of a broker group that ran the special services, from one change to the next (V10)."""

    broker_name: str
    kind: Duty
    start_ns: int
    end_ns: int
    censored: bool
    nodes: tuple[str, ...]
    violation: bool


@attrs.frozen
class StaleRoute:
    """A client used a route of a topic that no nameserver gave any more; not judged."""

    topic: str
    node: str
    start_ns: int
    end_ns: int
    censored: bool


@attrs.frozen
class Budget:
    """Short harm that no fault explains, added up for one group (V11)."""

    group: str
    queues: int
    observed_ns: int
    """How much of the run lies outside of what faults explain."""
    overlap_ns: int
    """Queue time with two owners that were awake, in that time."""
    orphan_ns: int
    """Queue time without an owner, in that time."""
    per_hour_s: float
    """Both, in s per queue and hour, of ten minutes at least."""
    violation: bool


@attrs.frozen
class Duplicates:
    """Number of repeated consumptions of a queue's messages."""

    queue: GroupQueue
    duplicates: int


@attrs.frozen(kw_only=True)
class Invariants:
    """The findings of V3 to V8; V1 and V2 are the overlaps and orphans of the report."""

    disorders: tuple[Disorder, ...]
    offset_slips: tuple[OffsetSlip, ...]
    half_views: tuple[HalfView, ...]
    losses: tuple[LostMessages, ...]
    dead_letters: tuple[DeadLetters, ...]
    """Not judged."""
    stalls: tuple[Stall, ...]


@attrs.frozen(kw_only=True)
class Limits:
    """Costs and limits of rebalancing; measured, not judged."""

    duplicates: tuple[Duplicates, ...]
    hand_overs: tuple[HandOver, ...]
    idle: tuple[Idle, ...]
    skew: tuple[Skew, ...]
    stale_routes: tuple[StaleRoute, ...]


class Verdict(StrEnum):
    """The verdict about a run."""

    VALID = "valid"
    """No oracle was violated."""
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The trace is incomplete, or contains nothing to judge."""


EXIT_STATUS = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}


@attrs.frozen(kw_only=True)
class Findings:
    """Everything that was found in the rows of a run; all tuples are in order of time, or of queues."""

    views: tuple[Divergence, ...]
    """Consumers that allocated from different views: judged."""
    overlaps: tuple[Overlap, ...]
    """Judged."""
    orphans: tuple[Orphan, ...]
    """Judged."""
    invariants: Invariants
    """Judged."""
    membership: tuple[Divergence, ...]
    """Brokers and nameservers that disagreed about who lives: judged in groups with RIP-32 (V9)."""
    duties: tuple[DutySpan, ...]
    """Broker groups in which the special services moved: judged in groups with RIP-32 (V10)."""
    budgets: tuple[Budget, ...]
    """Judged."""
    beliefs: tuple[Divergence, ...]
    """Other beliefs that differed; explains, but is not judged."""
    limits: Limits
    agreement: tuple[Agreement, ...]
    phases: tuple[RunPhase, ...]
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    marks: tuple[LifeMark, ...]
    agreed_ns: int | None
    """First instant at which all agreed; None: they never did."""


@attrs.frozen(kw_only=True)
class Report(Findings):
    """The findings about a run, and its verdict."""

    run_id: str
    scenario: str
    seed: int
    mode: str
    digest: str
    end_ns: int
    bounds: Bounds
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why the run is not valid, one sentence each; empty if it is."""
    names: dict[str, str]
    """Mapping address -> node, to show client ids as names."""

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_STATUS[self.verdict]

    def to_json(self) -> str:
        """The whole report as JSON; keys are the names of the attributes."""
        return json.dumps(attrs.asdict(self) | {"exit_status": self.exit_status}, indent=1)
