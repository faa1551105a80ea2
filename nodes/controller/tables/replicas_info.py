"""What a leading controller answers: operations that read the replicated state and say which events to write.

They change nothing: events change the state when they are committed, so an answer that names "the next epoch" is wrong
if another event comes first.

Mirrors:
    `org.apache.rocketmq.controller.impl.manager.ReplicasInfoManager`.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import attrs

from nodes.controller.tables import events
from nodes.controller.tables.elect_policy import elect
from nodes.controller.tables.events import Event
from nodes.controller.tables.heartbeats import Liveness
from nodes.controller.tables.replicated_state import (
    BrokerReplicaInfo,
    ReplicatedState,
    SyncStateInfo,
    UnknownGroupError,
)
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies import BrokerMemberGroup
from nodes.protocol.bodies_controller import (
    BrokerReplicasInfo,
    ElectMasterResponseBody,
    ReplicaIdentity,
    ReplicasInfo,
    SyncStateSet,
)
from nodes.protocol.codes import ResponseCode
from nodes.protocol.java import java_split, long_set
from nodes.protocol.widths import int64_of
from nodes.values import frozen

_C = ResponseCode


@frozen
class ControllerResult:
    """The answer to a request, and the events that must be committed before it is sent."""

    header: Any = None
    code: ResponseCode = ResponseCode.SUCCESS
    remark: str | None = None
    body: Any = None
    events: tuple[Event, ...] = ()


class ReplicasInfoManager:
    """The operations on one controller's replicated state.

    Args:
        state: read by every operation; the member that commits events applies them to it.
        enable_elect_unclean_master: whether a replica that is not in sync may become master.
    """

    def __init__(self, state: ReplicatedState, *, enable_elect_unclean_master: bool = False) -> None:
        self._state = state
        self.enable_elect_unclean_master = enable_elect_unclean_master
        """May change while the controller runs."""

    # Ids

    def get_next_broker_id(self, requested: headers.GetNextBrokerIdRequestHeader) -> ControllerResult:
        """Answer 1012: nothing is reserved, and the id may be one that is used."""
        group = self._state.groups.get(requested.broker_name)
        next_id = 1 if group is None else group.next_id
        return ControllerResult(
            headers.GetNextBrokerIdResponseHeader(requested.cluster_name, requested.broker_name, next_id)
        )

    def apply_broker_id(self, requested: headers.ApplyBrokerIdRequestHeader) -> ControllerResult:
        """Answer 1013: any free id is given, and a used one to the broker that repeats the check code of its owner."""
        name, broker_id, check_code = requested.broker_name, requested.applied_broker_id, requested.register_check_code
        answer = headers.ApplyBrokerIdResponseHeader(requested.cluster_name, name)
        group = self._state.groups.get(name)
        if group is None and broker_id != 1:
            remark = f"Broker-set: {name} hasn't been registered in controller, but broker try to apply brokerId: "
            return ControllerResult(answer, _C.CONTROLLER_BROKER_ID_INVALID, f"{remark}{broker_id}")
        owner = None if group is None else group.brokers.get(broker_id)
        if owner is not None and owner.check_code != check_code:
            remark = f"Fail to apply brokerId: {broker_id} in broker-set: {name}"
            return ControllerResult(answer, _C.CONTROLLER_BROKER_ID_INVALID, remark)
        address = check_code.split(";")[0]
        event = events.ApplyBrokerId(requested.cluster_name, name, address, broker_id, check_code)
        return ControllerResult(answer, events=(event,))

    def register_broker(
        self, requested: headers.RegisterBrokerToControllerRequestHeader, alive: Liveness
    ) -> ControllerResult:
        """Answer 1003: the master is named only if it is alive under the cluster that the request names."""
        name = requested.broker_name
        answer = headers.RegisterBrokerToControllerResponseHeader(requested.cluster_name, name)
        rows = self._state.known(name)
        if rows is None:
            remark = f"Broker-set: {name} hasn't been registered in controller"
            return ControllerResult(answer, _C.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark)
        group, info = rows
        replica = group.brokers.get(requested.broker_id)
        if replica is None:
            remark = f"BrokerId: {requested.broker_id} hasn't been registered in broker-set: {name}"
            return ControllerResult(answer, _C.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark)
        if info.master_id is not None and alive(requested.cluster_name, name, info.master_id) is not None:
            answer = attrs.evolve(
                answer,
                master_broker_id=info.master_id,
                master_address=_address(group, info.master_id),
                master_epoch=info.master_epoch,
                sync_state_set_epoch=info.sync_state_set_epoch,
            )
        moved = events.UpdateBrokerAddress(requested.cluster_name, name, requested.broker_address, requested.broker_id)
        written = (moved,) if requested.broker_address != replica.address else ()
        return ControllerResult(answer, body=_sync_state_set(info), events=written)

    # SyncStateSets and masters

    def alter_sync_state_set(
        self, requested: headers.AlterSyncStateSetRequestHeader, sync_state_set: SyncStateSet, alive: Liveness
    ) -> ControllerResult:
        """Answer 1001."""
        name, new = requested.broker_name, long_set(sync_state_set.sync_state_set)
        rows = self._state.known(name)
        if rows is None:
            return _refused_set(_C.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "Broker metadata is not existed")
        group, info = rows
        refusal = _refusal(requested, sync_state_set, info) or _refusal_of_members(new, requested, group, alive)
        if refusal is not None:
            return refusal
        epoch = info.sync_state_set_epoch + 1
        return ControllerResult(
            headers.AlterSyncStateSetResponseHeader(epoch),
            body=SyncStateSet(new, epoch),
            events=(events.AlterSyncStateSet(name, new),),
        )

    def elect_master(self, requested: headers.ElectMasterRequestHeader, alive: Liveness) -> ControllerResult:
        """Answer 1002: a group that never had a master goes to the first broker that asks, also a dead one."""
        name, asking = requested.broker_name, requested.broker_id
        rows = self._state.known(name)
        if rows is None:
            remark = "Broker hasn't been registered"
            return _no_replica(_C.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark)
        group, info = rows
        elected = asking if info.master_epoch == 0 and asking != headers.NO_REPLICA else None
        if elected is None:
            elected = elect(
                info.sync_state_set,
                group.brokers if self.enable_elect_unclean_master else (),
                old_master=info.master_id,
                prefer=asking if requested.designate_elect else None,
                live_info=partial(alive, info.cluster, name),
            )
        if elected is None and asking in (None, headers.NO_REPLICA):
            remark = "Old master has down and failed to elect a new broker master"
            lost = events.ElectMaster(name, new_master_elected=False)
            return attrs.evolve(_no_replica(_C.CONTROLLER_MASTER_NOT_AVAILABLE, remark), events=(lost,))
        if elected is None:
            return _no_replica(_C.CONTROLLER_ELECT_MASTER_FAILED, "Failed to elect a new master")
        if elected == info.master_id:
            return _still_exists(name, group, info)
        answer = headers.ElectMasterResponseHeader(
            elected, _address(group, elected), info.master_epoch + 1, info.sync_state_set_epoch + 1
        )
        addresses = {broker_id: replica.address for broker_id, replica in sorted(group.brokers.items())}
        body = ElectMasterResponseBody((elected,), BrokerMemberGroup(group.cluster, name, addresses))
        event = events.ElectMaster(name, new_master_elected=True, new_master_broker_id=elected)
        return ControllerResult(answer, body=body, events=(event,))

    def scan_need_reelect(self, alive: Liveness) -> tuple[str, ...]:
        """The groups whose recorded master is dead and that have a live replica, in the order of their creation.

        Raises:
            UnknownGroupError: a group whose master is dead has no replicas; RocketMQ's periodic task ends with it.
        """
        return tuple(name for name, info in self._state.sync.items() if self._needs_reelect(name, info, alive))

    def _needs_reelect(self, name: str, info: SyncStateInfo, alive: Liveness) -> bool:
        if info.master_id is None or alive(info.cluster, name, info.master_id) is not None:
            return False
        group = self._state.groups.get(name)
        if group is None:
            raise UnknownGroupError(f"no replicas of {name}, whose master is dead")
        return any(alive(info.cluster, name, broker_id) is not None for broker_id in group.brokers)

    # What is known

    def get_replica_info(self, requested: headers.GetReplicaInfoRequestHeader) -> ControllerResult:
        """Answer 1004: the recorded master, alive or not."""
        rows = self._state.known(requested.broker_name)
        if rows is None:
            answer = headers.GetReplicaInfoResponseHeader()
            return ControllerResult(answer, _C.CONTROLLER_BROKER_METADATA_NOT_EXIST, "Broker metadata is not existed")
        group, info = rows
        address = None if info.master_id is None else _address(group, info.master_id)
        answer = headers.GetReplicaInfoResponseHeader(info.master_id, address, info.master_epoch)
        return ControllerResult(answer, body=_sync_state_set(info))

    def get_sync_state_data(self, broker_names: Iterable[str], alive: Liveness) -> ControllerResult:
        """Answer 1006: unknown names are left out."""
        table = {}
        for name in broker_names:
            rows = self._state.known(name)
            if rows is not None:
                table[name] = _replicas_info(name, *rows, alive)
        return ControllerResult(body=BrokerReplicasInfo(table))

    # Cleaning

    def clean_broker_data(
        self, requested: headers.CleanControllerBrokerDataRequestHeader, alive: Liveness
    ) -> ControllerResult:
        """Answer 1011: with `is_clean_living_broker` the ids are not even read, and the whole group goes."""
        name, ids = requested.broker_name, None
        if not requested.is_clean_living_broker:
            listed = (requested.broker_controller_ids_to_clean or "").strip()
            info = self._state.sync.get(name)
            if not listed and info is not None and info.master_id is not None:
                return _not_cleaned(f"Broker {name} is still alive, clean up failure")
            if listed:
                try:
                    ids = _ids(requested.broker_controller_ids_to_clean or "")
                except ValueError as error:
                    return _not_cleaned(str(error))
                for broker_id in ids:
                    if alive(requested.cluster_name, name, broker_id) is not None:
                        return _not_cleaned(f"Broker [{name},  {broker_id}] is still alive, clean up failure")
        if self._state.known(name) is None:
            return _not_cleaned(f"Broker {name} is not existed,clean broker data failure.")
        return ControllerResult(events=(events.CleanBrokerData(name, ids),))


def _address(group: BrokerReplicaInfo, broker_id: int) -> str | None:
    replica = group.brokers.get(broker_id)
    return None if replica is None else replica.address


def _sync_state_set(info: SyncStateInfo) -> SyncStateSet:
    return SyncStateSet(info.sync_state_set, info.sync_state_set_epoch)


def _refused_set(code: ResponseCode, remark: str) -> ControllerResult:
    return ControllerResult(headers.AlterSyncStateSetResponseHeader(), code, remark)


def _refusal(
    requested: headers.AlterSyncStateSetRequestHeader, sync_state_set: SyncStateSet, info: SyncStateInfo
) -> ControllerResult | None:
    """Why a new set is refused whatever its members are; a set that is the old one is refused first."""
    rejecting = "Rejecting alter syncStateSet request because the current"
    if frozenset(sync_state_set.sync_state_set) == frozenset(info.sync_state_set):
        remark = "The newSyncStateSet is equal with oldSyncStateSet, no needed to update syncStateSet"
        return _refused_set(_C.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, remark)
    if info.master_id is None or info.master_id != requested.master_broker_id:
        master = "null" if info.master_id is None else info.master_id
        remark = f"{rejecting} leader is:{{{master}}}, not {{{requested.master_broker_id}}}"
        return _refused_set(_C.CONTROLLER_INVALID_MASTER, remark)
    if requested.master_epoch != info.master_epoch:
        remark = f"{rejecting} master epoch is:{{{info.master_epoch}}}, not {{{requested.master_epoch}}}"
        return _refused_set(_C.CONTROLLER_FENCED_MASTER_EPOCH, remark)
    if sync_state_set.sync_state_set_epoch != info.sync_state_set_epoch:
        epochs = f"{{{info.sync_state_set_epoch}}}, not {{{sync_state_set.sync_state_set_epoch}}}"
        remark = f"{rejecting} syncStateSet epoch is:{epochs}"
        return _refused_set(_C.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, remark)
    return None


def _refusal_of_members(
    new: tuple[int, ...],
    requested: headers.AlterSyncStateSetRequestHeader,
    group: BrokerReplicaInfo,
    alive: Liveness,
) -> ControllerResult | None:
    """Why a member is refused: it is unknown or dead, be it the master itself; or the master is missing."""
    rejecting = "Rejecting alter syncStateSet request because the"
    for member in new:
        if member not in group.brokers:
            return _refused_set(_C.CONTROLLER_INVALID_REPLICAS, f"{rejecting} replicas {{{member}}} don't exist")
        if alive(group.cluster, requested.broker_name, member) is None:
            return _refused_set(_C.CONTROLLER_BROKER_NOT_ALIVE, f"{rejecting} replicas {{{member}}} don't alive")
    if requested.master_broker_id not in new:
        remark = f"{rejecting} newSyncStateSet don't contains origin leader {{{requested.master_broker_id}}}"
        return _refused_set(_C.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, remark)
    return None


def _no_replica(code: ResponseCode, remark: str) -> ControllerResult:
    return ControllerResult(headers.ElectMasterResponseHeader(), code, remark)


def _still_exists(name: str, group: BrokerReplicaInfo, info: SyncStateInfo) -> ControllerResult:
    assert info.master_id is not None
    remark = f"The old master {info.master_id} is still alive, not need to elect new master for broker {name}"
    answer = headers.ElectMasterResponseHeader(
        info.master_id, _address(group, info.master_id), info.master_epoch, info.sync_state_set_epoch
    )
    body = ElectMasterResponseBody(info.sync_state_set)
    return ControllerResult(answer, _C.CONTROLLER_MASTER_STILL_EXIST, remark, body)


def _replicas_info(name: str, group: BrokerReplicaInfo, info: SyncStateInfo, alive: Liveness) -> ReplicasInfo:
    replicas = [
        ReplicaIdentity(name, broker_id, replica.address, alive(group.cluster, name, broker_id) is not None)
        for broker_id, replica in group.brokers.items()
    ]
    return ReplicasInfo(
        info.master_id,
        None if info.master_id is None else _address(group, info.master_id),
        info.master_epoch,
        info.sync_state_set_epoch,
        tuple(replica for replica in replicas if replica.broker_id in info.sync_state_set),
        tuple(replica for replica in replicas if replica.broker_id not in info.sync_state_set),
    )


def _not_cleaned(remark: str) -> ControllerResult:
    return ControllerResult(code=_C.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, remark=remark)


def _ids(text: str) -> tuple[int, ...]:
    """The ids in `1;2`.

    Raises:
        ValueError: a piece is no number of 64 bits.
    """
    ids = []
    for piece in java_split(text, ";"):
        try:
            ids.append(int64_of(piece))
        except ValueError:
            malformed = f'java.lang.NumberFormatException: For input string: "{piece}"'
            expected = "Please set the option <brokerControllerIdsToClean> according to the format, exception: "
            raise ValueError(f"{expected}{malformed}") from None
    return long_set(ids)
