"""Groups that lose their masters one after the other, timed."""

import tempfile
import time
from pathlib import Path

from emulator.cluster.cluster import Cluster
from emulator.cluster.operator import ClusterTargets
from emulator.machine.world import World, run_world
from emulator.spec import BrokerSpec, NameserverSpec, Scenario, TopicSpec
from emulator.spec.model.presets import Preset
from emulator.spec.model.scenario import ControllerSpec, numbered
from emulator.state.present_owners import PresentOwners
from emulator.time.mode import TimeMode
from emulator.trace.segments import SegmentWriter
from faults.target import Lead
from nodes.config import BrokerConfig, NameserverConfig
from studies.process_log import open_log

_NS = 1_000_000_000
_REPLICAS = 3
_QUEUES = 4
_DEATH_EVERY_S = 20


def dying_masters_s_per_s(*, groups: int, window_s: int, preset: str = Preset.RIP32) -> list[float]:
    """Emulated seconds per wall second of groups of three, in `sim` and with the trace on.

    A master is killed every 20 s, group by group; it starts again when the next one dies.
    """
    scenario = _groups(groups, Preset(preset))

    names = tuple(dict.fromkeys(spec.broker_name for spec in scenario.brokers))

    async def main(world: World) -> list[float]:
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            targets = ClusterTargets(cluster, PresentOwners())
            dead: tuple[str, ...] = ()
            begin, begin_ns = time.perf_counter(), world.timeline.now_ns
            for death in range(window_s // _DEATH_EVERY_S):
                await world.sleep_until_ns(begin_ns + (death + 1) * _DEATH_EVERY_S * _NS)
                for name in dead:
                    cluster.host(name).start()
                dead = targets.leads(Lead.MASTER, names[death % groups])
                for name in dead:
                    await cluster.host(name).kill()
            await world.sleep_until_ns(begin_ns + window_s * _NS)
            return [window_s / (time.perf_counter() - begin)]

    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder) / "log.jsonl"):
        return run_world(
            main,
            mode=TimeMode.SIM,
            seed=scenario.seed,
            delay_ms=scenario.network.delay_ms,
            writer=SegmentWriter(Path(folder)),
        )


def _groups(groups: int, preset: Preset) -> Scenario:
    names = numbered("broker", groups)
    nameserver = NameserverConfig(**preset.nameserver_options())
    broker = BrokerConfig(**preset.broker_options(_REPLICAS))
    controllers = numbered("controller", 3) if preset.elects_masters else ()
    return Scenario(
        name="bench-groups",
        run_for_ms=1,
        nameservers=tuple(NameserverSpec(name, nameserver) for name in numbered("ns", 3)),
        controllers=tuple(map(ControllerSpec, controllers)),
        brokers=tuple(BrokerSpec(name, number, config=broker) for name in names for number in range(_REPLICAS)),
        topics=(TopicSpec("orders", names, _QUEUES),),
    )
