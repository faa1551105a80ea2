"""A broker's process that has its real conversation with controllers; what it does with a role is only remembered."""

from controller.controller_world import BROKER_PORT, CLUSTER, HEARTBEAT_MS, NAME, TIMEOUT_MS
from emulator.machine.power import PowerState
from nodes.broker.group.replicas_manager import ReplicasManager
from nodes.broker.tables.group.broker_identity import read_broker_metadata
from nodes.broker.tables.group.replica_role import (
    ReplicaRole,
    SetRoleId,
    StartLeaderDiscovery,
    StartReplicaService,
    StoreIdentity,
)
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer

POLL_MS, DISCOVERY_MS, RETRY_MS = 5_000, 10_000, 5_000
IDENTITY_FILE = "brokerIdentity"


class ManagedBroker:
    """A process with a role and no messages."""

    def __init__(self, host, _broker_id, controllers):
        self.host = host
        self.client = RpcClient(host)
        retained = host.disk.read(IDENTITY_FILE)
        metadata = None if retained is None else read_broker_metadata(retained.decode())
        self.role = ReplicaRole(CLUSTER, NAME, f"{host.ip}:{BROKER_PORT}", metadata=metadata)
        self.manager = ReplicasManager(host, self.client, self.role, self, controllers)
        self.role_ids = []
        self.serves = False

    async def life(self):
        server = RpcServer(self.host)
        server.serve({Code.NOTIFY_BROKER_ROLE_CHANGED: self.on_notified})
        self.host.listen(BROKER_PORT, server)
        self.manager.start_probing()
        self.host.start_soon(self.begin, name="startBasicService")

    async def begin(self):
        while not await self.manager.start_basic_service():
            await self.host.sleep_ms(RETRY_MS)

    async def every(self, period_ms, job):
        while True:
            await self.host.sleep_ms(period_ms)
            await job()

    async def beat(self):
        self.manager.send_heartbeat()

    def perform(self, effect):
        match effect:
            case StoreIdentity() if self.role.metadata is not None:
                self.host.disk.write(IDENTITY_FILE, self.role.metadata.text.encode())
            case StartLeaderDiscovery():
                self.host.start_soon(self.every, DISCOVERY_MS, self.manager.find_leader, name="discovery")
            case StartReplicaService():
                self.serves = True
                self.host.start_soon(self.every, POLL_MS, self.manager.poll, name="poll")
                self.host.start_soon(self.every, HEARTBEAT_MS, self.beat, name="heartbeat")
            case SetRoleId(role_id):
                self.role_ids.append(role_id)

    def heartbeat(self):
        identity = (CLUSTER, self.role.address, NAME, self.role.broker_id)
        return BrokerHeartbeatRequestHeader(*identity, self.role.master_epoch, 0, 0, TIMEOUT_MS, 0)

    def maybe_shrink_sync_state_set(self):
        return self.role.sync_state_set

    def on_notified(self, _channel, request):
        header = decode_header(headers.NotifyBrokerRoleChangedRequestHeader, request.ext_fields)
        self.manager.on_role_changed(header, decode_body(SyncStateSet, request.body))


def masters(group):
    return [number for number, broker in group.beaters.items() if broker.role.is_master and alive(group, number)]


def alive(group, number):
    return group.broker_hosts[number].power_state is PowerState.RUNNING


async def in_sync(group):
    """All serve, one is master, and the master has reported all as in sync."""
    await group.until(lambda: all(broker.serves for broker in group.beaters.values()))
    await group.until(lambda: masters(group))
    (master,) = masters(group)
    await group.sleep(2 * HEARTBEAT_MS)
    await group.beaters[master].manager.report_sync_state_set(
        [beater.role.broker_id for beater in group.beaters.values()]
    )
    assert len(group.beaters[master].role.sync_state_set) == len(group.beaters)
    return master
