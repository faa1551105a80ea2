"""Group membership of a broker: it polls the members, handles notifications, and carries out the consequences."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import trio

from nodes.beliefs import Belief, BeliefKind, Json
from nodes.broker.context import BrokerContext
from nodes.broker.ha.service import HaService
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration, RegisterResult
from nodes.broker.tables.group.member_group import (
    ChangeSpecialService,
    CloseChannels,
    Effect,
    MemberGroup,
    MissingFlushOffsetError,
    NotifyMasterOnline,
    RegisterBrokerAll,
    RetrieveHaInfo,
    SetAliveReplicas,
    SetMasterFlushedOffset,
    UpdateHaMasterAddress,
    UpdateMasterAddress,
    WakeUpHaClient,
)
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.bodies import GetBrokerMemberGroupResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, SYNC_BROKER_MEMBER_TOPIC_PREFIX, TopicRouteData
from nodes.protocol.registry import decode_body_cached, decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import invoke, success
from nodes.threads import ScheduledThread, try_lock


class SpecialService(Protocol):
    """A service that only one member of a broker group runs."""

    def change(self, *, running: bool) -> None:
        """Start or stop; does nothing if the service is in that state already."""

    @property
    def is_running(self) -> bool:
        """Whether it runs."""


class SpecialServices:
    """All special services of a broker; they start and stop together.

    Args:
        services: those that run only between a start and a stop.
        revive: one that may run from the beginning on, as the configured id says.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#changeSpecialServiceStatus`, `#isSpecialServiceRunning`.
    """

    def __init__(self, *services: SpecialService, revive: SpecialService) -> None:
        self._services = services
        self._revive = revive

    def change(self, *, running: bool) -> None:
        """Start or stop all services."""
        for service in (*self._services, self._revive):
            service.change(running=running)

    @property
    def is_running(self) -> bool:
        """Whether all of them run, or the one that revives."""
        return all(service.is_running for service in self._services) or self._revive.is_running


_POLL_INITIAL_DELAY_MS = 1_000
_ASK_TIMEOUT_MS = 3_000
_HA_INFO_TIMEOUT_MS = 3_000
_HA_ADDRESS_LENGTH_MIN = 6
_NOTIFIED_LOCK_TIMEOUT_MS = 3_000


def member_group(broker: BrokerContext) -> MemberGroup:
    """The group of a broker before its first poll.

    A slave without a static HA address takes the address from answers to its registrations. A static one has no effect:
    RocketMQ hands it to the HA service before that has a client.
    """
    config = broker.config
    has_static_address = len(config.ha_master_address) >= _HA_ADDRESS_LENGTH_MIN
    return MemberGroup(
        broker_id=broker.broker_id,
        address=broker.address,
        ha_address=broker.ha_address,
        enable_slave_acting_master=config.enable_slave_acting_master,
        sync_master_flush_offset_when_startup=config.sync_master_flush_offset_when_startup,
        update_master_ha_server_addr_periodically=broker.broker_id != MASTER_ID and not has_static_address,
        isolated=config.enable_slave_acting_master and config.total_replicas > 1,
    )


class GroupMembership(Part):
    """Keeps the view of the group up to date, and carries out the effects of changes.

    Args:
        nameservers: polled for the members.
        special: the services that only one member of a group runs.
        on_master_online: answers the pulls that are held.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#syncBrokerMemberGroup`, `#updateMinBroker`, `#startService`;
        `AdminBrokerProcessor#notifyMinBrokerIdChange`, `#updateBrokerHaInfo`.

    Emits:
        MEMBER_GROUP, MIN_BROKER, SPECIAL_SERVICE and MASTER_ADDR whenever they change.
    """

    def __init__(
        self,
        broker: BrokerContext,
        group: MemberGroup,
        client: RpcClient,
        registration: NameserverRegistration,
        ha: HaService,
        nameservers: Nameservers,
        special: SpecialServices,
        on_master_online: Callable[[], None],
    ) -> None:
        self.group = group
        self._broker = broker
        self._client = client
        self._registration = registration
        self._ha = ha
        self._on_master_online = on_master_online
        self._nameservers = nameservers
        self._special = special
        self._min_broker_lock = trio.Lock()
        self._believed: dict[BeliefKind, Json] = {}
        self._seen: object = None
        """The fields of the group at the last look for changes."""
        self._polling = ScheduledThread(broker.host, "BrokerControllerMemberGroupScheduledThread")

    def handlers(self) -> Handlers:
        """Notifications of a new minimum, and exchanges of HA addresses."""
        return {
            RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: self._on_notified,
            RequestCode.EXCHANGE_BROKER_HA_INFO: InTask(self._exchange_ha_info),
        }

    async def start(self) -> None:
        """Start to poll the members, with `enableSlaveActingMaster`; with `skipPreOnline`, go online now, too."""
        config = self._broker.config
        self.believe()
        if config.enable_slave_acting_master:
            period_ms = config.sync_broker_member_group_period
            self._polling.at_fixed_rate("syncBrokerMemberGroup", self._poll, _POLL_INITIAL_DELAY_MS, period_ms)
            self._polling.start()
        if config.skip_pre_online:
            await self.start_service_without_condition()

    async def fetch_members(self) -> Mapping[int, str] | None:
        """Poll the nameserver that this broker follows.

        Returns:
            Broker id -> address; None if the answer contains no group, for example because it is an error.

        Raises:
            RemotingError: no answer.
        """
        broker = self._broker
        if broker.config.compatible_with_old_name_srv:
            topic = SYNC_BROKER_MEMBER_TOPIC_PREFIX + broker.broker_name
            return self._members_of_route(await self._ask(headers.GetRouteInfoRequestHeader(topic)))
        header = headers.GetBrokerMemberGroupRequestHeader(broker.cluster_name, broker.broker_name)
        answer = await self._nameservers.call(RequestCode.GET_BROKER_MEMBER_GROUP, header, timeout_ms=_ASK_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return decode_body_cached(GetBrokerMemberGroupResponseBody, answer.body).broker_member_group.broker_addrs

    async def start_service(self, min_id: int, address: str) -> None:
        """Go online: start special services, register, then end the isolation."""
        await self.carry_out(self.group.start_service(min_id, address))
        self.group.end_isolation()

    async def start_without_isolation(self) -> None:
        """Start without pre-online: a master starts its special services, and every broker registers."""
        await self.carry_out((ChangeSpecialService(self.group.broker_id == MASTER_ID),))
        await self._registration.register_all(force=True)

    async def start_service_without_condition(self) -> None:
        """Go online without regard to the group."""
        await self.carry_out(self.group.start_service_without_condition())
        self.group.end_isolation()

    async def carry_out(self, effects: Sequence[Effect]) -> None:
        """Carry out effects, in their order."""
        self.believe()
        for effect in effects:
            await self._carry_out(effect)
        if effects:
            self.believe()

    def believe(self) -> None:
        """Record what has changed about the group."""
        group = self.group
        seen = (group.members, group.min_broker_id, group.min_broker_addr, group.slave_sync_master_addr)
        if seen == self._seen:
            return
        self._seen = seen
        members = None if group.members is None else {str(i): address for i, address in group.members.items()}
        self._record(BeliefKind.MEMBER_GROUP, members, self._nameservers.chosen or "")
        self._record(BeliefKind.MIN_BROKER, {"id": group.min_broker_id, "address": group.min_broker_addr})
        self._record(BeliefKind.MASTER_ADDR, group.slave_sync_master_addr)

    # --- polls and notifications --------------------------------------------------

    async def _poll(self) -> None:
        try:
            members = await self.fetch_members()
        except RemotingError as error:
            self._broker.host.log.warning("sync broker member group failed", error=str(error))
            return
        try:
            self._min_broker_lock.acquire_nowait()
        except trio.WouldBlock:
            # Another task decides about the minimum at present; the members are updated all the same.
            self.group.members = None if members is None else dict(sorted(members.items()))
            self.believe()
            return
        try:
            await self.carry_out(self.group.on_polled(members))
        finally:
            self._min_broker_lock.release()

    def _on_notified(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.NotifyMinBrokerIdChangeRequestHeader, request.ext_fields)
        self._broker.host.start_soon(self._take_notice, header, cause.get(), name="notifyMinBrokerIdChange")
        return success(request)

    async def _take_notice(self, header: headers.NotifyMinBrokerIdChangeRequestHeader, began: int) -> None:
        cause.set(began)
        if not await try_lock(self._broker.host, self._min_broker_lock, _NOTIFIED_LOCK_TIMEOUT_MS):
            self._broker.host.log.warning("update min broker is busy: a notification is lost")
            return
        try:
            await self.carry_out(self.group.on_notified(header))
        finally:
            self._min_broker_lock.release()

    async def on_registered(self, results: list[RegisterResult]) -> None:
        """Handle the answers to a registration; see `NameserverRegistration.on_registered`."""
        await self.carry_out(self.group.on_registered(results))

    async def _exchange_ha_info(self, _channel: Channel, request: Command) -> Command:
        info = decode_header(headers.ExchangeHaInfoHeader, request.ext_fields)
        if info.master_ha_address is None:
            return success(request, self.group.ha_info(self._broker.store.init_max_commit_log_offset))
        try:
            await self.carry_out(self.group.adopt_ha_info(info))
        except MissingFlushOffsetError as error:
            await self.carry_out(error.done)
            raise
        return success(request)

    async def retrieve_ha_info(self, address: str) -> headers.ExchangeHaInfoHeader | None:
        """Ask a master for its HA address (906 without fields); None if it does not answer."""
        try:
            answer = await invoke(
                self._client,
                address,
                RequestCode.EXCHANGE_BROKER_HA_INFO,
                headers.ExchangeHaInfoHeader(),
                timeout_ms=_HA_INFO_TIMEOUT_MS,
            )
        except RemotingError as error:
            self._broker.host.log.warning("retrieve broker HA info failed", broker=address, error=str(error))
            return None
        if answer.code != ResponseCode.SUCCESS:
            return None
        return decode_header(headers.ExchangeHaInfoHeader, answer.ext_fields)

    async def send_ha_info(self, address: str, info: headers.ExchangeHaInfoHeader) -> bool:
        """Report a member to replicate from this broker; returns whether it accepted."""
        code = RequestCode.EXCHANGE_BROKER_HA_INFO
        try:
            answer = await invoke(self._client, address, code, info, timeout_ms=_HA_INFO_TIMEOUT_MS)
        except RemotingError as error:
            self._broker.host.log.warning("send broker HA info failed", broker=address, error=str(error))
            return False
        return answer.code == ResponseCode.SUCCESS

    # --- effects --------------------------------------------------------------------

    async def _carry_out(self, effect: Effect) -> None:
        match effect:
            case ChangeSpecialService(running):
                self._change_special_service(running=running)
            case RegisterBrokerAll():
                await self._registration.register_all(force=self._broker.config.force_register)
            case RetrieveHaInfo(address):
                await self.carry_out(self.group.on_ha_info(await self.retrieve_ha_info(address)))
            case CloseChannels(addresses):
                for address in addresses:
                    self._client.close(address)
            case UpdateHaMasterAddress() | WakeUpHaClient() | SetAliveReplicas():
                self._update_ha_service(effect)
            case NotifyMasterOnline():
                self._on_master_online()
            case UpdateMasterAddress() | SetMasterFlushedOffset():
                pass  # state of the store that nothing in the emulator uses

    def _update_ha_service(self, effect: UpdateHaMasterAddress | WakeUpHaClient | SetAliveReplicas) -> None:
        match effect:
            case UpdateHaMasterAddress(address):
                self._ha.update_master_address(address)
            case WakeUpHaClient():
                self._ha.wake_up()
            case SetAliveReplicas(count):
                self._ha.alive_replicas = count

    def _change_special_service(self, *, running: bool) -> None:
        self._special.change(running=running)
        self._record(BeliefKind.SPECIAL_SERVICE, running)

    async def _ask(self, header: headers.GetRouteInfoRequestHeader) -> Command:
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        return await self._nameservers.call(code, header, timeout_ms=_ASK_TIMEOUT_MS)

    def _members_of_route(self, answer: Command) -> Mapping[int, str] | None:
        if answer.code != ResponseCode.SUCCESS:
            return None
        own = (self._broker.cluster_name, self._broker.broker_name)
        route = decode_body_cached(TopicRouteData, answer.body)
        found = (data for data in route.broker_datas if (data.cluster, data.broker_name) == own)
        return next((data.broker_addrs for data in found), None)

    def _record(self, kind: BeliefKind, value: Json, source: str = "") -> None:
        if kind not in self._believed or self._believed[kind] != value:
            if kind in self._believed or value is not None:
                self._broker.host.record(Belief(kind, self._broker.broker_name, value, source))
            self._believed[kind] = value
