"""The role of a broker in controller mode: which replica it is, who is master, and what a verdict changes.

A verdict counts only if its master epoch is greater than that of the last one, be it the answer to a request, the
answer to a poll, or a notification. Nothing here sends or waits: effects are returned, in RocketMQ's order.

Mirrors:
    `org.apache.rocketmq.broker.controller.ReplicasManager`.
"""

from enum import StrEnum

from nodes.broker.tables.group.broker_identity import BrokerMetadata, TempBrokerMetadata
from nodes.broker.tables.group.member_group import ChangeSpecialService, RegisterBrokerAll
from nodes.protocol.bodies_controller import SyncStateSet
from nodes.protocol.java import long_set
from nodes.protocol.model import MASTER_ID
from nodes.values import frozen


class StartState(StrEnum):
    """How far a broker has come on its way to service."""

    INITIAL = "INITIAL"
    FIRST_TIME_SYNC_CONTROLLER_METADATA_DONE = "FIRST_TIME_SYNC_CONTROLLER_METADATA_DONE"
    """It knows the leading controller."""
    REGISTER_TO_CONTROLLER_DONE = "REGISTER_TO_CONTROLLER_DONE"
    RUNNING = "RUNNING"


class RegisterState(StrEnum):
    """How far a broker has come on its way to an id."""

    INITIAL = "INITIAL"
    CREATE_TEMP_METADATA_FILE_DONE = "CREATE_TEMP_METADATA_FILE_DONE"
    """It may apply for an id."""
    CREATE_METADATA_FILE_DONE = "CREATE_METADATA_FILE_DONE"
    """It has an id."""
    REGISTERED = "REGISTERED"


# Effects, carried out by a flow


@frozen
class StartLeaderDiscovery:
    """Look for the leading controller every 10 s, first in 3 s."""


@frozen
class StartReplicaService:
    """Accept messages, register with nameservers, poll the controller every 5 s, and hear reports of the HA service."""


@frozen
class StoreIdentity:
    """Write or delete the two identity files, as `ReplicaRole` has them."""


@frozen
class SetLocalBrokerId:
    """Notify the HA service which replica it belongs to."""

    broker_id: int


@frozen
class SetSyncStateSet:
    """Notify the HA service the set that the controller confirmed."""

    members: tuple[int, ...]


@frozen
class ChangeHaToMaster:
    """Close all HA connections and begin an epoch; a smaller one than the last is refused, and the rest goes on."""

    epoch: int


@frozen
class StayHaMaster:
    """Begin an epoch; connections go on."""

    epoch: int


@frozen
class ChangeHaToSlave:
    """Close all HA connections; the address to replicate from comes from a nameserver."""

    master_address: str
    epoch: int
    broker_id: int


@frozen
class StayHaSlave:
    """Take part in an epoch; the connection goes on, although the master may have another address."""

    master_address: str
    epoch: int


@frozen
class SetRoleId:
    """Serve under this id, which nameservers and clients see: 0 as a SYNC_MASTER, else as a slave."""

    role_id: int


@frozen
class StartSlaveSync:
    """Copy the metadata of a master from now on, instead of another one's."""

    master_address: str


@frozen
class StopSlaveSync:
    """Copy no metadata."""


@frozen
class StartSyncStateSetCheck:
    """Look for members that are behind, from now on."""


@frozen
class StopSyncStateSetCheck:
    """Look for members no longer."""


@frozen
class StepTopicVersion:
    """Give the topics a new version with the epoch as state version, by which nameservers know the newer master."""

    epoch: int


@frozen
class CheckSyncStateSet:
    """Look for members that are behind once, with what follows."""


@frozen
class AskForElection:
    """Ask the controller to elect: the group has no master."""


RoleEffect = (
    StartLeaderDiscovery
    | StartReplicaService
    | StoreIdentity
    | SetLocalBrokerId
    | SetSyncStateSet
    | ChangeHaToMaster
    | StayHaMaster
    | ChangeHaToSlave
    | StayHaSlave
    | SetRoleId
    | ChangeSpecialService
    | StartSlaveSync
    | StopSlaveSync
    | StartSyncStateSetCheck
    | StopSyncStateSetCheck
    | StepTopicVersion
    | CheckSyncStateSet
    | AskForElection
    | RegisterBrokerAll
)


@frozen
class ControllerVerdict:
    """What a controller says about a group."""

    master_id: int | None
    master_address: str | None
    master_epoch: int
    sync_state_set_epoch: int
    sync_state_set: tuple[int, ...] = ()


class ReplicaRole:
    """One broker in controller mode; its epochs begin at 0 whenever it starts.

    Args:
        cluster_name: of this broker.
        broker_name: of this broker.
        address: of this broker.
        metadata: from its file; None: it has no id.
        temporary: from its file; None: it does not apply for an id.
    """

    def __init__(
        self,
        cluster_name: str,
        broker_name: str,
        address: str,
        *,
        metadata: BrokerMetadata | None = None,
        temporary: TempBrokerMetadata | None = None,
    ) -> None:
        self.cluster_name = cluster_name
        self.broker_name = broker_name
        self.address = address
        self.metadata = metadata
        self.temporary = temporary
        self.state = StartState.INITIAL
        self.register_state = RegisterState.INITIAL
        self.broker_id: int | None = None
        """Which replica this is, for ever; None: it is not known yet."""
        self.master_id: int | None = None
        self.master_address = ""
        self.master_epoch = 0
        self.sync_state_set: tuple[int, ...] = ()
        """As a master knows it; a former master keeps its last one."""
        self.sync_state_set_epoch = 0

    @property
    def is_master(self) -> bool:
        """Whether the last verdict named this broker."""
        return self.master_id is not None and self.master_id == self.broker_id

    # The way to service

    def on_leader_found(self) -> tuple[RoleEffect, ...]:
        """Go on to registration."""
        self.state = StartState.FIRST_TIME_SYNC_CONTROLLER_METADATA_DONE
        return (StartLeaderDiscovery(),)

    def on_master_known(self) -> tuple[RoleEffect, ...]:
        """Serve: this broker is registered, and its group has a master."""
        self.state = StartState.RUNNING
        return (StartReplicaService(),)

    # The identity

    def confirm_register_state(self) -> tuple[RoleEffect, ...]:
        """Go on where the files say that this broker was."""
        if self.metadata is not None:
            self.broker_id = self.metadata.broker_id
            self.register_state = RegisterState.CREATE_METADATA_FILE_DONE
            return (SetLocalBrokerId(self.broker_id),)
        if self.temporary is not None:
            self.register_state = RegisterState.CREATE_TEMP_METADATA_FILE_DONE
        return ()

    @property
    def has_its_own_files(self) -> bool:
        """Whether the files bear the names of this broker; with those of another one it never starts."""
        files = (file for file in (self.metadata, self.temporary) if file is not None)
        own = (self.cluster_name, self.broker_name)
        return all((file.cluster_name, file.broker_name) == own for file in files)

    def on_next_broker_id(self, broker_id: int, *, now_ms: int) -> tuple[RoleEffect, ...]:
        """Apply for an id from now on."""
        check_code = f"{self.address};{now_ms}"
        self.temporary = TempBrokerMetadata(self.cluster_name, self.broker_name, broker_id, check_code)
        self.register_state = RegisterState.CREATE_TEMP_METADATA_FILE_DONE
        return (StoreIdentity(),)

    def on_broker_id_applied(self, broker_id: int) -> tuple[RoleEffect, ...]:
        """Be this replica for ever."""
        self.metadata = BrokerMetadata(self.cluster_name, self.broker_name, broker_id)
        self.temporary = None
        self.broker_id = broker_id
        self.register_state = RegisterState.CREATE_METADATA_FILE_DONE
        return (StoreIdentity(), SetLocalBrokerId(broker_id))

    def on_broker_id_failed(self) -> tuple[RoleEffect, ...]:
        """Start over after a refusal, or after no answer: then the id may have been given, and no one has it."""
        self.temporary = None
        self.register_state = RegisterState.INITIAL
        return (StoreIdentity(),)

    # Verdicts

    def on_verdict(self, verdict: ControllerVerdict) -> tuple[RoleEffect, ...]:
        """Handle an answer to a registration or an election, or a notification (1008).

        Mirrors:
            `ReplicasManager#changeBrokerRole`.
        """
        if verdict.master_id is None or self.broker_id is None or verdict.master_epoch <= self.master_epoch:
            return ()
        if verdict.master_id == self.broker_id:
            return self._change_to_master(verdict)
        return self._change_to_slave(self.broker_id, verdict.master_id, verdict)

    def on_polled(self, verdict: ControllerVerdict) -> tuple[RoleEffect, ...]:
        """Handle the answer to a poll (1004); an epoch that is smaller than the own one means nothing.

        Mirrors:
            `ReplicasManager#syncMetadataFromController`.
        """
        if verdict.master_epoch > self.master_epoch:
            return self.on_verdict(verdict) if verdict.master_address else (AskForElection(),)
        if verdict.master_epoch == self.master_epoch and self.is_master:
            return self.on_sync_state_set(SyncStateSet(verdict.sync_state_set, verdict.sync_state_set_epoch))
        return ()

    def on_sync_state_set(self, sync_state_set: SyncStateSet) -> tuple[RoleEffect, ...]:
        """Adopt a newer SyncStateSet."""
        if sync_state_set.sync_state_set_epoch <= self.sync_state_set_epoch:
            return ()
        self.sync_state_set = long_set(sync_state_set.sync_state_set)
        self.sync_state_set_epoch = sync_state_set.sync_state_set_epoch
        return (SetSyncStateSet(self.sync_state_set),)

    def _change_to_master(self, verdict: ControllerVerdict) -> tuple[RoleEffect, ...]:
        epoch, stays = verdict.master_epoch, self.is_master
        self.master_epoch = epoch
        adopted = self.on_sync_state_set(SyncStateSet(verdict.sync_state_set, verdict.sync_state_set_epoch))
        if stays:
            return (*adopted, StayHaMaster(epoch), StepTopicVersion(epoch), CheckSyncStateSet(), RegisterBrokerAll())
        self.master_id, self.master_address = self.broker_id, self.address
        return (
            *adopted,
            StopSlaveSync(),
            ChangeHaToMaster(epoch),
            SetRoleId(MASTER_ID),
            ChangeSpecialService(running=True),
            StartSyncStateSetCheck(),
            StepTopicVersion(epoch),
            CheckSyncStateSet(),
            RegisterBrokerAll(),
        )

    def _change_to_slave(self, broker_id: int, master_id: int, verdict: ControllerVerdict) -> tuple[RoleEffect, ...]:
        epoch, address, stays = verdict.master_epoch, verdict.master_address or "", master_id == self.master_id
        self.master_epoch = epoch
        if stays:
            return (StayHaSlave(address, epoch), StepTopicVersion(epoch), RegisterBrokerAll())
        self.master_id, self.master_address = master_id, address
        return (
            StopSyncStateSetCheck(),
            SetRoleId(broker_id),
            ChangeSpecialService(running=False),
            StartSlaveSync(address),
            ChangeHaToSlave(address, epoch, broker_id),
            StepTopicVersion(epoch),
            RegisterBrokerAll(),
        )
