"""The load of a run so far, from its trace: what nodes ask of one another, and how far groups are behind.

`python -m emulator.console.load_so_far` reads a request as JSON and prints the lines as JSON: a live cluster asks a
process of its own, since reading a long trace takes seconds, in which the cluster would stand still.
"""

import json
import os
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from emulator.analysis.inputs.messages import Messages
from emulator.analysis.inputs.presence import Presence
from emulator.analysis.inputs.progress import Progress
from emulator.analysis.measures.lag import Lags
from emulator.analysis.measures.traffic import Traffic
from emulator.analysis.rows.feed import watch
from emulator.analysis.rows.reader import StoredRows
from emulator.base.printing import print_json
from emulator.console.verb import Lines
from emulator.trace.run_directory import RunDirectory, open_run

_NICE = 10
"""The cluster goes first where cores are few."""
_SHOWN = 8
_S = 1_000_000_000


def lines_of(run: Path, request: Mapping[str, Any]) -> Lines:
    """The lines that a verb prints.

    Args:
        run: directory of the run.
        request: the arguments of `rates` or `lag`, by name.
    """
    answer = rates if "recent_ms" in request else lag
    return answer(open_run(run), **request)


def rates(run: RunDirectory, *, recent_ms: int, now_ns: int) -> Lines:
    """Exchanges of the last milliseconds, the most frequent first, and the request storms that go on."""
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
    most = recent.rates()
    lines += [
        f"{one.exchanges / seconds:8,.1f} a second  {one.request} {one.answer}, busiest {one.client} -> {one.server}"
        for one in most[:_SHOWN]
    ]
    if len(most) > _SHOWN:
        lines.append(f"and {len(most) - _SHOWN} more, all rarer")
    return tuple(lines) or (f"nobody asked anything in the last {seconds} s",)


def lag(run: RunDirectory, *, broker_names: dict[str, str], group: str) -> Lines:
    """The queues in which messages wait for a group, or for any if it is empty."""
    presence = Presence(broker_names)
    messages, progress = Messages(presence), Progress(presence)
    lags = Lags(messages, progress)
    watch(StoredRows(run), (presence, messages, progress, lags))
    behind = [one for one in lags.lags() if one.end and group in ("", one.queue.group)]
    lines = []
    for (name, topic), rows in groupby(behind, key=lambda one: (one.queue.group, one.queue.topic)):
        queues = list(rows)
        where = ", ".join(f"{one.queue.broker_name} q{one.queue.queue_id}{_of(one.node)} {one.end:,}" for one in queues)
        lines.append(f"{name} is {sum(one.end for one in queues):,} messages of {topic} behind: {where}")
    return tuple(lines) or ("no message waits",)


def _of(node: str) -> str:
    return f" of {node}" if node else ""


if __name__ == "__main__":
    os.nice(_NICE)
    print_json(json.dumps(lines_of(Path(sys.argv[1]), json.load(sys.stdin))))
