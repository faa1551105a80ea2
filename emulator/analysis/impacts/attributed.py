"""Impacts: how much of each symptom a run has, whom it hits, and which disturbances it came from."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.attribution.explanation import RuleOfRocketMQ, of_chains, ruled
from emulator.analysis.findings.cause_share import merged_causes
from emulator.analysis.findings.impact import Impact
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.findings.table import Findings
from emulator.analysis.impacts.amounts import UNITS, FindingKind, ImpactKey, impacts
from emulator.analysis.inputs.applications import of_applications
from emulator.analysis.inputs.shared import VIEWS as KINDS_OF_VIEWS
from emulator.analysis.measures.denied_requests import DENIED
from emulator.analysis.measures.failed_starts import FAILED_STARTS
from emulator.analysis.measures.lag import LateQueue
from emulator.analysis.measures.lost_topics import LOST_TOPICS
from emulator.analysis.measures.measured import HOLDS, LISTENER_FAILURES, Measured
from emulator.analysis.measures.stale_routes import STALE_ROUTES
from emulator.analysis.measures.traffic import STORMS
from emulator.analysis.measures.without_proxy import WITHOUT_PROXY
from emulator.analysis.measures.writability import UNWRITABLE
from emulator.analysis.oracles.business_losses import BUSINESS_LOSSES, GIVEN_UP_AS
from emulator.analysis.oracles.busy_brokers import BUSY_BROKERS
from emulator.analysis.oracles.delayed_messages import DELAYED
from emulator.analysis.oracles.lost_messages import LOSSES
from emulator.analysis.oracles.offset_regressions import OFFSET_REGRESSIONS
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.popped_messages import POPPED
from emulator.analysis.oracles.stalls import STALLS
from emulator.analysis.oracles.transactions import TRANSACTIONS
from emulator.analysis.oracles.views import VIEWS
from nodes.units import NS_PER_S


@attrs.frozen
class _Part:
    """A part of an impact that has causes of its own."""

    subject: str
    """Whom it hits."""
    causes: Causes
    amount: float
    where: str = ""
    """The queue, if it is in one."""
    worst_ns: int = -1
    """When it is worst."""


_Parts = Iterator[_Part]


def impacts_of(found: Findings, measured: Measured, attribution: Attribution) -> tuple[Impact, ...]:
    """The impacts of a run with their causes, by kind and subject.

    Args:
        found: in the run.
        measured: has read all rows.
        attribution: of the run.
    """
    amounts = impacts(found)
    of_kinds = _OfRun(found, measured, attribution).parts()
    parts: dict[ImpactKey, list[_Part]] = {}
    for kind in dict.fromkeys(key.kind for key in amounts):
        for part in of_kinds[kind]() if kind in of_kinds else ():
            parts.setdefault(ImpactKey(kind, part.subject), []).append(part)
    return tuple(_impact(key, amount, parts.get(key, ())) for key, amount in sorted(amounts.items()))


def _impact(key: ImpactKey, amount: float, parts: Sequence[_Part]) -> Impact:
    causes = merged_causes((part.causes, part.amount) for part in parts)
    worst = max(parts, key=lambda part: part.amount, default=None)
    where, worst_ns = ("", -1) if worst is None else (worst.where, worst.worst_ns)
    return Impact(key.kind.value, key.subject, amount, UNITS[key.kind].value, where, worst_ns, causes)


class _OfRun:
    """The parts of the impacts of one run."""

    def __init__(self, found: Findings, measured: Measured, attribution: Attribution) -> None:
        self._found = found
        self._measured = measured
        self._attribution = attribution

    def parts(self) -> Mapping[SymptomKind | FindingKind, Callable[[], _Parts]]:
        """Mapping kind -> its parts."""
        return {
            SymptomKind.AGAIN: self._again,
            SymptomKind.LOST: self._lost,
            SymptomKind.TOPIC_LOST: self._lost_topics,
            **{kind: partial(self._given_up, kind) for kind in GIVEN_UP_AS.values()},
            SymptomKind.DELIVERY: self._deliveries,
            SymptomKind.TRANSACTIONS: self._transactions,
            SymptomKind.CHECKED: self._checked,
            SymptomKind.POPPED_AGAIN: self._popped_again,
            SymptomKind.DENIED: self._denied,
            SymptomKind.LATENCY: lambda: self._late(attrgetter("consumed_per_s")),
            SymptomKind.LAG: self._lag,
            SymptomKind.STALLED: self._stalled,
            SymptomKind.FAILING: self._failing,
            SymptomKind.FAILED_SENDS: self._failed_sends,
            SymptomKind.STORM: self._storms,
            SymptomKind.UNWRITABLE: self._unwritable,
            SymptomKind.STALE_ROUTES: self._stale_routes,
            SymptomKind.WITHOUT_PROXY: self._without_proxy,
            SymptomKind.NOT_STARTED: self._failed_starts,
            SymptomKind.CHURN: self._churn,
            SymptomKind.BUSY: self._busy,
            SymptomKind.FAN_OUT: self._notifications,
            FindingKind.OVERLAPS: self._overlaps,
            FindingKind.ORPHANS: self._orphans,
            FindingKind.VIEWS: self._views,
            FindingKind.OFFSETS_BACK: self._offsets_back,
        }

    # --- messages -------------------------------------------------------------------------

    def _again(self) -> _Parts:
        for queue, same in groupby(self._measured.repeats.found(), key=lambda item: item[0]):
            repeats = [(t_ns, node) for _, node, t_ns in same]
            causes = self._attribution.of_repeats(queue, repeats)
            yield _Part(queue.group, causes, float(len(repeats)), queue.name, _densest_ns(t_ns for t_ns, _ in repeats))

        for row in self._found.of(TRANSACTIONS.table):
            if row.again:
                chain = self._attribution.fates.ended_twice(row.broker_name, (row.start_ns, row.end_ns))
                yield _Part(row.topic, of_chains(((chain, row.again),)), float(row.again), "", row.start_ns)

    def _late(self, waiting_per_s: Callable[[LateQueue], Sequence[tuple[int, int]]]) -> _Parts:
        for item in self._measured.late():
            per_s = waiting_per_s(item)
            if per_s and any(of_applications((item.queue,))):
                causes = self._attribution.of_waiting(item.queue, item.node, per_s)
                second, _ = max(per_s, key=lambda entry: (entry[1], -entry[0]))
                waited_s = float(sum(waiting for _, waiting in per_s))
                subject = f"{item.queue.group} {item.queue.topic}"
                yield _Part(subject, causes, waited_s, item.queue.name, second * NS_PER_S)

    def _lag(self) -> _Parts:
        yield from self._late(attrgetter("per_s"))
        for row in self._found.of(LOSSES.table):  # lost messages wait until a broker loses them, a second at least
            subject = f"{row.queue.group} {row.queue.topic}"
            yield _Part(subject, row.causes, float(row.lost), row.queue.name)

    def _lost(self) -> _Parts:
        for row in self._found.of(LOSSES.table):
            yield _Part(row.queue.group, row.causes, float(row.lost), row.queue.name)

    def _lost_topics(self) -> _Parts:
        for row in self._found.of(LOST_TOPICS):
            chain = self._attribution.fates.without_topic(row.broker_name, row.old_master, row.start_ns)
            yield _Part(row.topic, of_chains(((chain, 1),)), 1.0, "", row.start_ns)

    def _given_up(self, kind: SymptomKind) -> _Parts:
        for row in self._found.of(BUSINESS_LOSSES.table):
            if GIVEN_UP_AS[row.reason] is kind:
                yield _Part(f"{row.group} {row.topic}".strip(), row.causes, float(row.messages), "", row.start_ns)

    def _deliveries(self) -> _Parts:
        for row in self._found.of(DELAYED.table):
            yield _Part(row.topic, row.causes, row.late_ns / NS_PER_S, "", row.late_from_ns)

    def _transactions(self) -> _Parts:
        for row in self._found.of(TRANSACTIONS.table):
            yield _Part(row.topic, row.causes, float(row.both), "", row.both_committed_ns)

    def _checked(self) -> _Parts:
        for row in self._found.of(TRANSACTIONS.table):
            if row.put_aside:
                chain = self._attribution.fates.undecided((row.start_ns, row.put_aside_ns))
                causes = of_chains(((chain, row.put_aside),))
                yield _Part(row.topic, causes, float(row.put_aside), "", row.put_aside_ns)

    def _popped_again(self) -> _Parts:
        for row in self._found.of(POPPED.table):
            again = row.consumed_and_revived + row.consumed_after_revival
            chain = self._attribution.fates.unacknowledged(row.queue.broker_name)
            yield _Part(row.queue.group, of_chains(((chain, again),)), float(again), row.queue.name)

    def _denied(self) -> _Parts:
        for row in self._found.of(DENIED):
            chain = self._attribution.fates.denied(row.start_ns)
            yield _Part(row.user or row.client, of_chains(((chain, row.denied),)), float(row.denied), "", row.start_ns)

    def _stalled(self) -> _Parts:
        for row in self._found.of(STALLS.table):
            yield _of_queue(row, _seconds(row))

    def _failing(self) -> _Parts:
        for row in self._found.of(LISTENER_FAILURES):
            causes = of_chains(((ruled(RuleOfRocketMQ.FAILING), row.failures),))
            yield _Part(row.queue.group, causes, float(row.failures), row.queue.name, row.since_ns)

    def _offsets_back(self) -> _Parts:
        for row in self._found.of(OFFSET_REGRESSIONS.table):
            amount = float(row.expected - row.offset)
            yield _Part(row.queue.group, row.causes, amount, row.queue.name, row.t_ns)

    # --- owners ---------------------------------------------------------------------------

    def _overlaps(self) -> _Parts:
        return (_of_queue(row, row.active_ns / NS_PER_S) for row in self._found.of(OVERLAPS.table))

    def _orphans(self) -> _Parts:
        return (_of_queue(row, _seconds(row)) for row in self._found.of(ORPHANS.table))

    def _views(self) -> _Parts:
        for row in self._found.of(VIEWS.table):
            if row.kind in KINDS_OF_VIEWS:
                group = row.subject.partition("/")[0]
                yield _Part(group, row.causes, row.active_ns / NS_PER_S, "", _middle_ns(row))

    def _churn(self) -> _Parts:
        for hold in self._found.of(HOLDS):
            causes = self._attribution.of_acquisition(hold.queue, hold.node, hold.start_ns)
            yield _Part(f"{hold.queue.group} {hold.queue.topic}", causes, 1.0, hold.queue.name, hold.start_ns)

    def _notifications(self) -> _Parts:
        notifications = self._measured.notifications()
        yield _Part("", self._attribution.of_notifications(notifications), float(sum(notifications.values())))

    # --- calls ----------------------------------------------------------------------------

    def _failed_sends(self) -> _Parts:
        for sends in self._measured.failed_sends():
            causes = self._attribution.of_failed_sends(*sends[:5])
            yield _Part(sends.producer, causes, float(sends.attempts), "", sends.second * NS_PER_S)

    def _storms(self) -> _Parts:
        for row in self._found.of(STORMS):
            causes = self._attribution.of_storm(row.client, row.server, (row.start_ns, row.end_ns))
            yield _Part(f"{row.server} {row.request}", causes, float(row.exchanges), "", row.start_ns)

    def _unwritable(self) -> _Parts:
        for row in self._found.of(UNWRITABLE):
            causes = self._attribution.of_unwritable(row.topic, (row.start_ns, row.end_ns))
            yield _Part(row.topic, causes, _seconds(row), "", row.start_ns)

    def _stale_routes(self) -> _Parts:
        for row in self._found.of(STALE_ROUTES):
            causes = self._attribution.of_stale_route(row.node, row.topic, (row.start_ns, row.end_ns))
            yield _Part(row.topic, causes, _seconds(row), "", row.start_ns)

    def _without_proxy(self) -> _Parts:
        for row in self._found.of(WITHOUT_PROXY):
            causes = self._attribution.of_unreached(row.node, row.endpoints.split(";"), (row.start_ns, row.end_ns))
            yield _Part(row.endpoints, causes, _seconds(row), "", row.start_ns)

    def _failed_starts(self) -> _Parts:
        for row in self._found.of(FAILED_STARTS):
            causes = self._attribution.of_failed_start(row.node, (row.start_ns, row.end_ns))
            yield _Part(row.node, causes, _seconds(row), "", row.start_ns)

    def _busy(self) -> _Parts:
        for row in self._found.of(BUSY_BROKERS.table):
            causes = self._attribution.of_busy(row.node, (row.start_ns, row.end_ns))
            yield _Part(f"{row.node} {row.pool}", causes, _seconds(row), "", row.start_ns)


def _of_queue(row: Any, amount: float) -> _Part:
    return _Part(row.queue.group, row.causes, amount, row.queue.name, _middle_ns(row))


def _seconds(row: Any) -> float:
    return float(row.end_ns - row.start_ns) / NS_PER_S


def _middle_ns(row: Any) -> int:
    return int(row.start_ns + (row.end_ns - row.start_ns) // 2)


def _densest_ns(instants: Iterable[int]) -> int:
    """The last instant in the second that has most of them: what is wrong then is there."""
    by_second: dict[int, list[int]] = {}
    for t_ns in instants:
        by_second.setdefault(t_ns // NS_PER_S, []).append(t_ns)
    densest = max(by_second, key=lambda second: (len(by_second[second]), -second))
    return max(by_second[densest])
