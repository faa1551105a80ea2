"""Verbs that tell the load of a cluster: what its nodes ask of one another, and how far groups are behind.

They read the trace of the run so far, as `rmqemu analyze` does when it has ended, so both tell the same.
"""

from collections.abc import Callable
from itertools import groupby
from typing import TypeVar

import trio

from emulator.base.text import nearest
from emulator.console.session import Session
from emulator.console.timing import span_ms
from emulator.console.verb import Lines, Verb, VerbError, Words
from emulator.spec.model import Scenario
from emulator.trace.run_directory import RunDirectory, open_run

_RECENT_MS = 10_000
_SHOWN = 8
_S = 1_000_000_000


T = TypeVar("T")


async def _read(session: Session, read: Callable[[RunDirectory], T]) -> T:
    """Read the trace of the run so far.

    In `live` another thread reads it, since the cluster goes on meanwhile; in virtual time it stands still.

    Raises:
        VerbError: the trace cannot be written.
    """
    session.flush_trace()
    run = open_run(session.run_directory)
    if session.cluster.world.clock.follows_wall:
        return await trio.to_thread.run_sync(read, run)
    return read(run)


async def _rates(session: Session, words: Words) -> Lines:
    """Exchanges of the last seconds, the most frequent first, and the request storms that go on."""
    recent_ms = span_ms(words[0]) if words else _RECENT_MS
    now_ns = session.now_ms * 1_000_000
    return await _read(session, lambda run: _rates_of(run, recent_ms, now_ns))


def _rates_of(run: RunDirectory, recent_ms: int, now_ns: int) -> Lines:
    from emulator.analysis.measures.traffic import Traffic  # noqa: PLC0415 - else the start of every command would wait for it
    from emulator.analysis.rows.feed import watch  # noqa: PLC0415
    from emulator.analysis.rows.reader import StoredRows  # noqa: PLC0415

    rows = StoredRows(run)
    seconds = max(1, round(recent_ms / 1_000))
    frames = list(rows.frames())
    recent = Traffic([one for one in frames if one.second >= now_ns // _S - seconds], now_ns)
    whole = Traffic(frames, now_ns)
    watch(rows, (whole,))
    lines = [
        f"request storm: {one.client} -> {one.server}: {one.request} answered {one.answer}, {one.per_s:,.0f} a second "
        f"since {one.start_ns / _S:.0f} s, healthy is {one.healthy_per_s:g}"
        for one in whole.storms()
        if one.censored
    ]
    rates = recent.rates()
    lines += [
        f"{one.exchanges / seconds:8,.1f} a second  {one.request} {one.answer}, busiest {one.client} -> {one.server}"
        for one in rates[:_SHOWN]
    ]
    if len(rates) > _SHOWN:
        lines.append(f"and {len(rates) - _SHOWN} more, all rarer")
    return tuple(lines) or (f"nobody asked anything in the last {seconds} s",)


async def _lag(session: Session, words: Words) -> Lines:
    """The queues in which messages wait for a group."""
    scenario, now_ns = session.cluster.scenario, session.now_ms * 1_000_000
    groups = tuple(dict.fromkeys(one.group for one in scenario.consumers))
    if words and words[0] not in groups:
        raise VerbError(nearest("group", words[0], groups))
    return await _read(session, lambda run: _lag_of(run, scenario, now_ns, words))


def _lag_of(run: RunDirectory, scenario: Scenario, now_ns: int, groups: Words) -> Lines:
    from emulator.analysis.inputs.facts import facts_of  # noqa: PLC0415 - else the start of every command would wait for it
    from emulator.analysis.inputs.messages import Messages  # noqa: PLC0415
    from emulator.analysis.inputs.presence import Presence  # noqa: PLC0415
    from emulator.analysis.inputs.progress import Progress  # noqa: PLC0415
    from emulator.analysis.measures.lag import Lags  # noqa: PLC0415
    from emulator.analysis.rows.feed import watch  # noqa: PLC0415
    from emulator.analysis.rows.reader import StoredRows  # noqa: PLC0415

    presence = Presence(facts_of(scenario, now_ns).broker_names)
    messages, progress = Messages(presence), Progress(presence)
    lags = Lags(messages, progress)
    watch(StoredRows(run), (presence, messages, progress, lags))
    behind = [one for one in lags.lags() if one.end and (not groups or one.queue.group in groups)]
    lines = []
    for (group, topic), rows in groupby(behind, key=lambda one: (one.queue.group, one.queue.topic)):
        queues = list(rows)
        where = ", ".join(f"{one.queue.broker_name} q{one.queue.queue_id}{_of(one.node)} {one.end:,}" for one in queues)
        lines.append(f"{group} is {sum(one.end for one in queues):,} messages of {topic} behind: {where}")
    return tuple(lines) or ("no message waits",)


def _of(node: str) -> str:
    return f" of {node}" if node else ""


LOAD = (
    Verb("rates", "[FOR]", "what nodes asked of one another in the last 10s, or FOR, and request storms", _rates, 0, 1),
    Verb("lag", "[GROUP]", "messages that wait for groups, by queue", _lag, 0, 1),
)
