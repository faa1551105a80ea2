"""What a cluster costs: time until it is ready, memory of an idle consumer, CPU of a cluster left alone."""

import gc
import os
import tempfile
import time
from pathlib import Path

import trio

from emulator.cluster.cluster import Cluster
from emulator.machine.world import World, run_world
from emulator.spec import BrokerSpec, ConsumerGroupSpec, NameserverSpec, Scenario, TopicSpec
from emulator.spec.model.scenario import numbered
from emulator.time.mode import TimeMode
from emulator.trace.batches import Row
from emulator.trace.schema import OWNERSHIP, TraceTable
from emulator.trace.segments import SegmentWriter
from nodes.beliefs import OwnershipEvent
from nodes.config import ConsumerConfig
from studies.process_log import open_log

_NS = 1_000_000_000
_TOPIC = "orders"
_QUEUES_PER_BROKER = 4
_BROKERS = 2
_HASTY = ConsumerConfig(rebalance_min_interval_ms=10)
"""RocketMQ's 1 s between two rebalance passes is patience of the emulated system, not slowness of ours."""


def ready_s(*, begun_s: float) -> list[float]:
    """Wall seconds until two live consumers own every queue of a topic exactly once, in equal shares.

    Args:
        begun_s: what `time.monotonic` said before this process was started.
    """
    scenario = _cluster(2, _HASTY)

    async def main(world: World) -> float:
        owners = _Owners(_BROKERS * _QUEUES_PER_BROKER, 2)
        world.recorder.listeners.append(owners.hear)
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            await owners.settled.wait()
            return time.monotonic() - begun_s

    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder) / "log.jsonl"):
        return [run_world(main, mode=TimeMode.LIVE, writer=SegmentWriter(Path(folder)))]


def resident_kib(*, consumers: int, settle_s: int) -> list[float]:
    """Resident memory of this process when so many idle consumers have settled.

    Raises:
        FileNotFoundError: the system has no /proc.
    """
    scenario = _cluster(consumers, ConsumerConfig())

    async def main(world: World) -> float:
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            await world.sleep_until_ns(world.timeline.now_ns + settle_s * _NS)
            return _resident_kib()

    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder) / "log.jsonl"):
        return [run_world(main, writer=SegmentWriter(Path(folder)))]


def idle_cpu_pct(*, consumers: int, wall_s: int, settle_s: int) -> list[float]:
    """CPU time per node of a live cluster in which nothing happens, in percent of a core."""
    scenario = _cluster(consumers, ConsumerConfig())

    async def main(world: World) -> float:
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            await trio.sleep(settle_s)
            wall, cpu = time.perf_counter(), time.process_time()
            await trio.sleep(wall_s)
            share = (time.process_time() - cpu) / (time.perf_counter() - wall)
            return 100 * share / len(cluster.hosts)

    with tempfile.TemporaryDirectory() as folder, open_log(Path(folder) / "log.jsonl"):
        return [run_world(main, mode=TimeMode.LIVE, writer=SegmentWriter(Path(folder)))]


def _resident_kib() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


class _Owners:
    """Follows who owns what; `settled` as soon as each queue has one owner and each consumer its share."""

    def __init__(self, queues: int, consumers: int) -> None:
        self.settled = trio.Event()
        self._queues = queues
        self._share = queues // consumers
        self._held: dict[str, dict[tuple[int | str, ...], None]] = {}
        self._columns = [OWNERSHIP.index(column) for column in ("topic", "broker_name", "queue_id")]
        self._node = OWNERSHIP.index("node")
        self._event = OWNERSHIP.index("event")

    def hear(self, table: TraceTable, row: Row) -> None:
        """Take a row of the trace."""
        if table is not OWNERSHIP:
            return
        queue = tuple(row[column] for column in self._columns)
        if queue[0] != _TOPIC:
            return
        held = self._held.setdefault(str(row[self._node]), {})
        if row[self._event] == OwnershipEvent.ACQUIRED:
            held[queue] = None
        else:
            held.pop(queue, None)
        owned = dict.fromkeys(queue for held in self._held.values() for queue in held)
        if len(owned) == self._queues and all(len(held) == self._share for held in self._held.values()):
            self.settled.set()


def _cluster(consumers: int, config: ConsumerConfig) -> Scenario:
    brokers = numbered("broker", _BROKERS)
    names = numbered("consumer", consumers)
    return Scenario(
        name="bench",
        run_for_ms=1,
        start_spread_ms=0,
        nameservers=(NameserverSpec("ns-1"),),
        brokers=tuple(BrokerSpec(name) for name in brokers),
        topics=(TopicSpec(_TOPIC, brokers, _QUEUES_PER_BROKER),),
        consumers=(ConsumerGroupSpec("order-processors", names, (_TOPIC,), config),),
    )
