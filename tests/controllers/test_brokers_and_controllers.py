"""Brokers that have their real conversation with real controllers; what they do with a role is only remembered."""

import pytest

from controllers.controller_world import BROKER_PORT, CLUSTER, HEARTBEAT_MS, NAME, TIMEOUT_MS, played
from nodes.broker.group.replicas_manager import ReplicasManager
from nodes.broker.tables.broker_identity import read_broker_metadata
from nodes.broker.tables.replica_role import (
    ReplicaRole,
    SetRoleId,
    StartLeaderDiscovery,
    StartService,
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
        kept = host.disk.read(IDENTITY_FILE)
        metadata = None if kept is None else read_broker_metadata(kept.decode())
        self.role = ReplicaRole(CLUSTER, NAME, f"{host.ip}:{BROKER_PORT}", metadata=metadata)
        self.manager = ReplicasManager(host, self.client, self.role, self, controllers)
        self.role_ids = []
        self.serves = False

    async def life(self):
        server = RpcServer(self.host)
        server.serve({Code.NOTIFY_BROKER_ROLE_CHANGED: self.on_notified})
        self.host.listen(BROKER_PORT, server)
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
            case StartService():
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
    return group.broker_hosts[number].power_state == "running"


async def in_sync(group):
    """All serve, one is master, and the master has reported all as in sync."""
    await group.until(lambda: all(broker.serves for broker in group.beaters.values()))
    await group.until(lambda: masters(group))
    (master,) = masters(group)
    await group.sleep(2 * HEARTBEAT_MS)
    await group.beaters[master].manager.report_sync_state_set([one.role.broker_id for one in group.beaters.values()])
    assert len(group.beaters[master].role.sync_state_set) == len(group.beaters)
    return master


def test_a_cold_start_ends_with_one_master_and_ids_of_their_own():
    async def script(group):
        await in_sync(group)
        return sorted(one.role.broker_id for one in group.beaters.values()), len(masters(group))

    assert played(script, brokers=3, broker=ManagedBroker) == ([1, 2, 3], 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_when_the_master_dies_another_replica_in_sync_is_promoted_within_a_second(seed):
    async def script(group):
        old = await in_sync(group)
        await group.broker_hosts[old].kill()
        began = await group.until(lambda: True)
        took_ms = await group.until(lambda: masters(group)) - began
        await group.sleep(1_000)
        others = [one.role.master_id for number, one in group.beaters.items() if number != old]
        return took_ms, len(masters(group)), len(dict.fromkeys(others)), group.sync.master_epoch

    took_ms, one, agreed, epoch = played(script, brokers=3, seed=seed, broker=ManagedBroker)

    assert took_ms < 1_000
    assert (one, agreed, epoch) == (1, 1, 2)


def test_a_master_that_returns_after_its_time_follows_the_new_one():
    async def script(group):
        old = await in_sync(group)
        await group.broker_hosts[old].kill()
        await group.until(lambda: masters(group))
        before = group.beaters[old]
        await group.broker_hosts[old].restart()
        await group.until(lambda: group.beaters[old] is not before and group.beaters[old].serves)
        back = group.beaters[old]
        return back.role_ids == [back.role.broker_id], len(masters(group))

    assert played(script, brokers=3, broker=ManagedBroker) == (True, 1)


def test_a_frozen_master_believes_in_itself_until_it_hears_of_the_new_one():
    async def script(group):
        old = await in_sync(group)
        await group.broker_hosts[old].suspend()
        await group.until(lambda: group.sync.master_id not in (None, group.beaters[old].role.broker_id))
        still = group.beaters[old].role.is_master
        await group.broker_hosts[old].resume()
        began = await group.until(lambda: True)
        return still, await group.until(lambda: not group.beaters[old].role.is_master) - began

    still, took_ms = played(script, brokers=3, broker=ManagedBroker)

    assert still
    assert took_ms <= POLL_MS + 100


def test_a_group_whose_brokers_were_all_silent_heals_when_one_of_them_polls():
    async def script(group):
        await in_sync(group)
        for host in group.broker_hosts.values():
            await host.suspend()
        await group.until(lambda: group.sync.master_id is None)
        await group.sleep(100)
        epoch = group.sync.master_epoch
        await group.broker_hosts[2].resume()
        await group.until(lambda: group.sync.master_id is not None)
        return epoch, group.sync.master_epoch, group.sync.master_id == group.beaters[2].role.broker_id

    assert played(script, brokers=3, broker=ManagedBroker) == (4, 5, True)
