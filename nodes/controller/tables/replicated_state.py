"""The replicated state: what all controllers agree on, and how events change it.

Two tables that can get out of step: cleaning may take one row of a group and leave the other. Then the group counts as
unknown, and the next application for an id replaces both rows.

Mirrors:
    `org.apache.rocketmq.controller.impl.manager.ReplicasInfoManager#applyEvent`, `BrokerReplicaInfo`,
    `SyncStateInfo`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

from nodes.controller.tables.events import (
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    Event,
    UpdateBrokerAddress,
)
from nodes.values import frozen


class UnknownGroupError(LookupError):
    """A row that the caller takes for granted is missing; RocketMQ throws a NullPointerException."""


@frozen
class Replica:
    """A broker that has an id."""

    address: str
    check_code: str
    """What it applied with: who repeats it is the same broker."""


@frozen
class BrokerReplicaInfo:
    """The replicas of a group."""

    cluster: str
    """As the first applicant said it."""
    next_id: int
    """Counts applications, not ids, so it may be one that is used already."""
    brokers: Mapping[int, Replica]
    """Broker id -> replica, in the order of the applications."""


@frozen
class SyncStateInfo:
    """The master of a group, and who is in sync with it."""

    cluster: str
    master_id: int | None = None
    master_epoch: int = 0
    sync_state_set: tuple[int, ...] = ()
    """In the order of a Java hash set."""
    sync_state_set_epoch: int = 0


class ReplicatedState:
    """The two tables of one controller."""

    def __init__(self) -> None:
        self._groups: dict[str, BrokerReplicaInfo] = {}
        self._sync: dict[str, SyncStateInfo] = {}

    @property
    def groups(self) -> Mapping[str, BrokerReplicaInfo]:
        """Broker name -> its replicas."""
        return MappingProxyType(self._groups)

    @property
    def sync(self) -> Mapping[str, SyncStateInfo]:
        """Broker name -> its master and SyncStateSet."""
        return MappingProxyType(self._sync)

    def known(self, broker_name: str) -> tuple[BrokerReplicaInfo, SyncStateInfo] | None:
        """Both rows of a group; None if one is missing."""
        group, info = self._groups.get(broker_name), self._sync.get(broker_name)
        return None if group is None or info is None else (group, info)

    def apply(self, event: Event) -> None:
        """Apply an event that is committed; one about an unknown group changes nothing.

        Raises:
            UnknownGroupError: the address of a broker changes whose group has no replicas.
        """
        match event:
            case ApplyBrokerId():
                self._apply_broker_id(event)
            case ElectMaster():
                self._elect_master(event)
            case AlterSyncStateSet():
                self._alter_sync_state_set(event)
            case UpdateBrokerAddress():
                self._update_address(event)
            case CleanBrokerData():
                self._clean(event)

    def _apply_broker_id(self, event: ApplyBrokerId) -> None:
        name, new = event.broker_name, Replica(event.broker_address, event.register_check_code)
        rows = self.known(name)
        if rows is None:
            self._groups[name] = BrokerReplicaInfo(event.cluster_name, 2, {event.new_broker_id: new})
            self._sync[name] = SyncStateInfo(event.cluster_name)
            return
        group, _ = rows
        if event.new_broker_id not in group.brokers:
            brokers = {**group.brokers, event.new_broker_id: new}
            self._groups[name] = attrs.evolve(group, brokers=brokers, next_id=group.next_id + 1)

    def _elect_master(self, event: ElectMaster) -> None:
        rows = self.known(event.broker_name)
        if rows is None:
            return
        _, info = rows
        elected = event.new_master_broker_id if event.new_master_elected else None
        after = attrs.evolve(info, master_id=elected, master_epoch=info.master_epoch + 1)
        if elected is not None:
            after = attrs.evolve(after, sync_state_set=(elected,), sync_state_set_epoch=info.sync_state_set_epoch + 1)
        self._sync[event.broker_name] = after

    def _alter_sync_state_set(self, event: AlterSyncStateSet) -> None:
        rows = self.known(event.broker_name)
        if rows is None:
            return
        _, info = rows
        self._sync[event.broker_name] = attrs.evolve(
            info,
            sync_state_set=event.new_sync_state_set,
            sync_state_set_epoch=info.sync_state_set_epoch + 1,
        )

    def _update_address(self, event: UpdateBrokerAddress) -> None:
        group = self._groups.get(event.broker_name)
        if group is None:
            raise UnknownGroupError(f"no replicas of {event.broker_name}, one of which has moved")
        replica = group.brokers.get(event.broker_id)
        if replica is None:
            return
        moved = attrs.evolve(replica, address=event.broker_address)
        self._groups[event.broker_name] = attrs.evolve(group, brokers={**group.brokers, event.broker_id: moved})

    def _clean(self, event: CleanBrokerData) -> None:
        """Neither the master's id nor an epoch changes."""
        name, cleaned = event.broker_name, event.broker_ids
        if not cleaned:
            self._groups.pop(name, None)
            self._sync.pop(name, None)
            return
        rows = self.known(name)
        if rows is None:
            return
        group, info = rows
        brokers = {broker_id: replica for broker_id, replica in group.brokers.items() if broker_id not in cleaned}
        in_sync = tuple(broker_id for broker_id in info.sync_state_set if broker_id not in cleaned)
        self._groups[name] = attrs.evolve(group, brokers=brokers)
        self._sync[name] = attrs.evolve(info, sync_state_set=in_sync)
        if not brokers:
            del self._groups[name]
        if not in_sync:
            del self._sync[name]
