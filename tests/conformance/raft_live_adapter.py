"""Family raft_live: `RaftReplicasInfoManager`, whose live brokers are part of the replicated state."""

from conformance.controller_heartbeat_adapter import shown_info, shown_key
from conformance.executing import Adapter
from conformance.replicas_adapter import shown_header, shown_sync
from nodes.controller.tables.events import ApplyBrokerId, ElectMaster
from nodes.controller.tables.heartbeats import BrokerIdentity
from nodes.controller.tables.raft_replicas_info import RaftReplicasInfoManager
from nodes.controller.tables.replicated_state import ReplicatedState
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.headers_controller import ElectMasterRequestHeader

CLUSTER = "c1"


class RaftLive(Adapter):
    def __init__(self):
        self.state = ReplicatedState()
        self.manager = RaftReplicasInfoManager(self.state)

    def tables(self):
        sync = {name: shown_sync(info) for name, info in self.state.sync.items()}
        for row in sync.values():
            del row["cluster"]
        live = self.manager.heartbeats.table
        return {"sync": sync, "live": {shown_key(broker): shown_info(info) for broker, info in live.items()}}

    def group_with_master_1(self, name, members):
        for member in range(1, members + 1):
            self.state.apply(ApplyBrokerId(CLUSTER, name, address(member), member, f"{address(member)};{member}"))
        self.state.apply(ElectMaster(name, new_master_elected=True, new_master_broker_id=1))

    def heartbeat(
        self,
        cluster,
        name,
        id,  # noqa: A002 - as the case calls it
        timeout,
        epoch,
        max_offset,
        confirm_offset,
        priority,
    ):
        header = BrokerHeartbeatRequestHeader(
            cluster, address(id), name, id, epoch, max_offset, confirm_offset, timeout, priority
        )
        self.manager.heartbeats.on_heartbeat(BrokerIdentity(cluster, name, id), header, None, now_ms=self.at_ms)

    def check_not_active(self):
        found = self.manager.check_not_active(self.at_ms)
        brokers = [[broker.cluster_name, broker.broker_name, broker.broker_id] for broker in found.brokers]
        return {"code": 0, "report": sorted(brokers) + sorted([None, name, None] for name in found.groups)}

    def close_channel(self, cluster, name, id):  # noqa: A002 - as above
        self.manager.heartbeats.forget(BrokerIdentity(cluster, name, id))

    def query(self, cluster, name, id):  # noqa: A002 - as above
        return {"active": self.manager.heartbeats.alive_at(self.at_ms)(cluster, name, id) is not None}

    def elect(self, name, id):  # noqa: A002 - as above
        header = ElectMasterRequestHeader("", name, id, invoke_time=self.at_ms)
        result = self.manager.elect_master(header, self.manager.heartbeats.alive_at(header.invoke_time))
        for event in result.events:
            self.state.apply(event)
        return {"code": int(result.code), "header": shown_header(result.header)}


def address(member):
    return f"10.0.0.{member}:10911"
