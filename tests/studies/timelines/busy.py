"""`python -m studies.timelines.busy`: a busy broker under three loads, and one that loses members, with real ones."""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import attrs
import structlog
from rich.console import Console
from rich.table import Table

from emulator.cli.terminal import progress_bar
from emulator.spec import Scenario, loads
from emulator.testing import Trace, execute
from nodes.protocol.codes import RequestCode, ResponseCode
from studies.timelines.real import TOLERANCE_S

SEEDS = 30
TOLERANCE_SHARE = 0.005
_FIGURES = 5
"""Rows of the table."""
_WARM_S, _LOAD_MS, _EXPIRY_MS = 2, 22_000, 112_000
_HEAD = """
[scenario]
name = "busy"
run_for_s = 3600
seed = {seed}
start_spread_ms = {spread_ms}
[network]
delay_ms = 0
jitter_ms = 2
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ {options} }}
[[topic]]
name = "orders"
queues = 4
"""
_PRODUCER = """
[[producer]]
name = "p-{number}"
group = "till"
topic = "orders"
rate_per_s = 10
options = {{ retryTimesWhenSendFailed = 0 }}
"""
_CONSUMERS = """
[[consumer]]
group = "billing"
topics = ["orders"]
count = 6
"""
_SLOW_SENDS = 'processingTimes = "sendMessage 20.2ms..20.6ms", sendMessageThreadPoolNums = 1'
"""Java sleeps a little longer than 20 ms: the real broker handled 49 sends a second."""
_SLOW_HEARTBEATS = 'processingTimes = "HEART_BEAT 40s", heartbeatThreadPoolNums = 1, channelExpiredTimeout = 60000'


@attrs.frozen
class Measured:
    """A figure of real runs, and of ours."""

    name: str
    real: tuple[float, ...]
    ours: tuple[float, ...]
    tolerance: float
    """What pollers, starts of processes and a busy machine add."""

    @property
    def is_inside(self) -> bool:
        """Whether all real values lie within ours, give or take the tolerance."""
        minimum, maximum = min(self.ours) - self.tolerance, max(self.ours) + self.tolerance
        return minimum <= min(self.real) and max(self.real) <= maximum


def under_load(producers: int, seed: int) -> Scenario:
    """One send thread, 20 ms a send, and producers that send ten a second, one at a time, without retries."""
    head = _HEAD.format(seed=seed, options=_SLOW_SENDS, spread_ms=1_000)
    return loads(head + "".join(_PRODUCER.format(number=number) for number in range(producers)), "busy")


def losing_members(seed: int) -> Scenario:
    """One heartbeat thread, 40 s a heartbeat, and six consumers that expire after 60 s."""
    return loads(_HEAD.format(seed=seed, options=_SLOW_HEARTBEATS, spread_ms=9_000) + _CONSUMERS, "busy")


def refused_share(trace: Trace) -> float:
    """Share of refused sends, after all producers have started."""
    answers = trace.select("rpc", kind="response", event="delivered", code=int(RequestCode.SEND_MESSAGE_V2))
    counts = Counter(row.status == ResponseCode.SYSTEM_BUSY for row in answers if row.at_s > _WARM_S)
    return counts[True] / counts.total()


def first_members_s(trace: Trace) -> tuple[float, float]:
    """When the broker lists the first member, and when it first removes one, in s after the first consumer's start."""
    begun_s = min(row.at_s for row in trace.select("lifecycle", role="consumer", event="started"))
    sizes = [
        (row.at_s - begun_s, len(json.loads(row.value)))
        for row in trace.select("beliefs", kind="consumer_ids", subject="billing")
    ]
    removed_s = next(at_s for (_, before), (at_s, after) in pairwise(sizes) if after < before)
    return sizes[0][0], removed_s


def measured(seeds: range) -> Iterator[Measured]:
    """Each figure, real and ours."""
    real = json.loads(Path(__file__).with_name("real_busy.json").read_text("utf-8"))
    for load in real["loads"]:
        shares = [refused_share(execute(under_load(load["producers"], seed), for_ms=_LOAD_MS)) for seed in seeds]
        name = f"{load['producers']} producers: share of refused sends"
        yield Measured(name, tuple(load["refused_share"]), tuple(shares), TOLERANCE_SHARE)
    instants = [first_members_s(execute(losing_members(seed), for_ms=_EXPIRY_MS)) for seed in seeds]
    for place, key in enumerate(("first_listed_s", "first_removed_s")):
        yield Measured(f"heartbeats: {key}", tuple(real[key]), tuple(item[place] for item in instants), TOLERANCE_S)


def main() -> None:
    """Print the table; status 1 if a real value is outside of ours."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())  # every refusal is a line of a node's log
    table = Table("figure", "real", "ours: minimum", "median", "maximum", "")
    outside = False
    with progress_bar("a busy broker, real and ours") as progress:
        for number, item in enumerate(measured(range(1, SEEDS + 1)), 1):
            figures = (min(item.ours), statistics.median(item.ours), max(item.ours))
            real = " ".join(f"{value:.3f}" for value in item.real)
            table.add_row(item.name, real, *(f"{value:.3f}" for value in figures), "" if item.is_inside else "!")
            outside |= not item.is_inside
            progress(number / _FIGURES)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    sys.exit(1 if outside else 0)


if __name__ == "__main__":
    main()
