"""How a broker comes to know producers, and how it forgets them."""

from broker.group_of_brokers import Member
from emulator.testing.worlds import PORT, add_host, execute_world, process_of, until_ms
from nodes.broker.clients.client_manage import ClientManage
from nodes.broker.registration.registration import NameserverRegistration
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import HeartbeatData, ProducerData
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import invoke

BEAT = HeartbeatData("p1", (ProducerData("pg"), ProducerData("other")))


class BrokerOfProducers:
    """A broker that minds its clients, and one producer."""

    def __init__(self, world):
        self.broker = Member(world, 0)
        self.producers = self.broker.tables.clients.producers
        host = self.broker.host
        server = RpcServer(host, self.broker.context.config, on_channel_closed=self._on_channel_closed)
        registration = NameserverRegistration(self.broker.context, self.broker.client, self.broker.group)
        self.clients = ClientManage(self.broker.context, self.broker.tables.clients, registration)
        server.serve(self.clients.handlers())
        host.listen(PORT + 10, server)
        self.machine = add_host(world, 90, "p1")
        self.closed = []
        self.rpc = RpcClient(process_of(self.machine), on_channel_closed=self.closed.append)

    @classmethod
    async def started(cls, world):
        broker = cls(world)
        await broker.clients.start()
        return broker

    def _on_channel_closed(self, channel):
        self.clients.on_channel_closed(channel)

    async def ask(self, code, header=None, body=None):
        address = f"{self.broker.host.ip}:{PORT + 10}"
        return await invoke(self.rpc, address, code, header, body, timeout_ms=3_000)

    async def beat(self):
        return await self.ask(RequestCode.HEART_BEAT, None, BEAT)


def test_a_heartbeat_brings_producers_and_an_unregistration_takes_one_group_out():
    async def main(world):
        stage = await BrokerOfProducers.started(world)
        await stage.beat()
        known = sorted(stage.producers.groups)
        header = headers.UnregisterClientRequestHeader("p1", producer_group="pg")
        await stage.ask(RequestCode.UNREGISTER_CLIENT, header)
        return known, sorted(stage.producers.groups)

    assert execute_world(main).result == (["other", "pg"], ["other"])


def test_a_producer_is_gone_with_its_connection():
    async def main(world):
        stage = await BrokerOfProducers.started(world)
        await stage.beat()
        online = stage.producers.group_online("pg")
        await stage.machine.kill()
        await until_ms(world, 10)
        return online, stage.producers.group_online("pg"), dict(stage.producers.clients)

    assert execute_world(main, delay_ms=1).result == (True, False, {})


def test_a_producer_that_only_sends_is_closed_by_the_first_scan_after_120_s_without_heartbeat():
    async def main(world):
        stage = await BrokerOfProducers.started(world)
        await until_ms(world, 5_000)
        await stage.beat()
        for instant_ms in (60_000, 110_000, 129_900):
            await until_ms(world, instant_ms)
            await stage.ask(RequestCode.CHECK_CLIENT_CONFIG)  # fails, yet the connection is in use
        before = (stage.producers.group_online("pg"), list(stage.closed))
        await until_ms(world, 130_100)
        return before, stage.producers.group_online("pg"), len(stage.closed)

    assert execute_world(main).result == ((True, []), False, 1)
