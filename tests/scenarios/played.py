"""Whole clusters under virtual time: play a scenario, then ask its trace what happened when."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import attrs

from emulator.cluster import Cluster
from emulator.host import EmulatedHost, World
from emulator.network.link import LinkEffect, LinkRule
from emulator.spec_model import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    TopicSpec,
)
from emulator.trace.schema import TABLES, Table
from emulator.world import TimeMode, run_world
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import encode_body, encode_header
from nodes.rpc.client import RpcClient

NS_PER_MS = 1_000_000
GROUP, TOPIC = "g", "orders"
RETRY = f"%RETRY%{GROUP}"


def a_scenario(
    *,
    run_for_ms: int = 3_600_000,
    seed: int = 1,
    delay_ms: int = 1,
    jitter_ms: int = 0,
    spread_ms: int = 0,
    nameservers: int = 1,
    nameserver: NameserverConfig | None = None,
    brokers: tuple[str, ...] = ("broker-a",),
    broker: BrokerConfig | None = None,
    topics: tuple[TopicSpec, ...] | None = None,
    queues: int = 4,
    consumers: int | tuple[ConsumerGroupSpec, ...] = 0,
    consumer: ConsumerConfig | None = None,
    consume_ms: int = 0,
    rate_per_s: int = 0,
) -> Scenario:
    """A small cluster: one topic on all brokers, one group that consumes it, one producer if it has a rate."""
    if topics is None:
        topics = (TopicSpec(TOPIC, brokers, queues),)
    if isinstance(consumers, int):
        names = tuple(f"c{i}" for i in range(1, consumers + 1))
        consumers = (
            (ConsumerGroupSpec(GROUP, names, tuple(t.name for t in topics), consumer or ConsumerConfig(), consume_ms),)
            if names
            else ()
        )
    return Scenario(
        name="test",
        seed=seed,
        run_for_ms=run_for_ms,
        start_spread_ms=spread_ms,
        network=Network(delay_ms, jitter_ms),
        nameservers=tuple(
            NameserverSpec(f"ns-{i}", nameserver or NameserverConfig()) for i in range(1, nameservers + 1)
        ),
        brokers=tuple(BrokerSpec(name, config=broker or BrokerConfig()) for name in brokers),
        topics=topics,
        consumers=consumers,
        producers=(ProducerSpec("p1", "pg", TOPIC, rate_per_s),) if rate_per_s else (),
    )


class Row(dict[str, Any]):
    """A row of the trace; columns are attributes, `at_ms` is its instant."""

    def __getattr__(self, column: str) -> Any:
        return self[column]

    @property
    def at_ms(self) -> float:
        return float(self["t_ns"]) / NS_PER_MS

    @property
    def sent_ms(self) -> float:
        return float(self["sent_ns"]) / NS_PER_MS


@attrs.define
class Trace:
    """All rows of a run in memory; takes the place of the segments on disk."""

    rows: dict[str, list[Row]] = attrs.Factory(lambda: {table.name: [] for table in TABLES})
    digest: str = ""

    def write(self, table: Table, rows: list[tuple[int | str, ...]]) -> None:
        names = [column.name for column in table.columns]
        self.rows[table.name] += [Row(zip(names, row, strict=True)) for row in rows]

    def close_segments(self) -> None: ...

    def select(self, table: str, *, after: float = -1, until: float = float("inf"), **wanted: object) -> list[Row]:
        """The rows with these values, of instants in (after, until], in order."""
        return [
            row
            for row in self.rows[table]
            if after < row.at_ms <= until and all(row[column] == value for column, value in wanted.items())
        ]

    def passes(self, node: str, **between: float) -> list[float]:
        """When a consumer began passes that nobody had woken it for."""
        return [row.at_ms for row in self.select("causes", node=node, name="RebalanceService", **between)]

    def owners_over_time(self) -> Iterator[tuple[float, dict[tuple[str, str, int], list[str]]]]:
        """After every instant at which ownership changed: its end, and (topic, brokerName, queueId) -> owners."""
        held: dict[tuple[str, str, int], list[str]] = {}
        ends = ("killed", "powered_off", "stopped", "crashed")
        changes = [row for row in self.rows["ownership"] if row.event in ("acquired", "dropped")]
        rows = changes + [row for row in self.rows["lifecycle"] if row.event in ends]
        rows.sort(key=lambda row: row.seq)
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            if row.event in ends:
                for owners in held.values():
                    owners[:] = [name for name in owners if name != row.node]
            else:
                owners = held.setdefault((row.topic, row.broker_name, row.queue_id), [])
                owners.append(row.node) if row.event == "acquired" else owners.remove(row.node)
            if following is None or following.t_ns > row.t_ns:
                yield row.at_ms, {queue: sorted(owners) for queue, owners in held.items()}

    def owners(self, at_ms: float = float("inf"), topic: str = TOPIC) -> dict[tuple[str, int], list[str]]:
        """(brokerName, queueId) -> who owns it at the end of an instant."""
        found: dict[tuple[str, str, int], list[str]] = {}
        for changed_ms, held in self.owners_over_time():
            if changed_ms <= at_ms:
                found = held
        return {(name, queue_id): owners for (of, name, queue_id), owners in sorted(found.items()) if of == topic}

    def consumed(self) -> dict[tuple[str, int, int], list[str]]:
        """(brokerName, queueId, offset) -> who consumed it, in order."""
        found: dict[tuple[str, int, int], list[str]] = {}
        for row in self.select("messages", event="consumed", topic=TOPIC):
            found.setdefault((row.broker_name, row.queue_id, row.offset), []).append(row.node)
        return found

    def stored(self) -> list[tuple[str, int, int]]:
        """(brokerName, queueId, offset) of every message, sorted."""
        return sorted(
            (r.broker_name, r.queue_id, r.offset) for r in self.select("messages", event="stored", topic=TOPIC)
        )


class Probe:
    """A node of the test's own that says to others what it is told to say."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.rpc = RpcClient(host)

    async def main(self) -> None:
        self.host.record(Lifecycle(LifecycleEvent.READY))
        await self.host.sleep_ms(1e12)

    def request_shutdown(self) -> None: ...


class Stage:
    """What a script may do to the cluster that runs."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        self.world = world
        self.cluster = cluster

    def host(self, name: str) -> EmulatedHost:
        return self.cluster.host(name)

    def node(self, name: str) -> Any:
        """The process of a node, from inside."""
        return self.cluster.host(name).node

    @property
    def now_ms(self) -> float:
        return self.world.timeline.now_ns / NS_PER_MS

    async def at_ms(self, instant_ms: float) -> None:
        """Wait for an instant since the run began."""
        await self.world.sleep_until_ns(int(instant_ms * NS_PER_MS))

    async def for_ms(self, duration_ms: float) -> None:
        await self.at_ms(self.now_ms + duration_ms)

    async def kill(self, name: str) -> None:
        await self.host(name).kill()

    async def stop(self, name: str) -> None:
        await self.host(name).shutdown()

    async def power_off(self, name: str) -> None:
        await self.host(name).power_off()

    async def suspend(self, name: str, duration_ms: float) -> None:
        await self.host(name).suspend()
        await self.for_ms(duration_ms)
        await self.host(name).resume()

    def start(self, name: str) -> None:
        self.host(name).start()

    def cut(self, src: str, dst: str, *, one_way: bool = False) -> None:
        """Let nothing pass until `heal`."""

        def covers(sender: str, receiver: str) -> bool:
            return (sender, receiver) == (src, dst) or (not one_way and (sender, receiver) == (dst, src))

        self.world.fabric.add_rule(LinkRule(f"{src}-{dst}", LinkEffect.CUT, covers))

    def heal(self, src: str, dst: str) -> None:
        self.world.fabric.remove_rule(f"{src}-{dst}")

    async def probe(self) -> "Caller":
        """A stranger on a machine of its own."""
        host = EmulatedHost(self.world, 90, "probe", "probe", "127.1.200.1", "", Probe)
        host.start()
        node, process = host.node, host.process
        assert isinstance(node, Probe)
        assert process is not None
        await process.ready.wait()
        return Caller(self, node)


class Caller:
    """Asks nodes by name."""

    def __init__(self, stage: Stage, probe: Probe) -> None:
        self._stage = stage
        self._probe = probe

    async def ask(
        self, node: str, code: RequestCode, header: "attrs.AttrsInstance | None" = None, body: Any = None
    ) -> Command:
        port = 9_876 if node.startswith("ns-") else 10_911
        address = f"{self._stage.host(node).ip}:{port}"
        fields = {} if header is None else encode_header(header)
        content = None if body is None else encode_body(body)
        return await self._probe.rpc.call(address, int(code), fields, content, timeout_ms=3_000)


Script = Callable[[Stage], Awaitable[object]]


def play(
    scenario: Scenario, script: Script | None = None, *, for_ms: float = 0, mode: TimeMode = TimeMode.SIM
) -> Trace:
    """Run a cluster until its script has ended and `for_ms` have passed; every run is searched for Python errors."""
    trace = Trace()

    async def main(world: World) -> None:
        async with Cluster(world, scenario) as cluster:
            stage = Stage(world, cluster)
            if script is not None:
                await script(stage)
            await stage.at_ms(max(for_ms, stage.now_ms))
        trace.digest = world.recorder.digest()

    network = scenario.network
    run_world(
        main,
        mode=mode,
        seed=scenario.seed,
        delay_ms=network.delay_ms,
        jitter_ms=network.jitter_ms,
        writer=trace,  # type: ignore[arg-type]
    )
    answers_of_bugs = [row for row in trace.select("rpc", status=1) if "Error:" in row.detail]
    assert answers_of_bugs == []
    return trace
