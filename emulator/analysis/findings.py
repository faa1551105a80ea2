"""What a report is made of: plain rows, one class per table, times in emulated nanoseconds."""

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
    """The constellation that lasted longest."""
    camps_ns: int
    violation: bool


@attrs.frozen
class Overlap:
    """A queue had two owners or more."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    owners_max: int
    owners: tuple[str, ...]
    open: bool
    violation: bool


@attrs.frozen
class Orphan:
    """A queue had no owner although its group was alive."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    open: bool
    violation: bool


@attrs.frozen
class Agreement:
    """How long a layer took to come to rest after a disturbance."""

    layer: str
    t_ns: int
    next_ns: int
    what: tuple[str, ...]
    took_ns: int
    open: bool
    """It had not come to rest when the next disturbance came, or the end."""


@attrs.frozen
class Phase:
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
    """A process was started, stopped, killed, suspended or resumed after the run had settled."""

    t_ns: int
    node: str
    event: str


@attrs.frozen
class DutySpan:
    """Who of a broker group ran the special services from one change to the next."""

    broker_name: str
    kind: str
    """`one`, `two` or `nobody`."""
    start_ns: int
    end_ns: int
    nodes: tuple[str, ...]
    open: bool


@attrs.frozen
class Disorder:
    """A listener had messages of an ordered queue without holding the broker's lock (V3)."""

    queue: GroupQueue
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
class Loss:
    """Messages of a queue that nobody will consume (V7)."""

    queue: GroupQueue
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

    queue: GroupQueue
    duplicates: int


@attrs.frozen
class HandOver:
    """What a change of owner cost; see `hand_overs`."""

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


class Verdict(StrEnum):
    """What a run proved."""

    VALID = "valid"
    """Nothing diverged for longer than a rebalance round."""
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The trace is incomplete, or holds nothing to judge."""


EXIT_STATUS = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}


@attrs.frozen
class Report:
    """What the analysis of one run found; all rows in order of time."""

    run_id: str
    scenario: str
    seed: int
    mode: str
    digest: str
    end_ns: int
    round_ms: int
    """What lasts no longer than this is baseline."""
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it is not valid, one sentence each; empty where it is."""
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
    """Other beliefs that differed, for explanation; not judged."""
    agreement: tuple[Agreement, ...]
    phases: tuple[Phase, ...]
    duties: tuple[DutySpan, ...]
    """Of broker groups in which it changed; not judged."""
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    marks: tuple[LifeMark, ...]
    names: dict[str, str]
    """Address -> node, to tell people who a client id is."""

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_STATUS[self.verdict]

    def to_json(self) -> str:
        """The whole report as JSON; keys are the names of the attributes."""
        content = attrs.asdict(self) | {"exit_status": self.exit_status}
        return json.dumps(content, indent=1)
