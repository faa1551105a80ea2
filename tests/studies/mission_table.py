"""`python -m studies.mission_table`: the table of figures in the report of RocketMQ's mission on rebalancing, again.

The runs are those of the campaign `mission` of the package. The report has milliseconds of three methods on an unknown
machine; what can be compared are the ratios between the methods.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import attrs
import pyarrow.compute as pc
import typer
from rich.console import Console
from rich.table import Table

from emulator.analysis.judge import judge_run
from emulator.campaign.file import load_campaign
from emulator.cli.terminal import progress_bar
from emulator.run import run_scenario
from emulator.spec import Scenario
from emulator.trace.run_directory import RunDirectory, open_run
from emulator.trace.schema import BELIEFS, MESSAGES, PASSES, TraceLevel
from nodes.allocation.calculation import calculation_ns
from nodes.config.allocation_time import AllocationTime
from studies.bench.trial import run_trial

METHODS = ("client-averagely", "broker-averagely", "broker-sticky")
"""Variants of the campaign; the others are compared with the first."""
REPORTED_MS = {
    "once": {"broker-sticky": 600181.0, "broker-averagely": 598141.2, "client-averagely": 596016.4},
    "twice": {"broker-sticky": 772540.2, "broker-averagely": 769566.4, "client-averagely": 767317.8},
}
"""Of the report, by condition of the campaign."""
_MESSAGES = 1_000_000
_TOPIC, _QUEUES = "orders", 4
_HEADINGS = (
    *("rebalance", "method", "emulated s", "more ms", "ratio", "reported s", "more ms", "ratio"),
    *("calculated ms", "settled s", "deviation", "kept"),
)

_MessagesOption = Annotated[int, typer.Option(min=10_000, max=_MESSAGES, help="Messages in all.")]


@attrs.frozen
class MissionRun:
    """What one run has cost."""

    total_s: float
    """Emulated, from the first message sent to the last one consumed."""
    calculated_ms: float
    """Emulated time of all calculations of the topic together, at members or at the broker."""
    settled_s: float
    """From the last change of members until no queue moved."""
    deviation: float
    """Standard deviation of the members' numbers of queues after that."""
    retained: float
    """Part of the queues that kept their owner, of those that could."""
    python_ms: float
    """CPU that the emulator takes for all allocations, which is no time of the run."""
    cpu_s: float
    mib: float
    """Most memory of the process."""


def mission_table(*, messages: _MessagesOption = _MESSAGES) -> None:
    """Run both rebalances with all three methods, and print what each cost, next to what was reported."""
    begin_s = time.monotonic()
    cases = [(times, method) for times in REPORTED_MS for method in METHODS]
    found: dict[tuple[str, str], MissionRun] = {}
    with progress_bar(f"{len(cases)} runs of {messages:,} messages") as progress:
        for number, (times, method) in enumerate(cases, 1):
            found[times, method] = MissionRun(*run_trial(executed, variant=f"{method}.{times}", messages=messages))
            progress(number / len(cases))
    Console(width=None if sys.stdout.isatty() else 160).print(rendered(found, messages))
    typer.echo(f"{time.monotonic() - begin_s:.0f} s on this machine")


def rendered(found: dict[tuple[str, str], MissionRun], messages: int) -> Table:
    """The table.

    Args:
        found: (condition, method) -> its run.
        messages: how many were sent in each.
    """
    table = Table(title=f"{messages:,} messages, 4 queues, 4 consumers", box=None)
    for heading in (*_HEADINGS, "Python ms", "CPU s", "MiB"):
        table.add_column(heading, justify="left" if heading in _HEADINGS[:2] else "right")
    for (times, method), run in found.items():
        first, reported = found[times, METHODS[0]], REPORTED_MS[times]
        table.add_row(
            *(times, method, f"{run.total_s:.2f}", f"{(run.total_s - first.total_s) * 1_000:.3f}"),
            *(f"{run.total_s / first.total_s:.4f}", f"{reported[method] / 1_000:.1f}"),
            *(f"{reported[method] - reported[METHODS[0]]:.0f}", f"{reported[method] / reported[METHODS[0]]:.4f}"),
            f"{run.calculated_ms:.3f}",
            *(f"{run.settled_s:.2f}", f"{run.deviation:.2f}", f"{run.retained:.0%}" if times == "twice" else ""),
            *(f"{run.python_ms:.3f}", f"{run.cpu_s:.1f}", f"{run.mib:.0f}"),
        )
    return table


def executed(*, variant: str, messages: int) -> list[float]:
    """Run a variant of the campaign once; returns the values of `MissionRun`, in its order."""
    with tempfile.TemporaryDirectory() as runs:
        begin_s = time.process_time()
        ended = run_scenario(scenario_of(variant, messages), level=TraceLevel.FINDINGS, runs=Path(runs))
        run = open_run(ended.path)
        cpu_s = time.process_time() - begin_s
        max_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        sent_ns: list[int] = []
        consumed_ns: list[int] = []
        for part in run.trace.tables(MESSAGES, columns=["t_ns", "event"]):
            sent_ns.append(pc.min(part.filter(pc.equal(part["event"], "stored"))["t_ns"]).as_py())
            consumed_ns.append(pc.max(part.filter(pc.equal(part["event"], "consumed"))["t_ns"]).as_py())
        total_s = (max(filter(None, consumed_ns)) - min(filter(None, sent_ns))) / 1e9
        last = [row for row in judge_run(run)["rebalances"] if row.members][-1]
        return list(
            attrs.astuple(
                MissionRun(
                    total_s=total_s,
                    calculated_ms=calculated_ns(run, method=variant.rpartition(".")[0]) / 1e6,
                    settled_s=last.settled_ns / 1e9,
                    deviation=last.balance_degree,
                    retained=last.normalised_stickiness,
                    python_ms=run.manifest["measured"]["allocation"]["cpu_ms"],
                    cpu_s=cpu_s,
                    mib=max_mib,
                )
            )
        )


def calculated_ns(run: RunDirectory, method: str) -> int:
    """How long all calculations of the topic have taken; those of a broker are its allocations in the trace."""
    strategy = "STICKY" if method == "broker-sticky" else "AVG"
    if method == METHODS[0]:
        rows = [row for part in run.trace.tables(PASSES) for row in part.to_pylist() if row["topic"] == _TOPIC]
        sizes = [(row["queues"], row["members"], 1) for row in rows if row["members"] and row["queues"]]
    else:
        rows = [row for part in run.trace.tables(BELIEFS) for row in part.to_pylist() if row["kind"] == "allocation"]
        members = [len(json.loads(row["value"])["shares"]) for row in rows if row["subject"].endswith(f"/{_TOPIC}")]
        sizes = [(_QUEUES, number, number) for number in members]
    return sum(
        calculation_ns(AllocationTime.MICROSECONDS, strategy, queues, number, shares=shares)
        for queues, number, shares in sizes
    )


def scenario_of(variant: str, messages: int) -> Scenario:
    """The scenario of a variant of the campaign, with so many messages in the same time."""
    campaign = load_campaign(Path("mission"))
    scenario = next(item.scenario for item in campaign.variants if item.name == variant)
    producers = tuple(
        attrs.evolve(
            producer,
            rate_per_s=max(1, producer.rate_per_s * messages // _MESSAGES),
            messages=producer.messages * messages // _MESSAGES,
        )
        for producer in scenario.producers
    )
    return attrs.evolve(scenario, producers=producers)


if __name__ == "__main__":
    from studies import mission_table as module  # trials are found by the name of their module

    typer.run(module.mission_table)
