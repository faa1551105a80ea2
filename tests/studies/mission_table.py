"""`python -m studies.mission_table`: the table of figures in the report of RocketMQ's mission on rebalancing, again.

A million messages are sent to four queues of one broker. Then four consumers start and pull them all: with one
rebalance, that of the start, or with a second one when a member leaves after half of the messages. The report has
milliseconds of three methods on an unknown machine; what can be compared are the ratios between the methods.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import pyarrow.compute as pc
import typer
from rich.console import Console
from rich.table import Table

from emulator.analysis.judge import judge_run
from emulator.run import run_scenario
from emulator.spec import Scenario, from_dict
from emulator.trace.run_directory import open_run
from emulator.trace.schema import MESSAGES, TraceLevel
from studies.bench.trial import run_trial

METHODS: dict[str, dict[str, Any]] = {
    "broker, sticky": {
        "clientRebalance": False,
        "pinnedAssigner": True,
        "allocateMessageQueueStrategy": "STICKY",
    },
    "broker, averagely": {"clientRebalance": False, "pinnedAssigner": True},
    "client, averagely": {},
}
REPORTED_MS = {
    "once": {"broker, sticky": 600181.0, "broker, averagely": 598141.2, "client, averagely": 596016.4},
    "twice": {"broker, sticky": 772540.2, "broker, averagely": 769566.4, "client, averagely": 767317.8},
}
"""Of the report."""
_PRODUCERS, _RATE_PER_S = 40, 100
_READY_S = 3
"""Everything has started by then."""
_CONSUME_MS = 25
"""Of a listener for one message: with 20 of them in each of four consumers a million take about as long as in the
report."""
_MAX_S = 900

_MessagesOption = Annotated[int, typer.Option(min=4_000, help="Messages in all.")]


def mission_table(*, messages: _MessagesOption = 1_000_000) -> None:
    """Run both rebalances with all three methods, and print what each cost."""
    table = Table(title=f"{messages:,} messages, 4 queues, 4 consumers", box=None)
    headings = ("rebalance", "method", "emulated s", "ratio", "reported", "settled s", "deviation", "kept")
    for heading in (*headings, "calculation ms", "CPU s", "MiB"):
        table.add_column(heading, justify="left" if heading in headings[:2] else "right")
    for times, reported in REPORTED_MS.items():
        total_s: dict[str, float] = {}
        for method in reversed(METHODS):  # the one that others are compared with comes first
            found = run_trial(executed, method=method, messages=messages, leaves=times == "twice")
            total_s[method], settled_s, deviation, retained, calculation_ms, cpu_s, mib = found
            table.add_row(
                times,
                method,
                f"{total_s[method]:.2f}",
                f"{total_s[method] / total_s['client, averagely']:.4f}",
                f"{reported[method] / reported['client, averagely']:.4f}",
                f"{settled_s:.2f}",
                f"{deviation:.2f}",
                "" if retained < 0 else f"{retained:.0%}",
                f"{calculation_ms:.3f}",
                f"{cpu_s:.1f}",
                f"{mib:.0f}",
            )
            typer.echo(f"{times}, {method}: {cpu_s:.1f} CPU s", err=True)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def executed(*, method: str, messages: int, leaves: bool) -> list[float]:
    """Run it once.

    Returns:
        Emulated seconds from the first message sent to the last one consumed; then of the last change of members the
        seconds until no queue moved, the standard deviation of the shares, and the part of the queues that kept their
        owner; CPU milliseconds of all calculations of shares, CPU seconds, and MiB at most.
    """
    with tempfile.TemporaryDirectory() as runs:
        begin_s = time.process_time()
        ended = run_scenario(scenario(method, messages, leaves=leaves), level=TraceLevel.FINDINGS, runs=Path(runs))
        run = open_run(ended.path)
        cpu_s = time.process_time() - begin_s
        max_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sent_ns, consumed_ns = _MAX_S * 10**9, 0
        for part in run.trace.tables(MESSAGES, columns=["t_ns", "event"]):
            stored = pc.min(part.filter(pc.equal(part["event"], "stored"))["t_ns"]).as_py()
            consumed = pc.max(part.filter(pc.equal(part["event"], "consumed"))["t_ns"]).as_py()
            sent_ns, consumed_ns = min(sent_ns, stored or sent_ns), max(consumed_ns, consumed or 0)
        last = [row for row in judge_run(run)["rebalances"] if row.members][-1]
        calculation_ms = run.manifest["measured"]["allocation"]["cpu_ms"]
        retained = last.normalised_stickiness if leaves else -1.0
        settled_s, total_s = last.settled_ns / 1e9, (consumed_ns - sent_ns) / 1e9
        return [total_s, settled_s, last.balance_degree, retained, calculation_ms, cpu_s, max_mib]


def scenario(method: str, messages: int, *, leaves: bool) -> Scenario:
    """Producers send while the consumers are away; these come when all is sent."""
    sending_s = messages / (_PRODUCERS * _RATE_PER_S)
    begin_s = _READY_S + sending_s + 5
    consuming_s = messages * _CONSUME_MS / 1000 / (4 * 20)
    gone = [{"do": f"stop consumer-{number}", "at_s": 2, "for_s": begin_s - 2} for number in range(1, 5)]
    done = [{"do": f"kill producer-{number}", "at_s": _READY_S + sending_s} for number in range(1, _PRODUCERS + 1)]
    left = [{"do": "stop consumer-1", "at_s": begin_s + consuming_s / 2}] if leaves else []
    tables = {
        "scenario": {"name": "mission", "seed": 1, "run_for_s": min(_MAX_S, begin_s + 2 * consuming_s + 30)},
        "network": {"delay_ms": 1},
        "nameserver": {"count": 1},
        "broker": [{"name": "broker-a"}],
        "topic": [{"name": "orders", "queues": 4}, {"name": "%RETRY%shop", "queues": 1}],
        "consumer": [
            {"group": "shop", "count": 4, "topics": ["orders"], "consume_ms": _CONSUME_MS, "options": METHODS[method]}
        ],
        "producer": [{"group": "tills", "topic": "orders", "rate_per_s": _RATE_PER_S} for _ in range(_PRODUCERS)],
        "fault": [*gone, *done, *left],
    }
    return from_dict(tables, "the mission's table")


if __name__ == "__main__":
    from studies import mission_table as module  # trials are found by the name of their module

    typer.run(module.mission_table)
