"""The symptoms of a run: what would page whoever operates the cluster, the loudest first.

A symptom has a measure that healthy runs do not exceed, and is as loud as it is
times above that; lost messages are louder than anything. Symptoms are not judged:
RocketMQ as shipped has some of them after each fault.
"""

from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from operator import attrgetter

import attrs

from emulator.analysis.findings import Report
from emulator.analysis.rebalances import RebalanceCost
from emulator.analysis.traffic import Storm
from nodes.protocol.codes import RequestCode

_NS = 1_000_000_000
_LAG_S = 10
"""Two commit periods: `mqadmin consumerProgress` shows so much of a healthy group now and then."""
_LAG_LEAST = 20
"""Fewer messages page nobody, however rarely others arrive."""
_LATENCY_MS = 5_000.0
_FAILED_PCT = 1.0
_UNWRITABLE_S = 1.0
_STALLED_S = 30.0
"""The longest pause of a queue while a client learns of a change by its polls."""
_STALE_S = 31.0
"""Clients poll their routes every 30 s."""
_FAN_OUT_PCT = 20.0
_FAN_OUT_LEAST_PER_S = 1_000
"""Fewer notifications a second burden nobody."""
_AGAIN_PCT = 1.0
_AGAIN_LEAST = 20
"""A rebalance lets some messages be consumed again."""
_SPREAD = 2.0
"""The busiest member has so many times the queues of the least busy one."""


class SymptomKind(StrEnum):
    """What is loud."""

    LOST = "lost messages"
    STORM = "request storm"
    UNWRITABLE = "no writable queue"
    LAG = "consumer lag"
    LATENCY = "late messages"
    FAILED_SENDS = "failed sends"
    STALLED = "stalled queues"
    AGAIN = "messages consumed again"
    CHURN = "churn"
    SPREAD = "uneven shares"
    IDLE = "idle members"
    STALE_ROUTES = "stale routes"
    FAN_OUT = "notify fan-out"


@attrs.frozen
class Symptom:
    """One symptom."""

    kind: SymptomKind
    """What is loud, such as `request storm`."""
    loudness: float
    """How many times it is above the limit of healthy runs."""
    start_ns: int
    """When it was loudest, or began; the end, if it is counted over a time."""
    text: str
    """A sentence with what, who, when and how much."""


def symptoms(report: Report) -> tuple[Symptom, ...]:
    """All symptoms of a run, the loudest first."""
    every = (
        *_lost(report),
        *_storms(report),
        *_unwritable(report),
        *_lags(report),
        *_latencies(report),
        *_failed_sends(report),
        *_stalls(report),
        *_again(report),
        *_churn(report),
        *_spread(report),
        *_idle(report),
        *_stale_routes(report),
        *_fan_out(report),
    )
    loud = [one for one in every if one.loudness > 1]
    return tuple(sorted(loud, key=lambda one: (-one.loudness, one.start_ns, one.text)))


def loudest(report: Report) -> tuple[Symptom, ...]:
    """The loudest symptom of each kind, the loudest first."""
    found: dict[SymptomKind, Symptom] = {}
    for one in symptoms(report):
        found.setdefault(one.kind, one)
    return tuple(found.values())


def _lost(report: Report) -> Iterator[Symptom]:
    for group, rows in groupby(report.invariants.losses, key=lambda row: row.queue.group):
        lost = sum(row.lost for row in rows)
        yield Symptom(
            SymptomKind.LOST, float("inf"), max(0, report.end_ns - 1), f"{group} will never get {lost:,} messages"
        )


def _storms(report: Report) -> Iterator[Symptom]:
    what = attrgetter("request", "answer", "server")
    for (request, answer, server), same in groupby(sorted(report.load.storms, key=what), key=what):
        storms = list(same)
        clients = list(dict.fromkeys(one.client for one in storms))
        exchanges, start_ns = sum(one.exchanges for one in storms), min(one.start_ns for one in storms)
        lasted_s = (max(one.end_ns for one in storms) - start_ns) / _NS
        often = f"{_each(storms, clients)}, healthy is {storms[0].healthy_per_s:g}"
        text = (
            f"{_listed(clients)} asked {server} {exchanges:,} times in {lasted_s:.0f} s ({often}), "
            f"from {start_ns / _NS:.0f} s on: {request} answered {answer}"
        )
        loudness = sum(one.per_s / one.healthy_per_s for one in storms)
        yield Symptom(SymptomKind.STORM, loudness, start_ns, text)


def _each(storms: list[Storm], clients: list[str]) -> str:
    per_s = sum(one.per_s for one in storms) / len(storms)
    return f"{per_s:,.0f} a second" if len(clients) == 1 else f"{per_s:,.0f} a second each"


def _unwritable(report: Report) -> Iterator[Symptom]:
    for topic, rows in groupby(report.load.unwritable, key=attrgetter("topic")):
        spans = list(rows)
        lasted_s = sum(one.end_ns - one.start_ns for one in spans) / _NS
        text = f"{topic} had no writable queue for {lasted_s:.1f} s from {spans[0].start_ns / _NS:.1f} s on"
        yield Symptom(SymptomKind.UNWRITABLE, lasted_s / _UNWRITABLE_S, spans[0].start_ns, text)


def _lags(report: Report) -> Iterator[Symptom]:
    consumed = {(one.group, one.topic): one.messages for one in report.load.latencies}
    for one in report.load.waiting:
        lasting, since_s = one.lasting(_LAG_S)
        per_s = (consumed.get((one.group, one.topic), 0) + one.per_s[-1]) * _NS / report.end_ns
        behind_s = lasting / per_s if per_s and lasting >= _LAG_LEAST else 0.0
        text = (
            f"{one.group} was {lasting:,} messages of {one.topic} behind, or more, for {_LAG_S} s from {since_s} s on: "
            f"as many as arrive in {behind_s:.0f} s"
        )
        yield Symptom(SymptomKind.LAG, behind_s / _LAG_S, since_s * _NS, text)


def _latencies(report: Report) -> Iterator[Symptom]:
    for one in report.load.latencies:
        text = (
            f"a message of {one.topic}, stored at {one.slowest_ns / _NS:.1f} s, took {one.most_ms / 1_000:.1f} s to "
            f"{one.group}, one in a hundred {one.p99_ms / 1_000:.1f} s or more"
        )
        yield Symptom(SymptomKind.LATENCY, one.p99_ms / _LATENCY_MS, one.slowest_ns, text)


def _failed_sends(report: Report) -> Iterator[Symptom]:
    for one in report.load.sends:
        attempts = one.acknowledged + one.failed
        share_pct = 100 * one.failed / attempts
        text = (
            f"{one.failed:,} of {attempts:,} attempts of {one.producer} to send failed "
            f"({one.refused:,} refused, {one.unanswered:,} unanswered), most of them at {one.most_s} s"
        )
        yield Symptom(SymptomKind.FAILED_SENDS, share_pct / _FAILED_PCT, max(0, one.most_s) * _NS, text)


def _stalls(report: Report) -> Iterator[Symptom]:
    stalls = sorted(report.invariants.stalls, key=lambda row: (row.queue, row.start_ns))
    for group, rows in groupby(stalls, key=lambda row: row.queue.group):
        longest = max(rows, key=lambda row: row.end_ns - row.start_ns)
        queue, lasted_s = longest.queue, (longest.end_ns - longest.start_ns) / _NS
        where = f"{queue.topic} {queue.broker_name} q{queue.queue_id}"
        text = f"{group} did not move in {where} for {lasted_s:.1f} s from {longest.start_ns / _NS:.1f} s on"
        yield Symptom(SymptomKind.STALLED, lasted_s / _STALLED_S, longest.start_ns, text)


def _again(report: Report) -> Iterator[Symptom]:
    rows = sorted(report.limits.duplicates, key=lambda one: one.queue.group)
    for group, same in groupby(rows, key=lambda one: one.queue.group):
        again = sum(one.duplicates for one in same)
        messages = sum(one.messages for one in report.load.latencies if one.group == group)
        if again >= _AGAIN_LEAST and messages:
            share_pct = 100 * again / messages
            text = f"{group} consumed {again:,} messages again, {share_pct:.1f} for each 100 messages"
            yield Symptom(SymptomKind.AGAIN, share_pct / _AGAIN_PCT, max(0, report.end_ns - 1), text)


def _churn(report: Report) -> Iterator[Symptom]:
    for (group, topic), rows in groupby(report.limits.rebalances, key=attrgetter("group", "topic")):
        worst = max(rows, key=lambda one: one.acquired / _takes(one))
        text = (
            f"{group} took queues of {topic} {worst.acquired:,} times from {worst.start_ns / _NS:.1f} s to "
            f"{worst.end_ns / _NS:.1f} s; {worst.moved} of {worst.queues} had to move"
        )
        yield Symptom(SymptomKind.CHURN, worst.acquired / _takes(worst), worst.end_ns - 1, text)


def _takes(one: RebalanceCost) -> float:
    """How often queues are taken at most in a healthy rebalance.

    Queues that must move are taken once. Members that join one after the other divide all queues by one, by two, by
    three. And each queue may once come to a wrong member, since members ask different brokers.
    """
    joins = sum(1 / number for number in range(1, len(one.joined) + 1))
    return one.moved + one.queues * (1 + joins) or 1.0


def _spread(report: Report) -> Iterator[Symptom]:
    for one in report.limits.skew:
        if one.topics > 1 and one.most - one.least > 1:
            text = (
                f"at the end a member of {one.group} had {one.most} queues of {one.topics} topics, another {one.least}"
            )
            yield Symptom(SymptomKind.SPREAD, one.most / max(1, one.least) / _SPREAD, report.end_ns, text)


def _idle(report: Report) -> Iterator[Symptom]:
    """A member without a queue, where there are enough: it cannot be that RocketMQ has none to give."""
    for one in report.limits.idle:
        avoidable = one.idle - one.unavoidable
        text = f"{avoidable} of {one.members} members of {one.group} had no queue of {one.topic} at the end"
        yield Symptom(SymptomKind.IDLE, 2.0 * avoidable, report.end_ns, text)


def _stale_routes(report: Report) -> Iterator[Symptom]:
    rows = sorted(report.limits.stale_routes, key=attrgetter("topic"))
    for topic, same in groupby(rows, key=attrgetter("topic")):
        stale = list(same)
        longest = max(stale, key=lambda one: one.end_ns - one.start_ns)
        lasted_s = (longest.end_ns - longest.start_ns) / _NS
        text = (
            f"{longest.node} used a route of {topic} that no nameserver gave any more for {lasted_s:.1f} s from "
            f"{longest.start_ns / _NS:.1f} s on"
        )
        yield Symptom(SymptomKind.STALE_ROUTES, lasted_s / _STALE_S, longest.start_ns, text)


def _fan_out(report: Report) -> Iterator[Symptom]:
    for one in report.load.rates:
        if one.request == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED.name and one.most_per_s >= _FAN_OUT_LEAST_PER_S:
            text = (
                f"brokers told members {one.exchanges:,} times that their group has changed: {one.share_pct:.0f} % of "
                f"all requests, and {one.most_per_s:,} in second {one.most_s}"
            )
            yield Symptom(SymptomKind.FAN_OUT, one.share_pct / _FAN_OUT_PCT, one.most_s * _NS, text)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} clients ({names[0]}, {names[1]}, …)"
