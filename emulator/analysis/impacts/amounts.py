"""Impact: how bad each thing is that a report is about, as one number, so that two runs can be compared.

The severity of a symptom is that of its worst moment, and is only there above a limit. Its impact is the sum over the
whole run, also below the limit: messages, or seconds. A disturbance without which a run has half of an impact has half
a share in it.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.findings.table import Findings
from emulator.analysis.inputs.applications import of_applications
from emulator.analysis.inputs.shared import VIEWS as KINDS_OF_VIEWS
from emulator.analysis.measures.denied_requests import DENIED
from emulator.analysis.measures.failed_starts import FAILED_STARTS
from emulator.analysis.measures.lag import LAG_SERIES, LATENCIES
from emulator.analysis.measures.lost_topics import LOST_TOPICS
from emulator.analysis.measures.measured import DUPLICATES, LISTENER_FAILURES
from emulator.analysis.measures.queue_balance import IDLE, QUEUE_BALANCE
from emulator.analysis.measures.rebalances import REBALANCES
from emulator.analysis.measures.stale_routes import STALE_ROUTES
from emulator.analysis.measures.traffic import ATTEMPTS, REQUESTS, STORMS
from emulator.analysis.measures.without_proxy import WITHOUT_PROXY
from emulator.analysis.measures.writability import UNWRITABLE
from emulator.analysis.oracles.business_losses import BUSINESS_LOSSES, GivenUpBy
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
from nodes.protocol.codes import RequestCode
from nodes.protocol.names import is_system_topic
from nodes.units import NS_PER_S

Amount = tuple[str, float]
"""Whom it hits, as `Symptom.subject` has it, and how much of it."""


class Unit(StrEnum):
    """In what an impact is counted."""

    MESSAGES = "messages"
    QUEUES = "queues"
    REQUESTS = "requests"
    ATTEMPTS = "attempts"
    FAILURES = "failures"
    OFFSETS = "offsets"
    TOPICS = "topics"
    MEMBERS = "members"
    SECONDS = "s"
    MESSAGE_SECONDS = "message-seconds"
    QUEUE_SECONDS = "queue-seconds"


class FindingKind(StrEnum):
    """Findings that have an impact and are no symptom."""

    OVERLAPS = "two owners"
    ORPHANS = "no owner"
    VIEWS = "views that differ"
    OFFSETS_BACK = "offsets that fell"


@attrs.frozen(order=True)
class ImpactKey:
    """What has an impact, and whom it hits."""

    kind: SymptomKind | FindingKind
    subject: str
    """As `Symptom.subject`; of findings the group."""


def impacts(found: Findings) -> dict[ImpactKey, float]:
    """The impact of everything that may be a symptom, and of findings about owners, views and offsets.

    Args:
        found: in a run.

    Returns:
        Mapping kind and subject -> amount in `UNITS`; what has no impact is missing.
    """
    amounts: dict[ImpactKey, float] = {}
    for kind, (_, of_kind) in _IMPACTS.items():
        for subject, amount in of_kind(found):
            key = ImpactKey(kind, subject)
            amounts[key] = amounts.get(key, 0.0) + amount
    return {key: amount for key, amount in amounts.items() if amount > 0}


def _seconds(row: Any) -> float:
    return float(row.end_ns - row.start_ns) / NS_PER_S


def _lost(found: Findings) -> Iterator[Amount]:
    return ((row.queue.group, row.lost) for row in found.of(LOSSES.table))


def _given_up(*reasons: GivenUpBy) -> Callable[[Findings], Iterator[Amount]]:
    def amounts(found: Findings) -> Iterator[Amount]:
        rows = found.of(BUSINESS_LOSSES.table)
        return ((f"{row.group} {row.topic}".strip(), row.messages) for row in rows if row.reason in reasons)

    return amounts


def _transactions(found: Findings) -> Iterator[Amount]:
    return ((row.topic, row.both) for row in found.of(TRANSACTIONS.table))


def _again(found: Findings) -> Iterator[Amount]:
    yield from ((row.queue.group, row.duplicates) for row in found.of(DUPLICATES))
    yield from ((row.topic, row.again) for row in found.of(TRANSACTIONS.table))


def _popped_again(found: Findings) -> Iterator[Amount]:
    rows = found.of(POPPED.table)
    return ((row.queue.group, row.consumed_and_revived + row.consumed_after_revival) for row in rows)


def _busy(found: Findings) -> Iterator[Amount]:
    return ((f"{row.node} {row.pool}", _seconds(row)) for row in found.of(BUSY_BROKERS.table))


def _storms(found: Findings) -> Iterator[Amount]:
    return ((f"{row.server} {row.request}", row.exchanges) for row in found.of(STORMS))


def _denied(found: Findings) -> Iterator[Amount]:
    return ((row.user or row.client, row.denied) for row in found.of(DENIED))


def _failed_starts(found: Findings) -> Iterator[Amount]:
    return ((row.node, _seconds(row)) for row in found.of(FAILED_STARTS))


def _without_proxy(found: Findings) -> Iterator[Amount]:
    return ((row.endpoints, _seconds(row)) for row in found.of(WITHOUT_PROXY))


def _lost_topics(found: Findings) -> Iterator[Amount]:
    return ((row.topic, 1) for row in found.of(LOST_TOPICS))


def _checked(found: Findings) -> Iterator[Amount]:
    return ((row.topic, row.put_aside) for row in found.of(TRANSACTIONS.table))


def _unwritable(found: Findings) -> Iterator[Amount]:
    return ((row.topic, _seconds(row)) for row in found.of(UNWRITABLE) if not is_system_topic(row.topic))


def _lag(found: Findings) -> Iterator[Amount]:
    rows = of_applications(found.of(LAG_SERIES))
    return ((f"{row.group} {row.topic}", sum(row.per_s)) for row in rows)


def _late(found: Findings) -> Iterator[Amount]:
    rows = of_applications(found.of(LATENCIES))
    return ((f"{row.group} {row.topic}", row.late_ns / NS_PER_S) for row in rows)


def _deliveries(found: Findings) -> Iterator[Amount]:
    return ((row.topic, row.late_ns / NS_PER_S) for row in found.of(DELAYED.table))


def _failed_sends(found: Findings) -> Iterator[Amount]:
    return ((row.producer, row.failed) for row in found.of(ATTEMPTS))


def _stalled(found: Findings) -> Iterator[Amount]:
    rows = (row for row in found.of(STALLS.table) if any(of_applications((row.queue,))))
    return ((row.queue.group, _seconds(row)) for row in rows)


def _failing(found: Findings) -> Iterator[Amount]:
    return ((row.queue.group, row.failures) for row in found.of(LISTENER_FAILURES))


def _churn(found: Findings) -> Iterator[Amount]:
    return ((f"{row.group} {row.topic}", row.acquired) for row in found.of(REBALANCES))


def _spread(found: Findings) -> Iterator[Amount]:
    return ((row.group, row.maximum - row.minimum) for row in found.of(QUEUE_BALANCE) if row.topics > 1)


def _idle(found: Findings) -> Iterator[Amount]:
    return ((f"{row.group} {row.topic}", row.idle - row.unavoidable) for row in found.of(IDLE))


def _stale_routes(found: Findings) -> Iterator[Amount]:
    return ((row.topic, _seconds(row)) for row in found.of(STALE_ROUTES))


def _notifications(found: Findings) -> Iterator[Amount]:
    name = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED.name
    return (("", row.exchanges) for row in found.of(REQUESTS) if row.request == name)


def _overlaps(found: Findings) -> Iterator[Amount]:
    return ((row.queue.group, row.active_ns / NS_PER_S) for row in found.of(OVERLAPS.table))


def _orphans(found: Findings) -> Iterator[Amount]:
    return ((row.queue.group, _seconds(row)) for row in found.of(ORPHANS.table))


def _views(found: Findings) -> Iterator[Amount]:
    rows = (row for row in found.of(VIEWS.table) if row.kind in KINDS_OF_VIEWS)
    return ((row.subject.partition("/")[0], row.active_ns / NS_PER_S) for row in rows)


def _offsets_back(found: Findings) -> Iterator[Amount]:
    return ((row.queue.group, row.expected - row.offset) for row in found.of(OFFSET_REGRESSIONS.table))


_DISCARDED = (
    *(GivenUpBy.CHECKED_TOO_OFTEN, GivenUpBy.TOO_OLD),
    *(GivenUpBy.ESCAPE_FAILED, GivenUpBy.NO_RETRY_QUEUE),
)
_IMPACTS: Mapping[SymptomKind | FindingKind, tuple[Unit, Callable[[Findings], Iterator[Amount]]]] = {
    SymptomKind.LOST: (Unit.MESSAGES, _lost),
    SymptomKind.TOPIC_LOST: (Unit.TOPICS, _lost_topics),
    SymptomKind.DEAD_LETTERS: (Unit.MESSAGES, _given_up(GivenUpBy.DEAD_LETTER)),
    SymptomKind.DISCARDED: (Unit.MESSAGES, _given_up(*_DISCARDED)),
    SymptomKind.ROLLED_BACK: (Unit.MESSAGES, _given_up(GivenUpBy.ROLLED_BACK_BY_ANOTHER)),
    SymptomKind.EXPIRED: (Unit.MESSAGES, _given_up(GivenUpBy.EXPIRED)),
    SymptomKind.SKIPPED: (Unit.MESSAGES, _given_up(GivenUpBy.RESET)),
    SymptomKind.MISSED: (Unit.MESSAGES, _given_up(GivenUpBy.MISSED_AT_START)),
    SymptomKind.TRANSACTIONS: (Unit.MESSAGES, _transactions),
    SymptomKind.CHECKED: (Unit.MESSAGES, _checked),
    SymptomKind.BUSY: (Unit.SECONDS, _busy),
    SymptomKind.STORM: (Unit.REQUESTS, _storms),
    SymptomKind.DENIED: (Unit.REQUESTS, _denied),
    SymptomKind.NOT_STARTED: (Unit.SECONDS, _failed_starts),
    SymptomKind.WITHOUT_PROXY: (Unit.SECONDS, _without_proxy),
    SymptomKind.UNWRITABLE: (Unit.SECONDS, _unwritable),
    SymptomKind.LAG: (Unit.MESSAGE_SECONDS, _lag),
    SymptomKind.LATENCY: (Unit.MESSAGE_SECONDS, _late),
    SymptomKind.DELIVERY: (Unit.SECONDS, _deliveries),
    SymptomKind.FAILED_SENDS: (Unit.ATTEMPTS, _failed_sends),
    SymptomKind.STALLED: (Unit.QUEUE_SECONDS, _stalled),
    SymptomKind.FAILING: (Unit.FAILURES, _failing),
    SymptomKind.AGAIN: (Unit.MESSAGES, _again),
    SymptomKind.POPPED_AGAIN: (Unit.MESSAGES, _popped_again),
    SymptomKind.CHURN: (Unit.QUEUES, _churn),
    SymptomKind.SPREAD: (Unit.QUEUES, _spread),
    SymptomKind.IDLE: (Unit.MEMBERS, _idle),
    SymptomKind.STALE_ROUTES: (Unit.SECONDS, _stale_routes),
    SymptomKind.FAN_OUT: (Unit.REQUESTS, _notifications),
    FindingKind.OVERLAPS: (Unit.QUEUE_SECONDS, _overlaps),
    FindingKind.ORPHANS: (Unit.QUEUE_SECONDS, _orphans),
    FindingKind.VIEWS: (Unit.SECONDS, _views),
    FindingKind.OFFSETS_BACK: (Unit.OFFSETS, _offsets_back),
}
UNITS: Mapping[SymptomKind | FindingKind, Unit] = {kind: unit for kind, (unit, _) in _IMPACTS.items()}
