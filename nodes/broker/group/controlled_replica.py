"""A broker whose role controllers decide: it carries out what verdicts change, and keeps up the conversation.

Mirrors:
    `org.apache.rocketmq.broker.controller.ReplicasManager`, its threads; `BrokerController#changeSpecialServiceStatus`.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from nodes.beliefs import Belief, BeliefKind, Json
from nodes.broker.context import BrokerContext
from nodes.broker.group.membership import GroupMembership
from nodes.broker.group.replicas_manager import ReplicasManager
from nodes.broker.group.slave_synchronize import (
    ELECTED_FULL_SYNC_INTERVAL_MS,
    ELECTED_INITIAL_DELAY_MS,
    SlaveSynchronize,
)
from nodes.broker.ha.auto_switch_service import AutoSwitchHaService
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.tables.group.broker_identity import (
    BrokerMetadata,
    TempBrokerMetadata,
    read_broker_metadata,
    read_temp_broker_metadata,
)
from nodes.broker.tables.group.member_group import ChangeSpecialService, RegisterBrokerAll
from nodes.broker.tables.group.replica_role import (
    AskForElection,
    ChangeHaToMaster,
    ChangeHaToSlave,
    CheckSyncStateSet,
    ReplicaRole,
    RoleEffect,
    SetLocalBrokerId,
    SetRoleId,
    SetSyncStateSet,
    StartLeaderDiscovery,
    StartReplicaService,
    StartSlaveSync,
    StartSyncStateSetCheck,
    StayHaMaster,
    StayHaSlave,
    StepTopicVersion,
    StopSlaveSync,
    StopSyncStateSetCheck,
    StoreIdentity,
)
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers_controller as headers
from nodes.protocol.bodies_controller import EpochEntry, EpochEntryCache, SyncStateSet
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.model import MASTER_ID
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success
from nodes.threads import Job, ScheduledThread

_Identity = TypeVar("_Identity", BrokerMetadata, TempBrokerMetadata)
IDENTITY_FILE, TEMPORARY_FILE = "brokerIdentity", "brokerIdentity-temp"
_AGAIN_MS = 5_000
"""Pause after a start that failed."""
_FIRST_MS = 3_000
_PROMOTION_MS = 50
"""What a new master does to its log, its queues and its epoch file before it registers: 20 to 90 ms of a real one's.

So a slave, which has less to do, asks a nameserver before it for the master's address, and hears the old one or none.
"""


class ControlledReplica(Part):
    """One broker in controller mode.

    Args:
        broker: whose role is decided.
        client: to controllers.
        controllers: addresses.
        ha: of this broker.
        membership: carries out what slaves that act as masters have in common with this.
        registration: with nameservers.
        slave: copies metadata.

    Emits:
        BROKER_ROLE whenever it changes.
    """

    def __init__(
        self,
        broker: BrokerContext,
        client: RpcClient,
        controllers: Sequence[str],
        ha: AutoSwitchHaService,
        membership: GroupMembership,
        registration: NameserverRegistration,
        slave: SlaveSynchronize,
    ) -> None:
        self._broker = broker
        self._host = broker.host
        self._ha = ha
        self._membership = membership
        self._registration = registration
        self._slave = slave
        self.role = ReplicaRole(
            broker.cluster_name,
            broker.broker_name,
            broker.address,
            metadata=_read(broker, IDENTITY_FILE, read_broker_metadata),
            temporary=_read(broker, TEMPORARY_FILE, read_temp_broker_metadata),
        )
        self._manager = ReplicasManager(broker.host, client, self.role, self, controllers)
        self._checks: ScheduledThread | None = None
        self._waiting: deque[tuple[RoleEffect, int]] = deque()
        self._is_changing = False
        self._believed: Json = None
        registration.heartbeat_controllers = self._manager.send_heartbeat
        broker.is_fenced = True
        membership.group.isolated = True

    def handlers(self) -> Handlers:
        """Notifications of controllers, and questions of administrators."""
        return {
            RequestCode.NOTIFY_BROKER_ROLE_CHANGED: self._on_role_changed,
            RequestCode.GET_BROKER_EPOCH_CACHE: self._get_epoch_cache,
        }

    async def start(self) -> None:
        """Try to get into service; if that fails, go on trying while the ports open."""
        self._slave.schedule(
            initial_delay_ms=ELECTED_INITIAL_DELAY_MS, full_sync_interval_ms=ELECTED_FULL_SYNC_INTERVAL_MS
        )
        self._believe()
        self._manager.start_probing()
        if not await self._manager.start_basic_service():
            self._host.start_soon(self._start_again, name="ReplicasManager")

    async def _start_again(self) -> None:
        while True:
            await self._host.sleep_ms(_AGAIN_MS)
            self._host.begin_cause("startBasicService")
            if await self._manager.start_basic_service():
                return

    # The conversation

    async def _find_leader(self) -> None:
        await self._manager.find_leader()

    async def _check_sync_state_set(self) -> None:
        await self._manager.check_sync_state_set()

    def _on_role_changed(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.NotifyBrokerRoleChangedRequestHeader, request.ext_fields)
        self._manager.on_role_changed(header, decode_body(SyncStateSet, request.body))
        return success(request)

    def _get_epoch_cache(self, _channel: Channel, request: Command) -> Command:
        broker, end = self._broker, self._broker.store.max_commit_log_offset
        entries = tuple(
            EpochEntry(entry.epoch, entry.start_offset, entry.end_offset) for entry in self._ha.epochs.entries
        )
        cache = EpochEntryCache(broker.cluster_name, broker.broker_name, broker.broker_id, entries, end)
        return success(request, None, cache)

    def heartbeat(self) -> BrokerHeartbeatRequestHeader:
        """What the broker says of itself."""
        broker, config = self._broker, self._broker.config
        return BrokerHeartbeatRequestHeader(
            broker.cluster_name,
            broker.address,
            broker.broker_name,
            self.role.broker_id,
            self._ha.epochs.last_epoch,
            broker.store.max_commit_log_offset,
            self._ha.confirm_offset,
            config.controller_heart_beat_timeout_mills,
            config.broker_election_priority,
        )

    def maybe_shrink_sync_state_set(self) -> Iterable[int]:
        """The members of its SyncStateSet that are not behind for too long."""
        return self._ha.in_sync.maybe_shrink(self._host.clock.now_ms())

    # Effects

    def perform(self, effect: RoleEffect) -> None:
        """Carry out one effect of a verdict, once those before it are done; some go on with what follows."""
        self._waiting.append((effect, cause.get()))
        if not self._is_changing:
            self._perform_waiting()

    def _perform_waiting(self) -> None:
        """One change of the role holds up all that come after it."""
        now = cause.get()
        while self._waiting and not self._is_changing:
            effect, began = self._waiting.popleft()
            cause.set(began)
            pause_ms = self._pause_ms(effect)
            if pause_ms:
                self._is_changing = True
                self._host.call_later_ms(pause_ms, partial(self._perform_late, effect, began))
            else:
                self._perform_now(effect)
        cause.set(now)

    def _pause_ms(self, effect: RoleEffect) -> int:
        match effect:
            case ChangeHaToMaster():
                return self._ha.join_ms + _PROMOTION_MS
            case ChangeHaToSlave():
                return self._ha.join_ms
            case _:
                return 0

    def _perform_late(self, effect: RoleEffect, began: int) -> None:
        cause.set(began)
        self._is_changing = False
        self._perform_now(effect)
        self._perform_waiting()

    def _perform_now(self, effect: RoleEffect) -> None:
        match effect:
            case StartLeaderDiscovery():
                period_ms = self._broker.config.sync_controller_metadata_period
                self._periodically("updateControllerMetadata", self._find_leader, period_ms)
            case StartReplicaService():
                self._start_service()
            case StoreIdentity():
                self._store_identity()
            case SetLocalBrokerId(broker_id):
                self._ha.in_sync.broker_id = broker_id
            case SetRoleId(role_id):
                self._set_role_id(role_id)
            case StepTopicVersion(epoch):
                self._broker.topics.begin_epoch(epoch, now_ms=self._host.clock.now_ms())
                self._broker.versions.believe()
            case ChangeSpecialService() | RegisterBrokerAll():
                self._soon(partial(self._membership.carry_out, (effect,)))
            case StartSlaveSync() | StopSlaveSync():
                address = effect.master_address if isinstance(effect, StartSlaveSync) else None
                self._membership.group.slave_sync_master_addr = address
            case AskForElection():
                self._soon(self._manager.elect)
            case _:
                self._perform_on_log(effect)
        self._believe()

    def _perform_on_log(self, effect: RoleEffect) -> None:
        match effect:
            case SetSyncStateSet(members):
                self._ha.set_sync_state_set(members)
            case ChangeHaToMaster(epoch):
                self._ha.change_to_master(epoch)
            case StayHaMaster(epoch):
                self._ha.stay_master(epoch)
            case ChangeHaToSlave(_, epoch, broker_id):
                self._ha.change_to_slave(epoch, broker_id)
            case StayHaSlave(_, epoch):
                self._ha.stay_slave(epoch)
            case StartSyncStateSetCheck():
                period_ms = self._broker.config.check_sync_state_set_period
                self._checks = self._periodically("checkSyncStateSet", self._check_sync_state_set, period_ms)
            case StopSyncStateSetCheck():
                if self._checks is not None:
                    self._checks.stop()
            case CheckSyncStateSet():
                self._soon(self._manager.check_sync_state_set)

    def _start_service(self) -> None:
        self._broker.is_fenced = False
        self._ha.reput()
        self._membership.group.isolated = False
        self._ha.report = self._report
        self._periodically("syncBrokerMetadata", self._manager.poll, self._broker.config.sync_broker_metadata_period)
        self._soon(partial(self._registration.register_all, force=True))

    def _report(self, members: Sequence[int]) -> None:
        if self.role.is_master:
            self._soon(partial(self._manager.report_sync_state_set, members))

    def _set_role_id(self, role_id: int) -> None:
        self._broker.broker_id = role_id
        self._membership.group.become(role_id)
        self._ha.reput()

    def _store_identity(self) -> None:
        for name, file in ((IDENTITY_FILE, self.role.metadata), (TEMPORARY_FILE, self.role.temporary)):
            self._host.disk.write(name, b"" if file is None else file.text.encode())

    def _periodically(self, name: str, job: Job, period_ms: int) -> ScheduledThread:
        thread = ScheduledThread(self._host, f"ReplicasManager_{name}")
        thread.at_fixed_rate(name, job, _FIRST_MS, period_ms)
        thread.start()
        return thread

    def _soon(self, flow: Callable[[], Awaitable[object]]) -> None:
        self._host.start_soon(self._flow, flow, cause.get(), name="ReplicasManager_executor")

    async def _flow(self, flow: Callable[[], Awaitable[object]], began: int) -> None:
        cause.set(began)
        await flow()

    def _believe(self) -> None:
        role = self.role
        serves_as = "master" if self._broker.broker_id == MASTER_ID else "slave"
        value = {
            "replica": role.broker_id,
            "serves_as": None if self._broker.is_fenced else serves_as,
            "master": role.master_id,
            "epoch": role.master_epoch,
        }
        if value != self._believed:
            self._believed = value
            self._host.record(Belief(BeliefKind.BROKER_ROLE, self._broker.broker_name, value))


def _read(broker: BrokerContext, name: str, read: Callable[[str], _Identity]) -> _Identity | None:
    content = broker.host.disk.read(name)
    return read(content.decode()) if content else None
