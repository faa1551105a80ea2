"""One broker group that RIP-32 keeps readable: its scenario, what its members believed, and offsets in its tables."""

import json
from typing import Any

import attrs

from emulator.network.link import LinkEffect, LinkRule
from emulator.spec.model.scenario import BrokerSpec, NameserverSpec, Network, Scenario, TopicSpec
from emulator.testing import Caller, RowOfTrace, Stage, Trace, a_scenario, broker_groups
from nodes.config import BrokerConfig, NameserverConfig
from nodes.protocol import headers
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body

MASTER, S1, S2 = "ba", "ba-s1", "ba-s2"
OTHER = "bb"
BEFORE_MS = 20_000
"""By then a group that started at 0 has sent each other everything but metadata."""
GROUP = "TOOLS_CONSUMER"
"""A consumer group that every broker knows from the start."""
COPIED_MS = 65_000
"""By then the slaves have copied their master's tables once."""

ACTING = NameserverConfig(support_acting_master=True, notify_min_broker_id_changed=True)
ACTING_WITHOUT_NOTICE = NameserverConfig(support_acting_master=True)


def acting(**options: Any) -> BrokerConfig:
    """A member of a group of three with RIP-32 on."""
    rip32 = {"enable_slave_acting_master": True, "total_replicas": 3, "slave_read_enable": True}
    return BrokerConfig(**{**rip32, **options})


def a_group(
    *,
    seed: int = 1,
    delay_ms: int = 1,
    jitter_ms: int = 0,
    nameservers: int = 1,
    nameserver: NameserverConfig = ACTING,
    slaves: int = 2,
    config: BrokerConfig | None = None,
    of_slaves: BrokerConfig | None = None,
    consumers: int = 0,
    rate_per_s: int = 0,
) -> Scenario:
    """A master and its slaves, half a second apart; `of_slaves` where theirs differs from `config`."""
    config = config or acting()
    scenario = a_scenario(
        seed=seed,
        network=Network(delay_ms, jitter_ms),
        nameservers=tuple(NameserverSpec(f"ns-{i}", nameserver) for i in range(1, nameservers + 1)),
        brokers=broker_groups(MASTER, config=config, slaves=slaves),
        consumers=consumers,
        rate_per_s=rate_per_s,
    )
    if of_slaves is None:
        return scenario
    others = (attrs.evolve(broker, config=of_slaves) for broker in scenario.brokers[1:])
    return attrs.evolve(scenario, brokers=(scenario.brokers[0], *others))


def two_groups(*, topics: tuple[TopicSpec, ...] = (), queues: int = 1, **options: Any) -> Scenario:
    """A group of three and another broker, which both serve the topic, and others that are asked for."""
    group = a_group(config=acting(**options))
    orders = TopicSpec("orders", ("ba", OTHER), queues)
    slaves = [BrokerSpec(OTHER, 1) for _ in topics]
    return Scenario(
        name="two-groups",
        seed=1,
        run_for_ms=group.run_for_ms,
        start_spread_ms=0,
        network=group.network,
        nameservers=group.nameservers,
        brokers=(*group.brokers, BrokerSpec(OTHER, config=acting(total_replicas=1)), *slaves),
        topics=(orders, *topics),
    )


def believed(trace: Trace, node: str, kind: str, **between: float) -> list[tuple[float, Any]]:
    """What a member believed one after the other: (ms, value)."""
    return [(row.at_ms, json.loads(row.value)) for row in trace.select("beliefs", node=node, kind=kind, **between)]


def minimum(trace: Trace, node: str, **between: float) -> list[tuple[float, int]]:
    """Which broker id a member took for the lowest: (ms, id)."""
    return [(at_ms, value["id"]) for at_ms, value in believed(trace, node, "min_broker", **between)]


def stages(trace: Trace, node: str, **between: float) -> list[tuple[float, str]]:
    """How a member came online: (ms, stage)."""
    return believed(trace, node, "online_stage", **between)


def requests(trace: Trace, src: str, dst: str, code: RequestCode, **between: float) -> list[RowOfTrace]:
    """The requests of a code that arrived."""
    rows = trace.select("rpc", src=src, dst=dst, code=int(code), event="delivered", **between)
    return [row for row in rows if row.kind != "response"]


def instants(rows: list[RowOfTrace]) -> list[float]:
    """When these frames were sent, in ms."""
    return [row.sent_ms for row in rows]


def registered(trace: Trace, nameserver: str = "ns-1", **between: float) -> list[tuple[float, list[str]]]:
    """Which broker ids a nameserver held for the group: (ms, ids)."""
    return [(at_ms, sorted(value or ())) for at_ms, value in believed(trace, nameserver, "live_brokers", **between)]


async def commit(probe: Caller, node: str, offset: int) -> None:
    """Commit an offset of queue 0 to a member, whatever its role."""
    header = headers.UpdateConsumerOffsetRequestHeader(GROUP, "orders", 0, offset)
    answer = await probe.ask(node, RequestCode.UPDATE_CONSUMER_OFFSET, header)
    assert answer.code == ResponseCode.SUCCESS


def offset_of(stage: Stage, node: str) -> int:
    """Which offset of queue 0 a member has."""
    offset: int = stage.node(node).tables.clients.offsets.query_offset(GROUP, "orders", 0)
    return offset


def slow(stage: Stage, src: str, dst: str, delay_ms: int) -> None:
    """Let all that goes from one node to another take longer."""
    rule = LinkRule(f"slow-{src}-{dst}", LinkEffect.DELAY, lambda a, b: (a, b) == (src, dst), delay_ms=delay_ms)
    stage.world.fabric.add_rule(rule)


async def lock(probe: Caller, node: str, client: str, *, only_this_broker: bool = False) -> bool:
    """Ask a member for the order lock of queue 0; returns whether the client has it now."""
    answer = await probe.ask(node, RequestCode.LOCK_BATCH_MQ, None, _queue_0(client, only_this_broker=only_this_broker))
    return bool(decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set)


async def unlock(probe: Caller, node: str, client: str) -> None:
    """Give the order lock of queue 0 back."""
    answer = await probe.ask(node, RequestCode.UNLOCK_BATCH_MQ, None, _queue_0(client, only_this_broker=False))
    assert answer.code == ResponseCode.SUCCESS


def _queue_0(client: str, *, only_this_broker: bool) -> LockBatchRequestBody:
    return LockBatchRequestBody(GROUP, client, (MessageQueue("orders", "ba", 0),), only_this_broker)
