"""All measures of a run, from one pass over its rows."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.agreement import Interval
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.listener_failures import ListenerFailures
from emulator.analysis.inputs.shared import SHOWN, SharedInputs
from emulator.analysis.measures import phases as phased
from emulator.analysis.measures.broker_states import BROKER_STATES, BrokerStates
from emulator.analysis.measures.denied_requests import DENIED, Denials
from emulator.analysis.measures.failed_starts import FAILED_STARTS, FailedStarts
from emulator.analysis.measures.hand_overs import HAND_OVERS, HandOvers
from emulator.analysis.measures.lag import LAG_SERIES, LAGS, LATENCIES, Lags, LateQueue
from emulator.analysis.measures.lost_topics import LOST_TOPICS, LostTopics
from emulator.analysis.measures.not_measured import NOT_MEASURED, UnseenGroups
from emulator.analysis.measures.queue_balance import IDLE, QUEUE_BALANCE, balance, idle, queues_of_members
from emulator.analysis.measures.rebalances import REBALANCES, Rebalances
from emulator.analysis.measures.repeats import Repeats
from emulator.analysis.measures.stale_routes import STALE_ROUTES, Staleness
from emulator.analysis.measures.traffic import ATTEMPTS, REQUEST_SERIES, REQUESTS, STORMS, FailedSends, Traffic
from emulator.analysis.measures.unsupported_requests import UNSUPPORTED, UnsupportedRequests
from emulator.analysis.measures.without_proxy import WITHOUT_PROXY, ProxyConnections
from emulator.analysis.measures.writability import UNWRITABLE, Writability
from emulator.history.owners import Hold
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import FrameCount
from nodes.beliefs import BeliefKind
from nodes.units import NS_PER_S


@attrs.frozen
class Duplicates:
    """How often messages of a queue were consumed again."""

    queue: GroupQueue
    duplicates: int
    """How often a message was consumed again; in a group that broadcasts, by the same consumer."""


DUPLICATES = FindingTable("duplicates", Duplicates, "how often messages of a queue were consumed again")
HOLDS = FindingTable("holds", Hold, "a consumer owned a queue")
LISTENER_FAILURES = FindingTable("listener_failures", ListenerFailures, "a listener failed with messages of a queue")
BELIEFS = FindingTable("beliefs", Divergence, "another belief about which nodes differed")
MEASURED: tuple[FindingTable[Any], ...] = (
    *(
        HOLDS,
        HAND_OVERS,
        REBALANCES,
        DUPLICATES,
        LISTENER_FAILURES,
        IDLE,
        QUEUE_BALANCE,
        STALE_ROUTES,
        phased.MOVED_KEYS,
    ),
    *(
        STORMS,
        REQUESTS,
        ATTEMPTS,
        DENIED,
        FAILED_STARTS,
        WITHOUT_PROXY,
        UNWRITABLE,
        LOST_TOPICS,
        BROKER_STATES,
        LAGS,
        LATENCIES,
    ),
    *(phased.AGREEMENT, phased.PHASES, phased.FAULTS, phased.MARKS, BELIEFS, UNSUPPORTED, NOT_MEASURED),
)
"""All tables of measures."""
SERIES: tuple[FindingTable[Any], ...] = (REQUEST_SERIES, LAG_SERIES)
"""What is counted in each second: of one run, not in tables of many."""


class Measured:
    """Measures one run.

    Args:
        inputs: read the same rows before.
        frames: of the run.
        in_share: whether the rows are those of a share of the run.
    """

    def __init__(self, inputs: SharedInputs, frames: Iterable[FrameCount], *, in_share: bool = False) -> None:
        presence, messages = inputs.presence, inputs.messages
        self._inputs = inputs
        self._hand_overs = HandOvers(presence, messages)
        self._rebalances = Rebalances(presence, messages)
        self._staleness = Staleness(presence)
        self._lags = Lags(messages, inputs.progress, in_share=in_share)
        self._traffic = Traffic(frames, inputs.facts.end_ns)
        self._writability = Writability()
        self._lost_topics = LostTopics()
        self._broker_states = BrokerStates(presence, inputs.facts.broker_names)
        self._unsupported = UnsupportedRequests()
        self._unseen = UnseenGroups(inputs.facts.guests)
        self._denials = Denials()
        self._failed_starts = FailedStarts()
        self._proxy_connections = ProxyConnections()
        self.repeats = Repeats(messages)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """Those that read rows, in the order of `Feed`."""
        return (
            *(self._hand_overs, self._rebalances, self._staleness, self._lags, self._traffic),
            *(self._writability, self._lost_topics, self._broker_states, self._unsupported, self._denials),
            *(self._failed_starts, self._proxy_connections, self.repeats, self._unseen),
        )

    def late(self) -> tuple[LateQueue, ...]:
        """When late messages waited, of each queue."""
        return self._lags.late()

    def failed_sends(self) -> tuple[FailedSends, ...]:
        """The attempts to send that failed, in order of time."""
        return self._traffic.failed_sends()

    def notifications(self) -> Mapping[tuple[str, int], int]:
        """Mapping broker or proxy, second -> how many members it notified."""
        return self._traffic.notifications()

    def rows(self) -> Mapping[FindingTable[Any], tuple[Any, ...]]:
        """The rows of each table, after all rows of the run have been read."""
        end_ns = self._inputs.facts.end_ns
        return {**self._of_queues(), **self._of_load(), **self._of_phases(), BELIEFS: self._beliefs()} | {
            UNSUPPORTED: tuple(self._unsupported.found),
            NOT_MEASURED: self._unseen.found(),
            LAG_SERIES: self._lags.series(end_ns),
        }

    def _of_queues(self) -> dict[FindingTable[Any], tuple[Any, ...]]:
        inputs = self._inputs
        holds = sorted(inputs.owners.holds, key=attrgetter("start_ns", "end_ns", "queue", "node"))
        of_members = queues_of_members(holds, inputs.presence, inputs.facts.end_ns)
        moved = (item for sweep in inputs.keys.of.values() for item in sweep.moved)
        return {
            HOLDS: tuple(holds),
            HAND_OVERS: tuple(sorted(self._hand_overs.found, key=attrgetter("resume_ns", "queue"))),
            REBALANCES: tuple(sorted(self._rebalances.found, key=attrgetter("start_ns", "group", "topic"))),
            DUPLICATES: tuple(Duplicates(*entry) for entry in sorted(inputs.messages.duplicates().items())),
            LISTENER_FAILURES: inputs.failing.found(),
            IDLE: idle(of_members),
            QUEUE_BALANCE: balance(of_members),
            STALE_ROUTES: tuple(sorted(self._staleness.found, key=attrgetter("start_ns", "topic", "node"))),
            phased.MOVED_KEYS: tuple(sorted(moved, key=attrgetter("start_ns", "topic", "key"))),
        }

    def _of_load(self) -> dict[FindingTable[Any], tuple[Any, ...]]:
        return {
            STORMS: self._traffic.storms(),
            REQUESTS: self._traffic.rates(),
            ATTEMPTS: self._traffic.sends(),
            DENIED: self._denials.found(),
            FAILED_STARTS: self._failed_starts.found(),
            WITHOUT_PROXY: self._proxy_connections.found(),
            UNWRITABLE: self._writability.found(),
            LOST_TOPICS: self._lost_topics.found(),
            BROKER_STATES: self._broker_states.found(),
            LAGS: self._lags.lags(),
            LATENCIES: self._lags.latencies(),
            REQUEST_SERIES: self._traffic.series(),
        }

    def _of_phases(self) -> dict[FindingTable[Any], tuple[Any, ...]]:
        inputs, end_ns = self._inputs, self._inputs.facts.end_ns
        instants = inputs.disturbances.instants(inputs.agreed_ns)
        views, owners, keys = inputs.divergent_views, inputs.divergent_owners, inputs.keys.of.values()
        overlaps, orphans = inputs.owners.overlaps, inputs.owners.orphans
        integrals = {
            "view_ns": [(view.start_ns, view.end_ns) for view in views],
            "overlap_ns": [(overlap.start_ns, overlap.end_ns) for overlap in overlaps],
            "active_overlap_ns": [span for overlap in overlaps for span in overlap.active or ()],
            "orphan_ns": [(orphan.start_ns, orphan.end_ns) for orphan in orphans],
            "keys_two_ns": [span for sweep in keys for span in sweep.two],
        }
        failed = self._traffic.failed_sends()
        counts = {
            "keys_overtaken": [t_ns for sweep in keys for t_ns in sweep.overtaken_ns],
            "again": [t_ns for *_, t_ns in self.repeats.found()],
            "failed_sends": [sends.second * NS_PER_S for sends in failed for _ in range(sends.attempts)],
        }
        faults = inputs.disturbances.spans(end_ns)
        divergent = {phased.Layer.VIEWS: views, phased.Layer.OWNERSHIP: owners}
        intervals = {
            layer: [Interval(item.start_ns, item.end_ns, item.censored) for item in found]
            for layer, found in divergent.items()
        }
        return {
            phased.AGREEMENT: phased.agreement(instants, intervals, end_ns),
            phased.PHASES: phased.phases(instants, integrals, counts, faults, end_ns),
            phased.FAULTS: faults,
            phased.MARKS: inputs.disturbances.marks(inputs.agreed_ns),
        }

    def _beliefs(self) -> tuple[Divergence, ...]:
        """Other beliefs that differed: without RIP-32, also who lives, since brokers do not follow it then."""
        inputs = self._inputs
        kinds = SHOWN if inputs.facts.acting else (*SHOWN, BeliefKind.LIVE_BROKERS)
        windows = inputs.windows("")
        found = []
        for item in inputs.holdings.found(*kinds):
            by = windows.explain(item.start_ns, item.end_ns, (), item.active)
            found.append(attrs.evolve(item, cause=by.cause, explained_by=by.explained_by, excess_ns=by.excess_ns))
        return tuple(sorted(found, key=attrgetter("start_ns", "end_ns", "kind", "role", "subject")))
