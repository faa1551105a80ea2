"""A small cluster in `sim` whose trace stays in memory: what the sources of disagreement are played on."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from emulator.cluster import Cluster
from emulator.host import EmulatedHost, World
from emulator.log import open_log
from emulator.network.link import LinkEffect, LinkRule
from emulator.sources.trace import Trace
from emulator.spec_model import (
    BrokerSpec,
    ConsumerGroupSpec,
    NameserverSpec,
    Network,
    ProducerSpec,
    Scenario,
    TopicSpec,
)
from emulator.trace.schema import Table
from emulator.world import run_world
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import encode_header
from nodes.rpc.client import RpcClient

GROUP, TOPIC = "g", "orders"
_WARM = TopicSpec(f"%RETRY%{GROUP}", (), 1)
Script = Callable[["Stage"], Awaitable[object]]


def scenario(
    *,
    nameservers: tuple[NameserverConfig, ...] = (NameserverConfig(),),
    brokers: Mapping[str, BrokerConfig] | None = None,
    slaves: int = 0,
    queues: int = 4,
    consumers: int = 2,
    config: ConsumerConfig | None = None,
    configs: tuple[ConsumerConfig, ...] = (),
    consume_ms: int = 0,
    rate_per_s: int = 0,
    spread_ms: int = 0,
    new_group: bool = False,
    one_address: bool = False,
) -> Scenario:
    """A topic on all brokers, one group that consumes it.

    Args:
        nameservers: one of each.
        brokers: brokerName -> options of master and slaves; one broker as shipped unless told.
        slaves: how many each broker name has.
        configs: one member each, instead of `consumers` members with `config`.
        rate_per_s: of a producer; 0: there is none.
        new_group: its retry topic is not there yet.
        one_address: all members run on one machine.
    """
    named = brokers or {"broker-a": BrokerConfig()}
    names = tuple(f"c{i}" for i in range(1, consumers + 1))
    members = configs or tuple(config or ConsumerConfig() for _ in range(consumers))
    topics: tuple[TopicSpec, ...] = (TopicSpec(TOPIC, tuple(named), queues),)
    if not new_group:
        topics += (attrs.evolve(_WARM, brokers=tuple(named)),)
    return Scenario(
        name="source",
        run_for_ms=86_400_000,
        start_spread_ms=spread_ms,
        network=Network(1, 0),
        nameservers=tuple(NameserverSpec(f"ns-{i}", each) for i, each in enumerate(nameservers, 1)),
        brokers=tuple(
            BrokerSpec(name, i, config=each, start_after_ms=500 * i)
            for name, each in named.items()
            for i in range(slaves + 1)
        ),
        topics=topics,
        consumers=(ConsumerGroupSpec(GROUP, names, (TOPIC,), config or ConsumerConfig(), consume_ms, one_address=True),)
        if one_address
        else tuple(
            ConsumerGroupSpec(GROUP, (f"c{i}",), (TOPIC,), each, consume_ms) for i, each in enumerate(members, 1)
        ),
        producers=(ProducerSpec("p1", "pg", TOPIC, rate_per_s),) if rate_per_s else (),
    )


class Stage:
    """What a script may do to the cluster that runs."""

    def __init__(self, world: World, cluster: Cluster, trace: Trace) -> None:
        self.world = world
        self.cluster = cluster
        self.trace = trace
        """So far."""

    def host(self, name: str) -> EmulatedHost:
        """The machine of a node."""
        return self.cluster.host(name)

    def node(self, name: str) -> Any:
        """The process of a node, from inside."""
        return self.cluster.host(name).node

    @property
    def now_s(self) -> float:
        """Seconds since the run began."""
        return self.world.timeline.now_ns / 1e9

    async def at(self, second: float) -> None:
        """Wait for an instant since the run began."""
        await self.world.sleep_until_ns(round(second * 1e9))

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await self.at(self.now_s + seconds)

    async def until(self, happened: Callable[[], bool], most_s: float, *, step_s: float = 0.001) -> None:
        """Wait until something is so, or for `most_s`; it is looked at all `step_s`."""
        end_s = self.now_s + most_s
        while not happened() and self.now_s < end_s:
            await self.wait(step_s)

    def at_first(self, table: str, action: Callable[[], None], **wanted: object) -> None:
        """Act at the very moment at which the first such row is recorded, before what follows it in its node."""
        done: list[bool] = []

        def listen(of: Table, row: tuple[int | str, ...]) -> None:
            columns = [column.name for column in of.columns]
            told = dict(zip(columns, row, strict=True))
            if not done and of.name == table and all(told[column] == value for column, value in wanted.items()):
                done.append(True)
                action()

        self.world.recorder.listeners.append(listen)

    def cut(self, src: str, dst: str, *, one_way: bool = False) -> None:
        """Let nothing pass until `heal`."""

        def covers(sender: str, receiver: str) -> bool:
            return (sender, receiver) == (src, dst) or (not one_way and (sender, receiver) == (dst, src))

        self.world.fabric.add_rule(LinkRule(f"{src}-{dst}", LinkEffect.CUT, covers))

    def heal(self, src: str, dst: str) -> None:
        """Undo a cut."""
        self.world.fabric.remove_rule(f"{src}-{dst}")

    async def ask(self, node: str, code: RequestCode, header: attrs.AttrsInstance) -> Command:
        """A stranger on a machine of its own asks a node."""
        host = self.cluster.hosts.get("stranger")
        if host is None:
            host = EmulatedHost(self.world, 90, "stranger", "operator", "127.1.200.1", "", _Stranger)
            self.cluster.hosts["stranger"] = host
            host.start()
        stranger = host.node
        assert isinstance(stranger, _Stranger)
        port = 9_876 if node.startswith("ns-") else 10_911
        fields = encode_header(header)
        return await stranger.rpc.call(f"{self.host(node).ip}:{port}", int(code), fields, None, timeout_ms=3_000)


class _Stranger:
    """A process that says to others what it is told to say."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.rpc = RpcClient(host)

    async def main(self) -> None:
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._host.sleep_ms(1e12)

    def request_shutdown(self) -> None: ...


def play(played: Scenario, script: Script) -> Trace:
    """Run a cluster until its script has ended; returns its trace."""
    trace = Trace()

    async def main(world: World) -> None:
        world.recorder.listeners.append(trace.hear)
        async with Cluster(world, played) as cluster:
            await script(Stage(world, cluster, trace))
        world.recorder.digest()  # the last rows of all tables
        trace.end_s = world.timeline.now_ns / 1e9

    network = played.network
    with open_log(Path(os.devnull)):
        run_world(
            main,
            seed=played.seed,
            delay_ms=network.delay_ms,
            jitter_ms=network.jitter_ms,
            writer=trace,  # type: ignore[arg-type]
        )
    return trace
