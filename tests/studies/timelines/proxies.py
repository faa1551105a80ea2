"""`python -m studies.timelines.proxies`: what clients of a proxy see under faults, real and ours."""

import json
import statistics
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import attrs
import structlog
import trio
from rich.console import Console
from rich.table import Table

from conformance.proxy_probe import BROKER, Probe
from emulator.cli.terminal import progress_bar
from emulator.spec.model.scenario import BrokerSpec, Scenario, TopicSpec
from emulator.testing import Stage
from nodes.config.broker import BrokerConfig
from studies.timelines.busy import Measured
from studies.timelines.proxy_faults import FLOWS, TOPIC, Figures, Process, Watch, code_of
from studies.timelines.real import TOLERANCE_S
from support.our_proxies import UNAVAILABLE, OurProxies
from support.proxy_guest import ProxyGuest, proxies, runs

SEEDS = 30
_CACHE_MS = 20_000
"""Age from which a proxy reads a route again: the fault meets each phase of it."""
_NAMES = {Process.NAMESERVER: "ns-1", Process.BROKER: BROKER, Process.PROXY: "proxy-1"}


@attrs.frozen
class OurProcesses:
    """Emulated processes; implements `Faults`."""

    stage: Stage
    watch: Watch

    async def kill(self, process: Process) -> None:
        await self.stage.kill(_NAMES[process])

    async def start(self, process: Process) -> None:
        self.stage.start(_NAMES[process])
        while process is Process.PROXY and code_of(await self.watch.probe.heartbeat()) == UNAVAILABLE:
            await self.stage.for_ms(20)

    async def freeze(self, process: Process) -> None:
        await self.stage.host(_NAMES[process]).suspend()

    async def thaw(self, process: Process) -> None:
        await self.stage.host(_NAMES[process]).resume()

    async def thaw_under(self, call: Callable[[], Awaitable[None]], after_ms: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await self.stage.for_ms(after_ms)
            await self.thaw(Process.PROXY)


def scenario(seed: int) -> Scenario:
    """A nameserver, a broker and a proxy."""
    broker = BrokerSpec(BROKER, 0, config=BrokerConfig(auto_create_topic_enable=False))
    made = proxies("proxy-1", brokers=(broker,), topics=(TopicSpec(TOPIC, (BROKER,), 1),))
    return attrs.evolve(made, seed=seed)


def figures(seed: int, seeds: int) -> Figures:
    """All figures of one seed."""
    found: Figures = {}
    for flow in FLOWS:

        async def script(stage: Stage, guest: ProxyGuest) -> None:
            await stage.at_ms(5_000)
            watch = Watch(Probe(OurProxies(guest), "faults"), seed * _CACHE_MS // seeds)
            await watch.begin()
            found.update(await flow(watch, OurProcesses(stage, watch)))  # noqa: B023 -- awaited in this turn of the loop

        runs(scenario(seed), script)
    return found


def measured(seeds: int, progress: Callable[[float], None]) -> Iterator[Measured]:
    """Each figure, real and ours; without real values that the file explains."""
    recorded = json.loads(Path(__file__).with_name("real_proxies.json").read_text("utf-8"))
    explained = {name: item["values"] for name, item in recorded["explained"].items()}
    ours: dict[str, list[float]] = {}
    for seed in range(1, seeds + 1):
        for name, value in figures(seed, seeds).items():
            ours.setdefault(name, []).append(value)
        progress(seed / seeds)
    for name, values in recorded["figures"].items():
        real = tuple(value for value in values if value not in explained.get(name, ()))
        yield Measured(name, real, tuple(ours[name]), 0 if "code" in name else TOLERANCE_S)


def main() -> None:
    """Print the table; status 1 if a real value is outside of ours."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    table = Table("figure", "real", "ours: minimum", "median", "maximum", "")
    outside = False
    with progress_bar("faults behind a proxy, real and ours") as progress:
        for item in measured(SEEDS, progress):
            spread = (min(item.ours), statistics.median(item.ours), max(item.ours))
            real = " ".join(f"{value:.2f}" for value in item.real)
            table.add_row(item.name, real, *(f"{value:.2f}" for value in spread), "" if item.is_inside else "!")
            outside |= not item.is_inside
    Console(width=None if sys.stdout.isatty() else 130).print(table)
    sys.exit(1 if outside else 0)


if __name__ == "__main__":
    main()
