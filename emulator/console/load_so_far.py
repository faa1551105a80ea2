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

from emulator.analysis.inputs.messages import TracedMessages
from emulator.analysis.measures.lag import Lags
from emulator.analysis.measures.traffic import Traffic
from emulator.base.printing import print_json
from emulator.console.verb import Lines
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import watch
from emulator.history.rows.reader import StoredRows
from emulator.trace.run_directory import RunDirectory, open_run
from nodes.units import NS_PER_S

_NICE = 10
"""The cluster goes first where cores are few."""
_SHOWN = 8


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
    recent = Traffic([frame for frame in frames if frame.second >= now_ns // NS_PER_S - seconds], now_ns)
    whole = Traffic(frames, now_ns)
    watch(rows, (whole,))
    lines = [
        f"request storm: {storm.client} -> {storm.server}: {storm.request} answered {storm.answer}, "
        f"{storm.per_s:,.0f} a second since {storm.start_ns / NS_PER_S:.0f} s, healthy is {storm.healthy_per_s:g}"
        for storm in whole.storms()
        if storm.censored
    ]
    maximum = recent.rates()
    lines += [
        f"{item.exchanges / seconds:8,.1f} a second  {item.request} {item.answer}, "
        f"busiest {item.client} -> {item.server}"
        for item in maximum[:_SHOWN]
    ]
    if len(maximum) > _SHOWN:
        lines.append(f"and {len(maximum) - _SHOWN} more, all rarer")
    return tuple(lines) or (f"no one asked anything in the last {seconds} s",)


def lag(run: RunDirectory, *, broker_names: dict[str, str], group: str) -> Lines:
    """The queues in which messages wait for a group, or for any if it is empty."""
    presence = Presence(broker_names)
    messages, progress = TracedMessages(presence), GroupProgress(presence)
    lags = Lags(messages, progress)
    watch(StoredRows(run), (presence, messages, progress, lags))
    behind = [item for item in lags.lags() if item.end and group in ("", item.queue.group)]
    lines = []
    for (name, topic), rows in groupby(behind, key=lambda item: (item.queue.group, item.queue.topic)):
        queues = list(rows)
        where = ", ".join(
            f"{queue.queue.broker_name} q{queue.queue.queue_id}{_of(queue.node)} {queue.end:,}" for queue in queues
        )
        lines.append(f"{name} is {sum(queue.end for queue in queues):,} messages of {topic} behind: {where}")
    return tuple(lines) or ("no message waits",)


def _of(node: str) -> str:
    return f" of {node}" if node else ""


if __name__ == "__main__":
    os.nice(_NICE)
    print_json(json.dumps(lines_of(Path(sys.argv[1]), json.load(sys.stdin))))
