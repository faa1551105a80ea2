"""Controllers on machines of their own, and brokers that do nothing but beat and hear, in virtual time."""

from functools import partial

from emulator.machine.host import EmulatedHost
from emulator.machine.power import PowerState
from emulator.testing.worlds import MS, add_host, execute_world, process_of
from nodes.config import ControllerConfig
from nodes.controller.controller import Controller
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.codes import ResponseCode
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import invoke, invoke_oneway

PORT, BROKER_PORT = 9_877, 10_911
CLUSTER, NAME = "c1", "b1"
HEARTBEAT_MS, TIMEOUT_MS = 1_000, 10_000


def controller_address(number):
    return f"127.1.1.{10 + number}:{PORT}"


class Beater:
    """A broker's process, as far as controllers see it."""

    def __init__(self, host, broker_id, controllers):
        self.host, self.broker_id, self.controllers = host, broker_id, controllers
        self.client = RpcClient(host)
        self.address = f"{host.ip}:{BROKER_PORT}"
        self.max_offset, self.epoch = 0, 1
        self.heard = []
        """(ms, master id, master epoch) of each notification."""

    async def life(self):
        server = RpcServer(self.host)
        server.serve({Code.NOTIFY_BROKER_ROLE_CHANGED: self.on_notified})
        self.host.listen(BROKER_PORT, server)
        self.host.start_soon(self.beat, name="heartbeats")

    async def beat(self):
        while True:
            for address in self.controllers:
                invoke_oneway(self.client, address, Code.BROKER_HEARTBEAT, self.heartbeat())
            await self.host.sleep_ms(HEARTBEAT_MS)

    def heartbeat(self):
        answer = (self.epoch, self.max_offset, 0, TIMEOUT_MS, 0)
        return BrokerHeartbeatRequestHeader(CLUSTER, self.address, NAME, self.broker_id, *answer)

    def on_notified(self, _channel, request):
        header = decode_header(headers.NotifyBrokerRoleChangedRequestHeader, request.ext_fields)
        self.heard.append((now_ms(self.host), header.master_broker_id, header.master_epoch))


class Group:
    """A number of controllers and brokers, and an operator who asks."""

    def __init__(self, world, controllers, brokers, broker, **options):
        self.world, self.broker = world, broker
        addresses = {f"n{number}": controller_address(number) for number in range(controllers)}
        self.addresses = list(addresses.values())
        self.controllers, self.hosts, self.beaters, self.broker_hosts = {}, {}, {}, {}
        for number, self_id in enumerate(addresses):
            make = partial(self.make, self_id, addresses, ControllerConfig(**options))
            host = EmulatedHost(world, 10 + number, self_id, "broker", f"127.1.1.{10 + number}", "", make)
            self.hosts[self_id] = host
            host.start()
        for broker_id in range(1, brokers + 1):
            self.broker_hosts[broker_id] = add_host(
                world, broker_id, f"broker-{broker_id}", partial(self.broker_life, broker_id)
            )
        self.operator = process_of(add_host(world, 99, "operator"))
        self.client = RpcClient(self.operator)

    def make(self, self_id, addresses, config, host):
        self.controllers[self_id] = Controller(host, config, "controllers", self_id, addresses)
        return self.controllers[self_id]

    async def broker_life(self, broker_id, host):
        self.beaters[broker_id] = self.broker(host, broker_id, self.addresses)
        await self.beaters[broker_id].life()

    @property
    def leader_id(self):
        """Who serves; None: no one."""
        serving = [
            self_id
            for self_id, controller in self.controllers.items()
            if controller.dledger.serving and self.hosts[self_id].power_state is PowerState.RUNNING
        ]
        return serving[0] if serving else None

    @property
    def sync(self):
        return self.controllers[self.leader_id].state.sync[NAME]

    async def ask(self, code, header=None, body=None, *, to=None, timeout_ms=9_000):
        """What a controller answers, by default the leader: code, header, body and remark."""
        address = controller_address(int((to or self.leader_id)[1:]))
        answer = await invoke(self.client, address, code, header, body, timeout_ms=timeout_ms)
        exchange = EXCHANGES[code]
        reported = decode_header(exchange.response_header, answer.ext_fields)
        content = answer.body and decode_body(exchange.response_body, answer.body)
        return ResponseCode(answer.code), reported, content, answer.remark

    async def until(self, condition, limit_ms=60_000):
        """Wait until something is so; returns when that was, in ms."""
        for _ in range(limit_ms // 10):
            if condition():
                return now_ms(self.operator)
            await self.operator.sleep_ms(10)
        raise AssertionError("it never was so")

    async def sleep(self, duration_ms):
        await self.operator.sleep_ms(duration_ms)

    async def registered(self):
        """All brokers have ids, 1 is master, and all are in sync."""
        await self.until(lambda: self.leader_id)
        for broker_id, beater in self.beaters.items():
            check_code = f"{beater.address};1"
            requested = headers.ApplyBrokerIdRequestHeader(CLUSTER, NAME, broker_id, check_code)
            assert (await self.ask(Code.CONTROLLER_APPLY_BROKER_ID, requested))[0] is ResponseCode.SUCCESS
        await self.sleep(2 * HEARTBEAT_MS)
        assert (await self.elect(1))[0] is ResponseCode.SUCCESS
        if len(self.beaters) > 1:
            assert (await self.alter(*self.beaters))[0] is ResponseCode.SUCCESS

    async def elect(self, asking, **options):
        header = headers.ElectMasterRequestHeader(CLUSTER, NAME, asking, False, 0)
        return await self.ask(Code.CONTROLLER_ELECT_MASTER, header, **options)

    async def alter(self, *members, **options):
        header = headers.AlterSyncStateSetRequestHeader(NAME, self.sync.master_id, self.sync.master_epoch, 0)
        answer = SyncStateSet(members, self.sync.sync_state_set_epoch)
        return await self.ask(Code.CONTROLLER_ALTER_SYNC_STATE_SET, header, answer, **options)

    async def replica_info(self, **options):
        return await self.ask(Code.CONTROLLER_GET_REPLICA_INFO, headers.GetReplicaInfoRequestHeader(NAME), **options)

    async def metadata(self, to):
        return (await self.ask(Code.CONTROLLER_GET_METADATA_INFO, to=to))[1]


def now_ms(host):
    return host.clock.monotonic_ns() / MS


def executed(script, **options):
    """Run a script with a group; returns what it returns."""
    return executed_whole(script, **options).result


def traced(script, **options):
    """Run a script with a group; returns the trace."""
    return executed_whole(script, **options).trace


def executed_whole(script, controllers=3, brokers=2, seed=1, delay_ms=1, broker=Beater, **options):
    """Run a script with a group; returns its result and its trace."""

    async def main(world):
        group = Group(world, controllers, brokers, broker, **options)
        return await script(group)

    return execute_world(main, seed=seed, delay_ms=delay_ms)
