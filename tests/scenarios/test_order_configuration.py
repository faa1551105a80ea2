"""Topics that a nameserver's KV table calls ordered become so at the brokers, with their next registration."""

import attrs

from emulator.cluster.cluster import Cluster
from emulator.machine.world import run_world
from emulator.testing import TOPIC, a_scenario
from nodes.broker.broker import Broker
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers import PutKvConfigRequestHeader
from nodes.rpc.client import RpcClient
from nodes.rpc.typed import invoke, succeeded

MS = 1_000_000


def test_a_registration_brings_the_order_configuration_back():
    seen = []

    async def main(world):
        async with Cluster(world, a_scenario(run_for_ms=60_000)) as cluster:
            await cluster.start()
            node = cluster.hosts["broker-a"].node
            assert isinstance(node, Broker)
            process = cluster.hosts["ns-1"].process
            header = PutKvConfigRequestHeader("ORDER_TOPIC_CONFIG", TOPIC, "broker-a:4")
            client = RpcClient(process)
            address = f"{process.ip}:9876"
            world.nursery.start_soon(_put, client, address, header)
            for until_ms in (9_000, 11_000, 45_000):
                await world.sleep_until_ns(until_ms * MS)
                config = node.context.topics.topics[TOPIC]
                seen.append((config.order, attrs.astuple(node.context.topics.data_version)[2]))

    run_world(main, seed=1, delay_ms=1)

    assert [order for order, _ in seen] == [False, True, True]
    assert seen[1][1] == seen[0][1] + 1 == seen[2][1]


async def _put(client, address, header):
    succeeded(await invoke(client, address, RequestCode.PUT_KV_CONFIG, header, timeout_ms=3_000))
