"""The judge: reads the rows of one run once, and says which invariants of RocketMQ held."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import attrs

from emulator.analysis.bounds import Bounds, Cause, bounds_of
from emulator.analysis.broker_states import BrokerStates
from emulator.analysis.causes import Causes, Judged, Windows
from emulator.analysis.elections import Elections
from emulator.analysis.findings import (
    Budget,
    DeadLetters,
    Disorder,
    Divergence,
    Duplicates,
    DutySpan,
    Findings,
    HalfView,
    Hold,
    Invariants,
    Limits,
    Load,
    LostMessages,
    Orphan,
    Overlap,
    PoppedMessages,
    Report,
    StaleRoute,
    Stall,
    Verdict,
)
from emulator.analysis.hand_overs import HandOvers
from emulator.analysis.invariants import sentences
from emulator.analysis.keys import KeyOrder
from emulator.analysis.lag import Lags
from emulator.analysis.messages import Loss, LossReason, Messages
from emulator.analysis.not_emulated import VainRequests
from emulator.analysis.offsets import Offsets
from emulator.analysis.order import FoundDisorder, Order
from emulator.analysis.phases import Disturbances, Interval, Layer, agreement, first_agreement, phases
from emulator.analysis.pops import REVIVED_WITHIN_NS, FoundWait, Popped, Pops
from emulator.analysis.presence import Presence
from emulator.analysis.progress import FoundStall, Progress
from emulator.analysis.queues import FoundOrphan, FoundOverlap, QueueSweep
from emulator.analysis.rebalances import Rebalances
from emulator.analysis.rows import ROWS, Span, StoredRows, TraceRows, watch
from emulator.analysis.services import Duty, FoundDuty, Served, Services
from emulator.analysis.shares import idle, shares, skew
from emulator.analysis.staleness import Staleness
from emulator.analysis.traffic import Traffic
from emulator.analysis.transactions import EndsOfTransactions
from emulator.analysis.views import FoundDivergence, Views
from emulator.analysis.waits import WaitingMessages
from emulator.analysis.writable import Writability
from emulator.spec import Scenario, from_dict
from emulator.spec.addresses import owners
from emulator.state.owners import GroupQueue
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, OWNERSHIP
from nodes.beliefs import BeliefKind
from nodes.config import Exclusivity

MEMBERSHIP = (BeliefKind.LIVE_BROKERS, BeliefKind.MIN_BROKER, BeliefKind.MEMBER_GROUP, BeliefKind.MASTER_ADDR)
"""Kinds about which the members of a broker group, or the nameservers, agree."""
SHOWN = (BeliefKind.CONSUMER_IDS, BeliefKind.ROUTE, BeliefKind.SUBSCRIPTION)
"""Further kinds about which healthy nodes agree; the other kinds differ between healthy nodes."""
DECIDERS = (BeliefKind.REBALANCE_MODE, BeliefKind.ASSIGNER, BeliefKind.EPOCH)
"""Kinds about who divides the queues of a group; modes are read from passes, as members that divide say nothing."""
_NS_PER_S = 1_000_000_000
_HOUR_NS = 3_600 * _NS_PER_S
_MS = 1_000_000
_ON_TIME = Judged(Cause.NONE, "", 0, False)
_OBSERVED_LEAST_NS = 600 * _NS_PER_S
"""Harm is divided by ten minutes at least: a single rebalance in a short run is no harm that returns."""


@attrs.frozen
class RunFacts:
    """What oracles have to know of a run besides its rows."""

    end_ns: int
    bounds: Bounds = Bounds()
    broker_names: Mapping[str, str] = attrs.Factory(dict)
    """Mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name."""
    acting: bool = False
    """Whether slaves act as masters (RIP-32), so that brokers follow who lives."""
    elected: bool = False
    """Whether controllers elect the masters of all groups (RIP-44)."""
    consume_ms: Mapping[str, int] = attrs.Factory(dict)
    """Mapping group -> time of its listener for one message."""
    ordered: tuple[str, ...] = ()
    """Groups with ordered listeners."""
    exclusive: tuple[str, ...] = ()
    """Groups that promise one consumer per queue."""


def facts_of(scenario: Scenario, end_ns: int) -> RunFacts:
    """The facts of a run of a scenario."""
    pushing = [one for one in scenario.consumers if not one.lite_pull]
    return RunFacts(
        end_ns,
        bounds_of(scenario),
        {broker.name: broker.broker_name for broker in scenario.brokers},
        all(broker.config.enable_slave_acting_master for broker in scenario.brokers),
        all(broker.config.enable_controller_mode for broker in scenario.brokers),
        {group.group: group.consume_ms for group in scenario.consumers},
        tuple(one.group for one in pushing if one.config.consume_orderly),
        tuple(one.group for one in pushing if one.config.exclusivity is not Exclusivity.NONE),
    )


def judge_run(run: RunDirectory) -> Report:
    """The findings about a run, also one that is still under way, and its verdict."""
    manifest = run.manifest
    scenario = _scenario(manifest)
    facts = facts_of(scenario, run.end_ns)
    found = judge_rows(StoredRows(run), facts)
    reasons = sentences(found)
    unsure, cut_short = doubts(run), broken_off(run)
    # A violation stays one, however much of the trace is missing; an interrupted run has no result at all.
    verdict = Verdict.INVALID if reasons else Verdict.UNKNOWN if unsure else Verdict.VALID
    if cut_short:
        verdict = Verdict.UNKNOWN
    return Report(
        run_id=run.run,
        scenario=str(manifest["scenario"]["scenario"]["name"]),
        seed=int(manifest["seed"]),
        mode=str(manifest["mode"]),
        digest=str(manifest["digest"]),
        end_ns=run.end_ns,
        bounds=facts.bounds,
        verdict=verdict,
        reasons=tuple(cut_short + reasons + unsure),
        # A run that was killed has no manifest, so nobody has written its addresses down.
        names=dict(manifest.get("addresses") or owners(scenario)),
        **{field.name: getattr(found, field.name) for field in attrs.fields(Findings)},
    )


def _scenario(manifest: Mapping[str, Any]) -> Scenario:
    return from_dict(manifest["scenario"], "the scenario in the manifest")


def broken_off(run: RunDirectory) -> list[str]:
    """Why the run as a whole has no result."""
    crashes = [f"{crash}: the emulator has a bug" for crash in run.manifest.get("crashes", ())]
    why = run.broken_off()
    return [*crashes, why] if why else crashes


def doubts(run: RunDirectory) -> list[str]:
    """Why the absence of violations proves nothing."""
    if any(table not in run.level.whole for table in ROWS):
        return [f"the level of its trace is {run.level}: oracles read levels full and findings"]
    counts = run.trace.counts()
    promised: dict[str, int] = dict(run.manifest["rows"])
    lacking = [
        f"{name}: {there} of the {promised.get(name, 0)} rows that the manifest promises are there"
        for name, there in counts.items()
        if there != promised.get(name, 0)
    ]
    if not counts[OWNERSHIP.name] and not counts[BELIEFS.name]:
        lacking.append("nobody recorded a belief or owned a queue: there is nothing to judge")
    return lacking


def judge_rows(source: TraceRows, facts: RunFacts) -> Findings:
    """Everything that the oracles find in the rows of a run.

    Args:
        source: of the rows.
        facts: of the run.
    """
    return _Reading(source, facts).findings()


class _Reading:
    """The watchers of one run, and what they found."""

    def __init__(self, source: TraceRows, facts: RunFacts) -> None:
        self._facts = facts
        bounds = facts.bounds
        self._presence = presence = Presence(facts.broker_names)
        self._causes = Causes(bounds, presence)
        self._messages = messages = Messages(presence)
        self._queues = QueueSweep(presence, messages)
        self._progress = Progress(presence)
        self._hand_overs = HandOvers(presence, messages)
        self._rebalances = Rebalances(presence, messages)
        self._offsets = Offsets(bounds, presence)
        self._order = Order(presence)
        self._keys = KeyOrder(presence, messages, facts.consume_ms, ordered=facts.ordered, exclusive=facts.exclusive)
        kinds = (BeliefKind.VIEW, BeliefKind.ASSIGNER, BeliefKind.EPOCH, *MEMBERSHIP, *SHOWN)
        self._views = Views(presence, *kinds, parts=True, modes=True)
        self._services = Services(presence)
        self._disturbances = Disturbances()
        self._waits = WaitingMessages(self._disturbances)
        self._transactions = EndsOfTransactions(self._disturbances)
        self._elections = Elections()
        self._staleness = Staleness(presence)
        self._pops = Pops(presence)
        self._lags = Lags(presence, messages, self._progress)
        self._traffic = Traffic(source.frames(), facts.end_ns)
        self._writability = Writability()
        self._broker_states = BrokerStates(presence, facts.broker_names)
        self._vain_requests = VainRequests()
        watchers = (
            *(presence, messages, self._causes, self._disturbances, self._offsets, self._queues, self._progress),
            *(self._hand_overs, self._rebalances, self._order, self._keys, self._views, self._services),
            *(self._staleness, self._pops, self._waits, self._transactions, self._lags, self._traffic),
            *(self._writability, self._broker_states, self._vain_requests, self._elections),
        )
        watch(source, watchers)
        for one in watchers:
            one.finish(facts.end_ns)
        self._divergent = self._divergent_layers()
        every = [one for layer in self._divergent.values() for one in layer]
        self._agreed_ns = first_agreement(self._begun_ns(), every)
        self._windows: dict[str, Windows] = {}

    # --- agreement ------------------------------------------------------------------------

    def _begun_ns(self) -> int | None:
        """The first instant with a view, or the belief in an assigner, and an owner."""
        first_ns, owned_ns = self._views.first_ns, self._queues.first_ns
        viewed_ns = [first_ns[kind] for kind in (BeliefKind.VIEW, BeliefKind.ASSIGNER) if kind in first_ns]
        return None if not viewed_ns or owned_ns is None else max(min(viewed_ns), owned_ns)

    def _divergent_layers(self) -> dict[Layer, list[Interval]]:
        # Whoever asks an assigner has no view of its own.
        kinds = (BeliefKind.VIEW, BeliefKind.ASSIGNER, BeliefKind.EPOCH)
        views = [one for one in self._views.found if one.about.kind in kinds]
        owners: list[FoundOverlap | FoundOrphan] = [*self._queues.overlaps, *self._queues.orphans]
        return {
            Layer.VIEWS: [Interval(one.start_ns, one.end_ns, one.censored) for one in views],
            Layer.OWNERSHIP: [Interval(one.start_ns, one.end_ns, one.censored) for one in owners],
        }

    def _windows_of(self, group: str) -> Windows:
        windows = self._windows.get(group)
        if windows is None:
            windows = self._windows[group] = self._causes.windows(group, self._agreed_ns)
        return windows

    # --- findings -------------------------------------------------------------------------

    def findings(self) -> Findings:
        end_ns, agreed_ns = self._facts.end_ns, self._agreed_ns
        instants = self._disturbances.instants(agreed_ns)
        measures = {
            "view_ns": [(one.start_ns, one.end_ns) for one in self._divergent[Layer.VIEWS]],
            "overlap_ns": [(one.start_ns, one.end_ns) for one in self._queues.overlaps],
            "active_overlap_ns": [span for one in self._queues.overlaps for span in one.active],
            "orphan_ns": [(one.start_ns, one.end_ns) for one in self._queues.orphans],
            "keys_two_ns": self._keys.two,
        }
        two = [(one, self._overlap(one)) for one in self._queues.overlaps]
        none = [(one, self._orphan(one)) for one in self._queues.orphans]
        served = Served(self._services.found)
        return Findings(
            views=self._divergences((BeliefKind.VIEW,), judged=True),
            overlaps=_in_order(judged for _, judged in two),
            orphans=_in_order(judged for _, judged in none),
            invariants=self._invariants(),
            deciders=self._deciders(),
            membership=self._membership(),
            duties=self._duties(),
            waits=self._waits.found(served, end_ns),
            transactions=self._transactions.found(served, end_ns, self._facts.bounds.asks_ms * _MS),
            elections=self._elections.found,
            # What is too long for itself counts elsewhere.
            budgets=self._budgets(
                [one for one, judged in two if not judged.violation],
                [one for one, judged in none if not judged.violation],
            ),
            beliefs=self._divergences(SHOWN if self._facts.acting else (*SHOWN, BeliefKind.LIVE_BROKERS), judged=False),
            limits=self._limits(),
            load=self._load(),
            agreement=agreement(instants, self._divergent, end_ns),
            phases=phases(instants, measures, {"keys_overtaken": self._keys.overtaken_ns}, end_ns),
            holds=self._holds(),
            faults=self._disturbances.spans(end_ns),
            marks=self._disturbances.marks(agreed_ns),
            not_emulated=tuple(self._vain_requests.found),
            agreed_ns=agreed_ns,
        )

    def _load(self) -> Load:
        return Load(
            storms=self._traffic.storms(),
            rates=self._traffic.rates(),
            sends=self._traffic.sends(),
            unwritable=self._writability.found(),
            broker_states=self._broker_states.found(),
            lags=self._lags.lags(),
            latencies=self._lags.latencies(),
            requests=self._traffic.series(),
            waiting=self._lags.series(self._facts.end_ns),
        )

    def _overlap(self, one: FoundOverlap) -> Overlap:
        judged = self._windows_of(one.queue.group).judge(one.start_ns, one.end_ns, one.active)
        span = (one.queue, one.start_ns, one.end_ns, one.censored)
        return Overlap(*span, one.owners_max, one.owners, _length(one.active), one.duplicates, *attrs.astuple(judged))

    def _orphan(self, one: FoundOrphan) -> Orphan:
        judged = self._windows_of(one.queue.group).judge(one.start_ns, one.end_ns)
        return Orphan(one.queue, one.start_ns, one.end_ns, one.censored, *attrs.astuple(judged))

    def _holds(self) -> tuple[Hold, ...]:
        end_ns = self._facts.end_ns
        return _in_order(
            Hold(one.queue, *one.process, one.start_ns, end_ns if one.end_ns < 0 else one.end_ns, one.end_ns < 0)
            for one in self._queues.holds
        )

    def _divergences(self, kinds: tuple[BeliefKind, ...], *, judged: bool) -> tuple[Divergence, ...]:
        names = [kind.value for kind in kinds]
        found = (one for one in self._views.found if one.about.kind in names)
        return _in_order(self._divergence(one, judged=judged) for one in found)

    def _divergence(self, one: FoundDivergence, *, judged: bool) -> Divergence:
        about = one.about
        group = about.subject.partition("/")[0] if about.kind == BeliefKind.VIEW else ""
        by_causes = self._windows_of(group).judge(one.start_ns, one.end_ns, one.active)
        return _told(one, attrs.evolve(by_causes, violation=judged and by_causes.violation))

    def _deciders(self) -> tuple[Divergence, ...]:
        return _in_order(self._decider(one) for one in self._views.found if one.about.kind in DECIDERS)

    def _decider(self, one: FoundDivergence) -> Divergence:
        """Only what happens from outside explains it: an assigner that changes by itself is the harm."""
        windows = self._windows_of(one.about.subject.partition("/")[0])
        by_causes = windows.judge(one.start_ns, one.end_ns, one.active, external=True)
        # Each member learns with its next pass what the others know already.
        too_long = by_causes.excess_ns > self._facts.bounds.round_ms * _MS
        return _told(one, attrs.evolve(by_causes, violation=too_long))

    def _membership(self) -> tuple[Divergence, ...]:
        """Without RIP-32 brokers do not follow who lives."""
        found = self._divergences(MEMBERSHIP, judged=False) if self._facts.acting else ()
        limit_ns = self._facts.bounds.group_ms * _MS
        excesses = [max(0, one.active_ns - limit_ns) for one in found]
        return tuple(attrs.evolve(one, excess_ns=ns, violation=ns > 0) for one, ns in zip(found, excesses, strict=True))

    def _duties(self) -> tuple[DutySpan, ...]:
        """The spans of groups with more than one span; a single span from start to end says nothing."""
        of_group = Counter(one.broker_name for one in self._services.found)
        moved = [self._duty(one) for one in self._services.found if of_group[one.broker_name] > 1]
        return tuple(sorted(moved, key=lambda one: (one.start_ns, one.end_ns, one.broker_name)))

    def _duty(self, one: FoundDuty) -> DutySpan:
        """Without RIP-32 and controllers nobody takes over."""
        facts, bounds = self._facts, self._facts.bounds
        too_long = one.end_ns - one.start_ns > (bounds.group_ms if facts.acting else bounds.election_ms) * _MS
        violation = (facts.acting or facts.elected) and too_long and one.kind is not Duty.ONE
        return DutySpan(one.broker_name, one.kind, one.start_ns, one.end_ns, one.censored, one.nodes, violation)

    def _invariants(self) -> Invariants:
        halves = [one for one in self._views.found if one.about.kind.startswith("view.")]
        return Invariants(
            disorders=_in_order(map(self._disorder, self._order.found)),
            offset_slips=tuple(sorted(self._offsets.found, key=lambda one: (one.t_ns, one.queue, one.offset))),
            half_views=_in_order(map(self._half_view, halves)),
            losses=tuple(_losses(self._messages.losses())),
            popped=self._popped(),
            dead_letters=tuple(DeadLetters(*entry) for entry in sorted(self._messages.dead_letters.items())),
            stalls=_in_order(map(self._stall, self._progress.found)),
            keys=tuple(sorted(self._keys.found, key=lambda one: (one.start_ns, one.group, one.key, one.node))),
        )

    def _popped(self) -> tuple[PoppedMessages, ...]:
        waits: dict[GroupQueue, list[FoundWait]] = {}
        for wait in self._pops.waits:
            waits.setdefault(wait.queue, []).append(wait)
        found = sorted(self._pops.of_queues.items())
        return tuple(self._popped_of(queue, popped, waits.get(queue, [])) for queue, popped in found)

    def _popped_of(self, queue: GroupQueue, popped: Popped, waits: list[FoundWait]) -> PoppedMessages:
        """A lost message always is a violation; one that is late, if nothing explains it."""
        judge = self._windows_of(queue.group).judge
        judged = [(judge(one.start_ns, one.end_ns, one.active, external=True), one) for one in waits]
        worst, wait = max(judged, key=lambda pair: pair[0].excess_ns, default=(_ON_TIME, FoundWait(queue, -1, -1)))
        is_late = worst.excess_ns > REVIVED_WITHIN_NS
        return PoppedMessages(
            queue,
            **attrs.asdict(popped),
            late=len(waits),
            start_ns=wait.start_ns,
            end_ns=wait.end_ns,
            cause=worst.cause,
            because=worst.because,
            excess_ns=worst.excess_ns,
            violation=popped.lost > 0 or is_late,
        )

    def _disorder(self, one: FoundDisorder) -> Disorder:
        judged = self._windows_of(one.queue.group).judge(one.start_ns, one.end_ns)
        judged = attrs.evolve(judged, violation=judged.violation or one.disordered)
        span = (one.queue, one.node, one.start_ns, one.end_ns)
        return Disorder(*span, one.messages, one.disordered, *attrs.astuple(judged))

    def _half_view(self, one: FoundDivergence) -> HalfView:
        group, part = one.about.subject.partition("/")[0], one.about.kind.partition(".")[2]
        judged = self._windows_of(group).judge(one.start_ns, one.end_ns, one.active)
        span = (one.start_ns, one.end_ns, one.censored, _length(one.active))
        return HalfView(part, one.about.subject, *span, one.views_max, *attrs.astuple(judged))

    def _stall(self, one: FoundStall) -> Stall:
        """A listener may take long, and then for a whole batch."""
        allowed_ns = self._facts.bounds.stall_ms(self._facts.consume_ms.get(one.queue.group, 0)) * _MS
        # Lists of members that change all the time are no excuse to consume nothing.
        judged = self._windows_of(one.queue.group).judge(one.start_ns, one.end_ns, external=True)
        judged = attrs.evolve(judged, violation=judged.excess_ns > allowed_ns)
        span = (one.queue, one.node, one.start_ns, one.end_ns, one.censored)
        return Stall(*span, one.backlog, *attrs.astuple(judged))

    def _budgets(self, two: Iterable[FoundOverlap], none: Iterable[FoundOrphan]) -> tuple[Budget, ...]:
        queues: dict[str, dict[GroupQueue, None]] = {}
        for hold in self._queues.holds:
            queues.setdefault(hold.queue.group, {})[hold.queue] = None
        overlaps: dict[str, list[Span]] = {}
        for overlap in two:
            overlaps.setdefault(overlap.queue.group, []).extend(overlap.active)
        orphans: dict[str, list[Span]] = {}
        for orphan in none:
            orphans.setdefault(orphan.queue.group, []).append((orphan.start_ns, orphan.end_ns))
        return tuple(
            self._budget(group, len(queues[group]), overlaps.get(group, ()), orphans.get(group, ()))
            for group in sorted(queues)
        )

    def _budget(self, group: str, count: int, overlaps: Iterable[Span], orphans: Iterable[Span]) -> Budget:
        windows = self._windows_of(group)
        observed_ns = windows.unexplained_ns([(0, self._facts.end_ns)])
        overlap_ns, orphan_ns = windows.unexplained_ns(overlaps), windows.unexplained_ns(orphans)
        queue_hours = count * max(observed_ns, _OBSERVED_LEAST_NS) / _HOUR_NS
        per_hour_s = (overlap_ns + orphan_ns) / _NS_PER_S / queue_hours
        is_broken = per_hour_s > self._facts.bounds.budget_s
        return Budget(group, count, observed_ns, overlap_ns, orphan_ns, round(per_hour_s, 3), is_broken)

    def _limits(self) -> Limits:
        of_members = shares(self._queues.holds, self._presence, self._facts.end_ns)
        handed = sorted(self._hand_overs.found, key=lambda one: (one.resume_ns, one.queue))
        stale = (
            StaleRoute(one.topic, one.node, one.start_ns, one.end_ns, one.censored) for one in self._staleness.found
        )
        return Limits(
            duplicates=tuple(Duplicates(*entry) for entry in sorted(self._messages.duplicates().items())),
            hand_overs=tuple(handed),
            rebalances=tuple(sorted(self._rebalances.found, key=lambda one: (one.start_ns, one.group, one.topic))),
            idle=idle(of_members),
            skew=skew(of_members),
            stale_routes=tuple(sorted(stale, key=lambda one: (one.start_ns, one.topic, one.node))),
            moved_keys=tuple(sorted(self._keys.moved, key=lambda one: (one.start_ns, one.topic, one.key))),
        )


def _losses(losses: Iterable[Loss]) -> Iterable[LostMessages]:
    for (queue, node), group in groupby(losses, key=lambda one: (one.queue, one.node)):
        lost = list(group)
        of = Counter(one.reason for one in lost)
        counts = [of[reason] for reason in LossReason if reason is not LossReason.UNKNOWN]
        offsets = [one.offset for one in lost]
        yield LostMessages(queue, node, min(offsets), max(offsets), len(lost), *counts)


def _told(one: FoundDivergence, by_causes: Judged) -> Divergence:
    about, span = one.about, (one.start_ns, one.end_ns, one.censored, _length(one.active))
    seen = (one.views_max, one.camps, one.camps_ns)
    return Divergence(about.kind, about.role, about.subject, *span, *seen, *attrs.astuple(by_causes))


def _length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def _in_order(found: Iterable[Any]) -> tuple[Any, ...]:
    """Findings by time, then by what they are about."""
    return tuple(sorted(found, key=lambda one: (one.start_ns, one.end_ns, *_about(one))))


def _about(one: Any) -> tuple[Any, ...]:
    if isinstance(one, Divergence):
        return one.kind, one.role, one.subject
    if isinstance(one, HalfView):
        return one.part, one.subject
    return one.queue, getattr(one, "node", "")
