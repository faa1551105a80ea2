"""`python -m studies.growth`: what one group costs as it grows, with a hundred brokers and a rolling restart.

Each member that comes or goes is reported to all members, by each broker: in RocketMQ, too, the notifications grow with
the square of the group.
"""

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from emulator.run import run_scenario
from emulator.spec import Scenario, loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import COUNTS, RPC, TraceLevel
from nodes.protocol.codes import RequestCode
from studies.bench.trial import run_trial

_START_S, _AFTER_S = 60, 600
_RESTARTED = 0.1
_HEAD = """
[scenario]
name = "growth"
seed = 1
run_for_s = {run_for_s}
start_spread_s = 20
[nameserver]
count = 3
[[topic]]
name = "orders"
queues = 8
[[topic]]
name = "%RETRY%shop"
queues = 1
[[consumer]]
group = "shop"
count = {consumers}
topics = ["orders"]
[[producer]]
group = "tills"
topic = "orders"
rate_per_s = 10
"""
_BROKER = '[[broker]]\nname = "broker-{number:03d}"\n'
_RESTART = """
[[fault]]
kind = "restart"
node = "consumer-{number}"
at_s = {at_s:.3f}
for_s = 3
"""


_ConsumersOption = Annotated[list[int] | None, typer.Option(help="Members of the group; repeatable.")]
_BrokersOption = Annotated[int, typer.Option(min=1, help="Broker groups.")]


def growth(*, consumers: _ConsumersOption = None, brokers: _BrokersOption = 100) -> None:
    """Run the start of a group and ten minutes with a rolling restart of a tenth of it, for several sizes."""
    table = Table(
        title=f"3 nameservers, {brokers} brokers, one group: start, then 10 min with 10 % restarted", box=None
    )
    for heading in ("consumers", "frames", "of them NOTIFY", "rows kept", "CPU s", "us/frame", "MiB"):
        table.add_column(heading, justify="right")
    for count in consumers or [100, 300, 1_000]:
        # A process for each: the memory of one is not that of the next.
        frames, notifications, rows, cpu_s, mib = run_trial(executed, consumers=count, brokers=brokers)
        share = f"{notifications:,.0f} ({100 * notifications / frames:.1f} %)"
        cells = f"{count:,}", f"{frames:,.0f}", share, f"{rows:,.0f}"
        table.add_row(*cells, f"{cpu_s:.1f}", f"{1e6 * cpu_s / frames:.1f}", f"{mib:.0f}")
        typer.echo(f"{count:,} consumers: {cpu_s:.1f} CPU s", err=True)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def executed(*, consumers: int, brokers: int) -> list[float]:
    """Run it once, at level `findings`; returns frames, notifications among them, rows, CPU seconds, MiB at most."""
    with tempfile.TemporaryDirectory() as runs:
        begin_s = time.process_time()
        run = open_run(run_scenario(scenario(consumers, brokers), level=TraceLevel.FINDINGS, runs=Path(runs)).path)
        cpu_s = time.process_time() - begin_s
        max_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        frames = run.manifest["rows"][RPC.name]
        notifications = 0
        for part in run.trace.tables(COUNTS, columns=["table", "code", "kind", "rows"]):
            for row in part.to_pylist():
                if row["table"] == RPC.name:
                    frames += row["rows"]
                    is_notification = row["code"] == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED and row["kind"] == "oneway"
                    notifications += row["rows"] if is_notification else 0
        return [frames, notifications, sum(run.manifest["rows"].values()), cpu_s, max_mib]


def scenario(consumers: int, brokers: int) -> Scenario:
    """The start, and a tenth of the consumers restarted one after the other."""
    restarts = max(1, round(consumers * _RESTARTED))
    text = _HEAD.format(run_for_s=_START_S + _AFTER_S, consumers=consumers)
    text += "".join(_BROKER.format(number=number) for number in range(1, brokers + 1))
    for number in range(restarts):
        at_s = _START_S + 20 + number * (_AFTER_S - 60) / restarts
        text += _RESTART.format(number=number + 1, at_s=at_s)
    return loads(text, "growth")


if __name__ == "__main__":
    from studies import growth as module  # trials are found by the name of their module

    typer.run(module.growth)
