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
from emulator.analysis.traffic import Storm

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


class SymptomKind(StrEnum):
    """What is loud."""

    LOST = "lost messages"
    STORM = "request storm"
    UNWRITABLE = "no writable queue"
    LAG = "consumer lag"
    LATENCY = "late messages"
    FAILED_SENDS = "failed sends"
    STALLED = "stalled queues"


@attrs.frozen
class Symptom:
    """One symptom."""

    kind: SymptomKind
    loudness: float
    """How many times it is above the limit of healthy runs."""
    start_ns: int
    """When it was loudest, or began."""
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
        yield Symptom(SymptomKind.LOST, float("inf"), 0, f"{group} will never get {lost:,} messages")


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


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} clients ({names[0]}, {names[1]}, …)"
