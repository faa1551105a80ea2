"""The remoting port of a proxy in a live world: programs of both generations dial it."""

import json

import grpc
import pytest
import trio

from emulator.guests.grpc.messages import message_class
from emulator.testing import Stage, execute
from emulator.time.mode import TimeMode
from nodes.config.proxy import ProxyConfig
from support.dialed_proxy import METADATA, OPTIONS, in_thread, method
from support.proxy_guest import PROXY, TOPIC, proxies
from support.remoting_program import Program, request

ROUTE = 105


async def dial(stage: Stage) -> tuple[str, Program]:
    """The address of the port as programs know it, and one that has dialed it."""
    physical = stage.world.fabric.carrier.physical_ip(stage.cluster.addresses[PROXY])
    sock = trio.socket.socket()
    await sock.connect((physical, 8_080))
    return f"{physical}:8080", Program(sock)


def test_a_program_of_rocketmq_4_gets_a_route_that_it_can_dial() -> None:
    async def script(stage: Stage) -> None:
        address, program = await dial(stage)
        await program.ask(request(ROUTE, 7, fields={"topic": TOPIC}))
        answer = await program.answer()
        assert (answer.code, answer.opaque) == (0, 7)
        (broker,) = json.loads(answer.body)["brokerDatas"]
        assert broker["brokerAddrs"] == {"0": address}
        program.sock.close()

    execute(proxies(), script, mode=TimeMode.LIVE)


@pytest.mark.parametrize("enabled", [True, False])
def test_a_program_of_rocketmq_5_is_served_unless_an_option_forbids_it(enabled: bool) -> None:
    async def script(stage: Stage) -> None:
        address, program = await dial(stage)
        program.sock.close()
        asked = message_class("QueryRouteRequest")(topic={"name": TOPIC}, endpoints={"scheme": 1})
        asked.endpoints.addresses.add(host="127.0.0.1", port=8_080)
        with grpc.insecure_channel(address, OPTIONS) as channel:
            call = method(channel, "QueryRoute")

            def ask() -> object:
                return call(asked, timeout=5, metadata=METADATA)

            if not enabled:
                with pytest.raises(grpc.RpcError):
                    await in_thread(ask)
                return
            answer = await in_thread(ask)
        assert len(answer.message_queues) == 4
        assert answer.message_queues[0].broker.endpoints.addresses[0].port == 8_080

    execute(proxies(config=ProxyConfig(enable_remoting_local_proxy_grpc=enabled)), script, mode=TimeMode.LIVE)
