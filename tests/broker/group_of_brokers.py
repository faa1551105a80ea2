"""Brokers of one group in a tiny world, as far as what they copy and lock goes.

No one polls: a test says who is there.
"""

import json

from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT, add_host, process_of
from nodes.broker.broker_setup import BrokerSetup
from nodes.broker.clients.lock_batch import LockBatchMq
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.group.slave_synchronize import MetadataHandlers, SlaveSynchronize
from nodes.broker.tables.group.member_group import MemberGroup
from nodes.config import BrokerConfig
from nodes.protocol.registry import encode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from nodes.threads import ScheduledThread

BROKER_NAME, CLUSTER = "bk", "cluster"


class Member:
    """One broker: its tables, and the flows of this group of tests."""

    def __init__(self, world, broker_id, config=None, *, master=None):
        self.world = world
        self.name = f"b{broker_id}"
        self.machine = add_host(world, broker_id + 1, self.name)
        self.host = process_of(self.machine)
        config = config or BrokerConfig()
        self.tables = BrokerSetup(CLUSTER, BROKER_NAME, broker_id, ()).tables(self.host, config)
        self.context, clients = self.tables.core, self.tables.clients
        self.group = MemberGroup(
            broker_id=broker_id,
            address=self.context.address,
            ha_address=self.context.ha_address,
            enable_slave_acting_master=True,
        )
        self.group.slave_sync_master_addr = master
        self.client = RpcClient(self.host, config)
        self.server = RpcServer(self.host, config)
        self.offset_manage = OffsetManage(self.context, clients.offsets, clients.single_active)
        self.server.serve(
            self.offset_manage.handlers(),
            MetadataHandlers(self.context, clients, self.tables.timer).handlers(),
            LockBatchMq(self.context, clients.locks, self.client, self.group).handlers(),
        )
        self.thread = ScheduledThread(self.host, "BrokerControllerScheduledThread")
        self.slave = SlaveSynchronize(self.context, clients, self.tables.timer, self.client, self.group, self.thread)
        self.host.listen(PORT, self.server)
        self.host.listen(PORT - 2, self.server)

    def copy_from_master(self):
        self.slave.schedule()
        self.thread.start()

    def commit(self, offset, *, queue_id=0, group="g", topic="t"):
        self.offset_manage.commit(group, topic, queue_id, offset, "client")

    def offset(self, queue_id=0, group="g", topic="t"):
        return self.tables.clients.offsets.query_offset(group, topic, queue_id)

    @property
    def now_ms(self):
        return self.host.clock.now_ms()


def know_each_other(*members):
    """What a poll would report each of them."""
    addresses = {member.context.broker_id: member.context.address for member in members}
    for member in members:
        member.group.members = addresses


def cut(world, item, other):
    """Let nothing pass between two members until `heal`."""
    pairs = [(item.name, other.name), (other.name, item.name)]
    world.fabric.add_rule(LinkRule(item.name + other.name, LinkEffect.CUT, lambda src, dst: (src, dst) in pairs))


def heal(world, item, other):
    world.fabric.remove_rule(item.name + other.name)


class Caller:
    """A client of the group."""

    def __init__(self, world):
        self.world = world
        self.client = RpcClient(process_of(add_host(world, 90, "client")))

    async def ask(self, member, code, body=None, *, timeout_ms=3_000):
        content = None if body is None else encode_body(body)
        return await self.client.call(member.context.address, int(code), {}, content, timeout_ms=timeout_ms)


def requests(executed, src, code, event="delivered"):
    """When requests of a code arrived, in whole ms."""
    rows = executed.trace.select("rpc", src=src, code=code, kind="request", event=event)
    return [row["t_ns"] // MS for row in rows]


def believed(executed, node, kind, subject):
    """What a node believed one after the other: (ms, value)."""
    rows = executed.trace.select("beliefs", node=node, kind=kind, subject=subject)
    return [(row["t_ns"] // MS, json.loads(row["value"])) for row in rows]
