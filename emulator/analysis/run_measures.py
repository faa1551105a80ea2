"""The measures of a run: one number each, by which runs and variants are compared. Smaller is better."""

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from emulator.analysis.findings.table import Findings
from emulator.analysis.inputs.applications import of_applications
from emulator.analysis.inputs.services import Servers
from emulator.analysis.measures.hand_overs import HAND_OVERS
from emulator.analysis.measures.lag import LAG_SERIES, LATENCIES
from emulator.analysis.measures.measured import DUPLICATES
from emulator.analysis.measures.phases import AGREEMENT
from emulator.analysis.measures.rebalances import REBALANCES
from emulator.analysis.measures.stale_routes import STALE_ROUTES
from emulator.analysis.measures.traffic import ATTEMPTS, STORMS
from emulator.analysis.measures.without_proxy import WITHOUT_PROXY
from emulator.analysis.measures.writability import UNWRITABLE
from emulator.analysis.oracles.business_losses import BUSINESS_LOSSES
from emulator.analysis.oracles.key_order import KEY_ORDER
from emulator.analysis.oracles.lost_messages import LOSSES
from emulator.analysis.oracles.offset_regressions import OFFSET_REGRESSIONS
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.popped_messages import POPPED
from emulator.analysis.oracles.special_services import SERVICES
from emulator.analysis.oracles.stalls import STALLS
from emulator.analysis.oracles.start_offsets import START_OFFSETS
from emulator.analysis.oracles.views import VIEWS, whole_views


@attrs.frozen
class Measure:
    """One number about a run."""

    name: str
    """With its unit."""
    heading: str
    """Of its column or row in tables; without its unit."""
    phrase: str
    """Begins a sentence that goes on with an amount: `12.3 s less per run`."""
    doc: str
    of: Callable[[Findings], float]


MEASURES: tuple[Measure, ...] = (
    Measure(
        "views_s",
        "views differ",
        "consumers held different views",
        "subject-seconds in which consumers held different views",
        lambda item: _seconds(whole_views(item.of(VIEWS.table))),
    ),
    Measure(
        "overlap_s",
        "two owners",
        "queues had two owners",
        "queue-seconds with two owners",
        lambda item: _seconds(item.of(OVERLAPS.table)),
    ),
    Measure(
        "active_overlap_s",
        "two awake",
        "queues had two owners that were awake",
        "queue-seconds with two owners that were awake",
        lambda item: sum(row.active_ns for row in item.of(OVERLAPS.table)) / 1e9,
    ),
    Measure(
        "orphan_s",
        "no owner",
        "queues had no owner",
        "queue-seconds without an owner",
        lambda item: _seconds(item.of(ORPHANS.table)),
    ),
    Measure(
        "stalled_s",
        "stalled",
        "queues with a backlog stood still",
        "queue-seconds with a backlog and without progress",
        lambda item: _seconds(of_applications(item.of(STALLS.table))),
    ),
    Measure(
        "pause_longest_s",
        "longest pause",
        "the longest pause of a queue took",
        "longest pause of a queue that changed hands; at least that long if it had not ended",
        lambda item: max((row.pause_ns for row in item.of(HAND_OVERS)), default=0) / 1e9,
    ),
    Measure(
        "duplicates",
        "again",
        "the messages that were consumed again were",
        "messages consumed again",
        lambda item: float(sum(row.duplicates for row in item.of(DUPLICATES))),
    ),
    Measure(
        "keys_overtaken",
        "keys out of order",
        "the messages that came after a later one of their key were",
        "messages that came for the first time after a later one of their key",
        lambda item: float(sum(row.overtaken for row in item.of(KEY_ORDER.table))),
    ),
    Measure(
        "keys_two_s",
        "keys at two consumers",
        "keys were at two consumers at once",
        "key-seconds with listeners of two consumers inside messages of the key",
        lambda item: sum(row.two_ns for row in item.of(KEY_ORDER.table)) / 1e9,
    ),
    Measure(
        "lost",
        "lost",
        "the lost messages were",
        "messages that will not be consumed",
        lambda item: float(sum(row.lost for row in item.of(LOSSES.table))),
    ),
    Measure(
        "popped_lost",
        "popped and lost",
        "the popped messages that no consumer will get were",
        "messages that were popped, and then neither acknowledged nor revived",
        lambda item: float(sum(row.lost for row in item.of(POPPED.table))),
    ),
    Measure(
        "popped_again",
        "popped again",
        "the popped messages that were consumed and revived were",
        "messages that were popped, consumed, and then revived to be consumed again",
        lambda item: float(sum(row.consumed_and_revived for row in item.of(POPPED.table))),
    ),
    Measure(
        "given_up",
        "given up",
        "the messages that RocketMQ gave up were",
        "messages that RocketMQ gave up by its own rules: dead letters, discards, expiry, resets",
        lambda item: float(sum(row.messages for row in item.of(BUSINESS_LOSSES.table))),
    ),
    Measure(
        "backlog",
        "waiting",
        "the messages that wait in stalled queues were",
        "messages that wait in stalled queues at the end",
        lambda item: float(sum(row.backlog for row in of_applications(item.of(STALLS.table)) if row.censored)),
    ),
    Measure(
        "storm_requests",
        "requests in storms",
        "the requests in storms were",
        "requests without messages that were parts of request storms",
        lambda item: float(sum(row.exchanges for row in item.of(STORMS))),
    ),
    Measure(
        "unwritable_s",
        "no writable queue",
        "topics had no writable queue",
        "topic-seconds in which no nameserver listed a queue that takes messages",
        lambda item: _seconds(item.of(UNWRITABLE)),
    ),
    Measure(
        "failed_sends",
        "failed sends",
        "the attempts to send that failed were",
        "attempts to send that were refused or not answered",
        lambda item: float(sum(row.failed for row in item.of(ATTEMPTS))),
    ),
    Measure(
        "late_p99_s",
        "late p99",
        "the slowest hundredth of the messages took",
        "latency of the slowest hundredth of the messages of a group and a topic, of the worst of them",
        lambda item: max((row.p99_ms for row in of_applications(item.of(LATENCIES))), default=0.0) / 1e3,
    ),
    Measure(
        "lag_most",
        "most lag",
        "the most messages of a topic that waited for a group were",
        "most messages of a topic that waited for a group at once",
        lambda item: float(max((max(row.per_s) for row in of_applications(item.of(LAG_SERIES))), default=0)),
    ),
    Measure(
        "offsets_back",
        "offsets back",
        "the offsets by which groups were set back were",
        "offsets by which groups were set back",
        lambda item: float(
            sum(
                max(0, row.expected - row.offset)
                for row in (*item.of(OFFSET_REGRESSIONS.table), *item.of(START_OFFSETS.table))
            )
        ),
    ),
    Measure(
        "hand_overs",
        "hand-overs",
        "the queues that changed hands were",
        "queues that changed hands",
        lambda item: float(len(item.of(HAND_OVERS))),
    ),
    Measure(
        "moved",
        "moved",
        "the queues that changes of members moved were",
        "queues that had another owner after a change of members",
        lambda item: float(sum(row.moved for row in item.of(REBALANCES))),
    ),
    Measure(
        "balance_degree",
        "imbalance",
        "the members' numbers of queues deviated by",
        "standard deviation of the members' numbers of queues, mean of all changes of members",
        lambda item: _mean(row.balance_degree for row in item.of(REBALANCES)),
    ),
    Measure(
        "settled_longest_s",
        "until settled",
        "the longest time until no queue changed hands took",
        "longest time from a change of members to the last change of an owner",
        lambda item: max((row.settled_ns for row in item.of(REBALANCES)), default=0) / 1e9,
    ),
    Measure(
        "assignment_bytes",
        "assignment bytes",
        "the bytes for members and assignments were",
        "bytes in the bodies of requests for members or assignments, and of their answers",
        lambda item: float(sum(row.bytes for row in item.of(REBALANCES))),
    ),
    Measure(
        "agreement_longest_s",
        "until agreed",
        "the longest time until all agreed took",
        "longest time until all agreed after a disturbance; at least that long if they had not",
        lambda item: max((row.took_ns for row in item.of(AGREEMENT)), default=0) / 1e9,
    ),
    Measure(
        "stale_routes_s",
        "stale routes",
        "clients used stale routes",
        "client-seconds with a route that no nameserver gave",
        lambda item: _seconds(item.of(STALE_ROUTES)),
    ),
    Measure(
        "without_proxy_s",
        "no proxy",
        "clients reached no proxy",
        "client-seconds in which a client of RocketMQ 5 could connect with no proxy",
        lambda item: _seconds(item.of(WITHOUT_PROXY)),
    ),
    Measure(
        "two_services_s",
        "two services",
        "two members of a broker group ran the special services",
        "seconds in which two members of a broker group ran the special services",
        lambda item: _seconds(row for row in item.of(SERVICES.table) if row.servers is Servers.TWO),
    ),
    Measure(
        "no_services_s",
        "no services",
        "no member of a broker group ran the special services",
        "seconds in which no member of a broker group ran the special services",
        lambda item: _seconds(row for row in item.of(SERVICES.table) if row.servers is Servers.NONE),
    ),
)

IMPACT_ORDER = (
    *("lost", "popped_lost", "given_up", "unwritable_s", "without_proxy_s", "stalled_s", "orphan_s"),
    *("active_overlap_s", "storm_requests", "failed_sends", "late_p99_s", "duplicates", "popped_again"),
    *("keys_overtaken", "offsets_back", "pause_longest_s"),
)
"""Names of the measures by which people choose between two options, what matters most first."""
_NOTABLE_SHARE = 0.1
_NOTABLE_S = 0.5


def is_notable(name: str, a: float, b: float) -> bool:
    """Whether two values of a measure differ enough to prefer one: by a tenth, and times by half a second."""
    return abs(a - b) > max(_NOTABLE_SHARE * max(a, b), _NOTABLE_S if name.endswith("_s") else 0.0)


def is_felt(a: float, b: float) -> bool:
    """Whether somebody would feel the difference of two values at all: times by half a second, counts by a half."""
    return abs(a - b) > _NOTABLE_S


def _mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / len(every) if every else 0.0


def _seconds(rows: Iterable[Any]) -> float:
    return float(sum(row.end_ns - row.start_ns for row in rows) / 1e9)


def measures_of(found: Findings) -> dict[str, float]:
    """Mapping name -> value of each measure."""
    return {measure.name: measure.of(found) for measure in MEASURES}
