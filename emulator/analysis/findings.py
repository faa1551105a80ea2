"""The findings about one run as frozen values: the report, and one class per kind of finding.

Times are emulated nanoseconds since the run began. An interval that had not
ended with the run ends there, and is censored. `cause` and `because` name what
explains an interval, if anything does (`because` with the cause `none` is a fault
that lasts longer than it explains anything); `excess_ns` is how long it lasted beyond
that (see `emulator.analysis.causes`).
"""

import json
from enum import StrEnum

import attrs

from emulator.analysis.bounds import Bounds
from emulator.analysis.broker_states import BrokerSpan
from emulator.analysis.elections import FlawedElection
from emulator.analysis.hand_overs import HandOver
from emulator.analysis.keys import KeyHarm, MovedKey
from emulator.analysis.lag import Lag, LagSeries, Latency
from emulator.analysis.not_emulated import NotEmulated
from emulator.analysis.offsets import OffsetSlip
from emulator.analysis.phases import Agreement, FaultSpan, LifeMark, RunPhase
from emulator.analysis.rebalances import RebalanceCost
from emulator.analysis.services import Duty
from emulator.analysis.shares import Idle, Skew
from emulator.analysis.traffic import RequestRate, Sends, Series, Storm
from emulator.analysis.transactions import Transactions
from emulator.analysis.views import Camp
from emulator.analysis.waits import Waits
from emulator.analysis.writable import Unwritable
from emulator.state.owners import GroupQueue


@attrs.frozen
class Divergence:
    """Nodes of one role disagreed about a subject."""

    kind: str
    """Kind of the belief: `BeliefKind`."""
    role: str
    """Role of the nodes: nameserver, broker or consumer."""
    subject: str
    """What the belief is about; its form depends on the kind. Of a view: group/topic."""
    start_ns: int
    end_ns: int
    censored: bool
    active_ns: int
    """How long nodes that were awake disagreed: a suspended node acts on nothing."""
    views_max: int
    """Most values that were held at once."""
    camps: tuple[Camp, ...]
    """Who held what in the constellation that lasted longest: `[{"nodes": [...], "value": ...}, ...]`."""
    camps_ns: int
    """How long that constellation lasted."""
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
    """Most owners at once."""
    owners: tuple[str, ...]
    """Names of all that owned the queue meanwhile."""
    active_ns: int
    """How long at least two owners were awake: only they can do harm."""
    duplicates: int
    """Messages of the queue that were consumed again meanwhile."""
    cause: str
    because: str
    excess_ns: int
    """How much of `active_ns` lies outside of all that causes explain."""
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
    """Which process of the node: 1 for the first, +1 per restart."""
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
    """Messages consumed without the lock."""
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
    """`cids`: the members of the group; `queues`: the queues of the topic."""
    subject: str
    """group/topic."""
    start_ns: int
    end_ns: int
    censored: bool
    active_ns: int
    """How long consumers that were awake disagreed."""
    views_max: int
    """Most values that were held at once."""
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
    """Lowest offset of a lost message."""
    last_offset: int
    """Highest offset of a lost message; not all between them are lost."""
    lost: int
    """Number of lost messages."""
    skipped: int
    """Of these: an owner started above them."""
    overwritten: int
    """Of these: a broker lost them with its disk."""
    reused: int
    """Of these: their offsets had belonged to such messages, and the group had passed them."""
    cut: int
    """Of these: a new master's log does not have them, and their senders had been told SEND_OK."""
    unsubscribed: int
    """Of these: their owner does not subscribe to them, another member does."""


@attrs.frozen
class PoppedMessages:
    """What became of the messages that a group popped from one queue."""

    queue: GroupQueue
    popped: int
    """Messages, each counted once."""
    acked: int
    """Acknowledged while they were hidden."""
    revived: int
    """Copied to the retry topic."""
    twice: int
    """How often a message was handed out while it was hidden."""
    consumed_and_revived: int
    """Revived although a listener had consumed them: they will be consumed again."""
    acked_and_revived: int
    """Revived although the acknowledgement had been taken."""
    lost: int
    """Given up by a broker: nobody will get them."""
    late: int
    """Messages that nobody answered or revived long after their invisible time."""
    start_ns: int
    """End of the invisible time of the one that waited longest; -1: none is late."""
    end_ns: int
    cause: str
    because: str
    excess_ns: int
    """Longest wait beyond what the cause explains."""
    violation: bool


@attrs.frozen
class DeadLetters:
    """Messages that a group sent to its dead-letter topic."""

    group: str
    dead_letters: int
    """Number of messages in it."""


@attrs.frozen
class DutySpan:
    """The members of a broker group that ran the special services, from one change to the next (V10)."""

    broker_name: str
    kind: Duty
    """`one`, `two` (two or more) or `nobody` runs them."""
    start_ns: int
    end_ns: int
    censored: bool
    nodes: tuple[str, ...]
    """Names of the members that ran them."""
    violation: bool


@attrs.frozen
class StaleRoute:
    """A client used a route of a topic that no nameserver gave any more."""

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
    """Queues that members of the group owned."""
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
    """How often a message was consumed again."""


@attrs.frozen(kw_only=True)
class Load:
    """What operators watch: requests, lag, latency and failed sends; measured, not judged."""

    storms: tuple[Storm, ...]
    rates: tuple[RequestRate, ...]
    """The most frequent first."""
    sends: tuple[Sends, ...]
    """By producer."""
    unwritable: tuple[Unwritable, ...]
    broker_states: tuple[BrokerSpan, ...]
    """By topic and brokerName."""
    lags: tuple[Lag, ...]
    """By queue."""
    latencies: tuple[Latency, ...]
    """By group and topic."""
    requests: tuple[Series, ...]
    """Of the whole cluster."""
    waiting: tuple[LagSeries, ...]
    """By group and topic."""


@attrs.frozen(kw_only=True)
class Invariants:
    """The findings of V3 to V8, V12 and V14; V1 and V2 are the overlaps and orphans of the report."""

    disorders: tuple[Disorder, ...]
    """Judged."""
    offset_slips: tuple[OffsetSlip, ...]
    """Judged."""
    half_views: tuple[HalfView, ...]
    """Judged."""
    losses: tuple[LostMessages, ...]
    """Judged: each row is a violation."""
    popped: tuple[PoppedMessages, ...]
    """Judged; one row per queue that was popped."""
    dead_letters: tuple[DeadLetters, ...]
    """Not judged."""
    stalls: tuple[Stall, ...]
    """Judged."""
    keys: tuple[KeyHarm, ...]
    """Judged in ordered and exclusive groups."""


@attrs.frozen(kw_only=True)
class Limits:
    """Costs and limits of rebalancing; measured, not judged."""

    duplicates: tuple[Duplicates, ...]
    hand_overs: tuple[HandOver, ...]
    rebalances: tuple[RebalanceCost, ...]
    idle: tuple[Idle, ...]
    skew: tuple[Skew, ...]
    stale_routes: tuple[StaleRoute, ...]
    moved_keys: tuple[MovedKey, ...]


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
    deciders: tuple[Divergence, ...]
    """Members of a group that divided in different ways, or had different assigners or epochs: judged (V13)."""
    membership: tuple[Divergence, ...]
    """Brokers and nameservers that disagreed about who lives: judged in groups with RIP-32 (V9)."""
    duties: tuple[DutySpan, ...]
    """Broker groups in which the special services moved: judged with RIP-32 and with controllers (V10)."""
    waits: tuple[Waits, ...]
    """Messages that wait for a delay level or for the timer: judged (V15)."""
    transactions: tuple[Transactions, ...]
    """Transactions: judged (V16)."""
    elections: tuple[FlawedElection, ...]
    """Flaws of elections in controller mode: judged (V17)."""
    budgets: tuple[Budget, ...]
    """Judged."""
    beliefs: tuple[Divergence, ...]
    """Other beliefs that differed; explains, but is not judged."""
    limits: Limits
    load: Load
    agreement: tuple[Agreement, ...]
    """One row per layer and disturbance; not judged."""
    phases: tuple[RunPhase, ...]
    """From the begin of the run to its end, without gaps; not judged."""
    holds: tuple[Hold, ...]
    """Not judged."""
    faults: tuple[FaultSpan, ...]
    """Not judged."""
    marks: tuple[LifeMark, ...]
    """Not judged."""
    not_emulated: tuple[NotEmulated, ...]
    """What guests asked for in vain; not judged."""
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
