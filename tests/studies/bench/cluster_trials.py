"""Whole clusters, timed: how fast virtual time passes, and how long the demonstration takes to emulate."""

import tempfile
import time
from pathlib import Path

from emulator.cluster.cluster import Cluster
from emulator.machine.world import World, run_world
from emulator.run import run_scenario
from emulator.spec import BrokerSpec, ConsumerGroupSpec, NameserverSpec, Network, Scenario, TopicSpec, load
from emulator.spec.model.scenario import numbered
from emulator.time.mode import TimeMode
from emulator.trace.segments import SegmentWriter
from nodes.config import BrokerConfig
from studies.process_log import open_log

_NS = 1_000_000_000
_SPREAD_MS = 3_000
_QUEUES = 10


def emulated_s_per_s(
    *, nameservers: int, brokers: int, consumers: int, acting: bool, mode: str, settle_s: int, window_s: int
) -> list[float]:
    """Emulated seconds per wall second of a settled cluster with its trace on.

    Args:
        consumers: of one group that subscribes one topic, which has 10 queues on each broker.
        acting: whether brokers beat and ask for the members of their group once a second.
        settle_s: emulated seconds between the end of the start and the first that is timed.
        window_s: emulated seconds that are timed, enough of them for several segments of the trace to be written.
    """
    scenario = _cluster(nameservers, brokers, consumers, acting=acting)

    async def main(world: World) -> list[float]:
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            begin_ns = world.timeline.now_ns + settle_s * _NS
            await world.sleep_until_ns(begin_ns)
            begin = time.perf_counter()
            await world.sleep_until_ns(begin_ns + window_s * _NS)
            return [window_s / (time.perf_counter() - begin)]

    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder) / "log.jsonl"):
        return run_world(
            main,
            mode=TimeMode(mode),
            seed=scenario.seed,
            delay_ms=scenario.network.delay_ms,
            writer=SegmentWriter(Path(folder)),
        )


def demo_emulation_s() -> list[float]:
    """Wall seconds from the demonstration's scenario to its finished run directory."""
    from emulator.cli.demo import SCENARIO
    from emulator.spec.bundled import example

    scenario = load(example(SCENARIO))
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run_scenario(scenario, runs=Path(folder))
        return [time.perf_counter() - begin]


def _cluster(nameservers: int, brokers: int, consumers: int, *, acting: bool) -> Scenario:
    names = numbered("broker", brokers)
    group = ConsumerGroupSpec("order-processors", numbered("consumer", consumers), ("orders",))
    return Scenario(
        name="bench",
        run_for_ms=1,
        start_spread_ms=_SPREAD_MS,
        network=Network(),
        nameservers=tuple(NameserverSpec(name) for name in numbered("ns", nameservers)),
        brokers=tuple(BrokerSpec(name, config=BrokerConfig(enable_slave_acting_master=acting)) for name in names),
        topics=(TopicSpec("orders", names, _QUEUES),),
        consumers=(group,) if consumers else (),
    )
