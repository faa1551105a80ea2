"""A controller's tables with one group, for tests: requests, and who is alive; events are applied at once."""

from nodes.controller.tables.heartbeats import ReplicaLiveInfo
from nodes.controller.tables.replicas_info import ControllerResult, ReplicasInfoManager
from nodes.controller.tables.replicated_state import ReplicatedState
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.codes import ResponseCode

CLUSTER, NAME = "c1", "b1"


class OneGroup:
    """The group `b1` of the cluster `c1`."""

    def __init__(self, *members: int, enable_elect_unclean_master: bool = False) -> None:
        self.state = ReplicatedState()
        self.manager = ReplicasInfoManager(self.state, enable_elect_unclean_master=enable_elect_unclean_master)
        self.live: dict[tuple[str | None, str, int], ReplicaLiveInfo] = {}
        for member in members:
            self.apply(member)
            self.alive(member)

    @property
    def sync(self):
        return self.state.sync.get(NAME)

    @property
    def brokers(self):
        group = self.state.groups.get(NAME)
        return {} if group is None else group.brokers

    def alive(self, *members: int, epoch: int = 1, max_offset: int = 0, priority: int = 0) -> None:
        for member in members:
            info = ReplicaLiveInfo(address(member), 0, 0, None, epoch, max_offset, 0, priority)
            self.live[CLUSTER, NAME, member] = info

    def dead(self, *members: int) -> None:
        for member in members:
            self.live.pop((CLUSTER, NAME, member), None)

    def is_alive(self, cluster, name, member):
        return self.live.get((cluster, name, member))

    def committed(self, result: ControllerResult) -> ControllerResult:
        for event in result.events:
            self.state.apply(event)
        return result

    def next_id(self) -> int:
        return self.manager.get_next_broker_id(
            headers.GetNextBrokerIdRequestHeader(CLUSTER, NAME)
        ).header.next_broker_id

    def apply(self, member: int, check_code: str | None = None) -> ResponseCode:
        code = check_code or f"{address(member)};1"
        return self.committed(
            self.manager.apply_broker_id(headers.ApplyBrokerIdRequestHeader(CLUSTER, NAME, member, code))
        ).code

    def register(self, member: int, cluster: str = CLUSTER, at: str | None = None) -> ControllerResult:
        header = headers.RegisterBrokerToControllerRequestHeader(cluster, NAME, member, at or address(member), 0)
        return self.committed(self.manager.register_broker(header, self.is_alive))

    def generate_election(self, asking: int | None, *, designate: bool = False) -> ControllerResult:
        """The answer and its events, which are not committed yet."""
        header = headers.ElectMasterRequestHeader(CLUSTER, NAME, asking, designate)
        return self.manager.elect_master(header, self.is_alive)

    def elect(self, asking: int | None, *, designate: bool = False) -> ControllerResult:
        return self.committed(self.generate_election(asking, designate=designate))

    def elect_by_controller(self) -> ControllerResult:
        return self.elect(headers.NO_REPLICA)

    def generate_alter(self, master: int, epoch: int, members: tuple[int, ...], set_epoch: int) -> ControllerResult:
        header = headers.AlterSyncStateSetRequestHeader(NAME, master, epoch, 0)
        return self.manager.alter_sync_state_set(header, SyncStateSet(members, set_epoch), self.is_alive)

    def alter(self, *members: int) -> ControllerResult:
        """As the recorded master, with the epochs that the controller holds."""
        info = self.sync
        return self.committed(
            self.generate_alter(info.master_id, info.master_epoch, members, info.sync_state_set_epoch)
        )

    def clean(self, ids: str | None = None, *, cluster: str | None = CLUSTER, living: bool = False) -> ControllerResult:
        header = headers.CleanControllerBrokerDataRequestHeader(NAME, cluster, ids, living)
        return self.committed(self.manager.clean_broker_data(header, self.is_alive))

    def replica_info(self) -> ControllerResult:
        return self.manager.get_replica_info(headers.GetReplicaInfoRequestHeader(NAME))


def address(member: int) -> str:
    return f"10.0.0.{member}:10911"
