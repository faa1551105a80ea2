"""A broker's conversation with its controller: both on machines of their own, in virtual time."""

import pytest

from emulator.testing.worlds import PORT, add_host, execute_world, until_ms
from nodes.broker.group.replicas_manager import ReplicasManager
from nodes.broker.tables.group.replica_role import CheckSyncStateSet, ReplicaRole, StartReplicaService
from nodes.controller.tables.heartbeats import BrokerHeartbeats, BrokerIdentity
from nodes.controller.tables.replicas_info import ControllerResult
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.codes import ResponseCode
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_body, encode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from support.controllers import CLUSTER, NAME, OneGroup

CONTROLLER = f"127.1.1.9:{PORT}"
TIMEOUT_MS = 10_000


class ServedGroup(OneGroup):
    """One controller that always leads; it answers what its tables say, or a code, or nothing."""

    def __init__(self):
        super().__init__()
        self.heartbeats = BrokerHeartbeats()
        self.refused = {}
        self.silent_for = []
        self.heard = []

    async def life(self, host):
        self.host = host
        server = RpcServer(host)
        server.serve(dict.fromkeys(REQUESTED, self.answer))
        host.listen(PORT, server)

    def is_alive(self, *identity):
        return self.heartbeats.alive_at(self.host.clock.now_ms())(*identity)

    def answer(self, channel, request):
        code = Code(request.code)
        header = decode_header(EXCHANGES[code].request_header, request.ext_fields)
        self.heard.append(code)
        if code is Code.BROKER_HEARTBEAT:
            broker = BrokerIdentity(CLUSTER, NAME, header.broker_id)
            self.heartbeats.on_heartbeat(broker, header, channel, now_ms=self.host.clock.now_ms())
            return None
        if code in self.refused:
            return request.answer(self.refused[code], None)
        result = self.committed(REQUESTED[code](self, header, request.body))
        if code in self.silent_for:
            return None
        fields = {} if result.header is None else encode_header(result.header)
        return request.answer(int(result.code), result.remark, fields, result.body and encode_body(result.body))


REQUESTED = {
    Code.BROKER_HEARTBEAT: None,
    Code.CONTROLLER_GET_METADATA_INFO: lambda served, header, body: ControllerResult(
        headers.GetMetaDataResponseHeader("g", "n0", CONTROLLER, True)
    ),
    Code.CONTROLLER_GET_NEXT_BROKER_ID: lambda served, header, body: served.manager.get_next_broker_id(header),
    Code.CONTROLLER_APPLY_BROKER_ID: lambda served, header, body: served.manager.apply_broker_id(header),
    Code.CONTROLLER_REGISTER_BROKER: lambda served, header, body: served.manager.register_broker(
        header, served.is_alive
    ),
    Code.CONTROLLER_ELECT_MASTER: lambda served, header, body: served.manager.elect_master(header, served.is_alive),
    Code.CONTROLLER_GET_REPLICA_INFO: lambda served, header, body: served.manager.get_replica_info(header),
    Code.CONTROLLER_ALTER_SYNC_STATE_SET: lambda served, header, body: served.manager.alter_sync_state_set(
        header, decode_body(SyncStateSet, body), served.is_alive
    ),
}


class RecordingReplica:
    """A broker that does nothing but remember what it was reported."""

    def __init__(self, host):
        self.role = ReplicaRole(CLUSTER, NAME, f"{host.ip}:{PORT}")
        self.manager = ReplicasManager(host, RpcClient(host), self.role, self, [CONTROLLER])
        self.reported = []
        self.in_sync = ()

    def perform(self, effect):
        self.reported.append(effect)

    def heartbeat(self):
        role = self.role
        return BrokerHeartbeatRequestHeader(
            CLUSTER, role.address, NAME, role.broker_id, 1, 0, 0, TIMEOUT_MS, 2_147_483_647
        )

    def maybe_shrink_sync_state_set(self):
        return self.in_sync


def executed(script, brokers=1):
    """Run a script with a controller and brokers; returns what it returns."""

    async def main(world):
        served, replicas = ServedGroup(), []
        add_host(world, 9, "controller", served.life)

        async def life(host):
            replicas.append(RecordingReplica(host))
            replicas[-1].manager.start_probing()

        for number in range(1, brokers + 1):
            add_host(world, number, f"broker-{number}", life)
        await until_ms(world, 1)
        return await script(served, *replicas)

    return execute_world(main).result


def test_the_first_broker_becomes_master_and_the_second_its_slave():
    async def script(served, item, two):
        assert await item.manager.start_basic_service()
        assert await two.manager.start_basic_service()
        return [(replica.role.broker_id, replica.role.master_id, replica.reported[-1]) for replica in (item, two)]

    assert executed(script, brokers=2) == [(1, 1, StartReplicaService()), (2, 1, StartReplicaService())]


@pytest.mark.trap("K46")
def test_the_lost_answer_to_an_application_costs_the_id():
    async def script(served, item):
        await item.manager.start_basic_service()
        served.silent_for.append(Code.CONTROLLER_APPLY_BROKER_ID)
        two = RecordingReplica(served.host)
        two.manager.start_probing()
        tried = await two.manager.start_basic_service()
        served.silent_for.clear()
        await two.manager.start_basic_service()
        return tried, two.role.broker_id, list(served.brokers)

    assert executed(script) == (False, 7, [1, 2, 3, 4, 5, 6, 7])


@pytest.mark.trap("K5")
def test_a_broker_whose_master_still_exists_is_content():
    async def script(served, item):
        await item.manager.start_basic_service()
        reported = len(item.reported)
        return await item.manager.elect(), item.reported[reported:], served.sync.master_epoch

    assert executed(script) == (True, [], 1)


@pytest.mark.trap("K16")
def test_a_broker_whose_group_was_cleaned_asks_for_ever_and_never_applies_again():
    async def script(served, item):
        await item.manager.start_basic_service()
        served.clean(living=True)
        served.heard.clear()
        for _ in range(3):
            await item.manager.poll()
        return served.heard, item.role.is_master

    requested = [Code.CONTROLLER_GET_REPLICA_INFO, Code.CONTROLLER_REGISTER_BROKER]
    assert executed(script) == (requested * 3, True)


@pytest.mark.trap("K25")
def test_a_broker_that_is_reported_not_the_leader_asks_no_one_else():
    async def script(served, item):
        await item.manager.start_basic_service()
        served.heard.clear()
        served.refused[Code.CONTROLLER_GET_REPLICA_INFO] = ResponseCode.CONTROLLER_NOT_LEADER
        await item.manager.poll()
        return served.heard, item.manager.controller_leader

    assert executed(script) == ([Code.CONTROLLER_GET_REPLICA_INFO], CONTROLLER)


@pytest.mark.trap("K28")
def test_a_fenced_broker_sends_one_heartbeat_for_each_attempt_to_start():
    async def script(served, item):
        served.refused[Code.CONTROLLER_ELECT_MASTER] = ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
        attempts = [await item.manager.start_basic_service() for _ in range(3)]
        return attempts, served.heard.count(Code.BROKER_HEARTBEAT)

    assert executed(script) == ([False] * 3, 3)


@pytest.mark.trap("K37")
def test_a_report_that_fails_is_not_repeated_until_the_next_check():
    async def script(served, item, two):
        await item.manager.start_basic_service()
        await two.manager.start_basic_service()
        served.refused[Code.CONTROLLER_ALTER_SYNC_STATE_SET] = ResponseCode.SYSTEM_ERROR
        item.in_sync = (1, 2)
        await item.manager.check_sync_state_set()
        failed = item.role.sync_state_set, served.heard.count(Code.CONTROLLER_ALTER_SYNC_STATE_SET)
        served.refused.clear()
        await item.manager.check_sync_state_set()
        await item.manager.check_sync_state_set()
        reports = served.heard.count(Code.CONTROLLER_ALTER_SYNC_STATE_SET)
        return failed, item.role.sync_state_set, reports, served.sync.sync_state_set

    assert executed(script, brokers=2) == (((1,), 1), (1, 2), 2, (1, 2))


def test_a_slave_that_finds_its_group_without_a_master_asks_to_be_elected():
    async def script(served, item, two):
        await item.manager.start_basic_service()
        await two.manager.start_basic_service()
        await served.host.sleep_ms(100)  # a heartbeat is oneway
        assert served.alter(1, 2).code is ResponseCode.SUCCESS
        await served.host.sleep_ms(TIMEOUT_MS + 1)
        served.elect_by_controller()
        two.manager.send_heartbeat()
        await two.manager.poll()
        return two.role.is_master, two.role.master_epoch, CheckSyncStateSet() in two.reported

    assert executed(script, brokers=2) == (True, 3, True)
