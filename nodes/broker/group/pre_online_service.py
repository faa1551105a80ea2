"""The thread that brings an isolated broker online."""

from enum import StrEnum
from typing import Any

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.context import BrokerContext
from nodes.broker.group.membership import GroupMembership
from nodes.broker.group.slave_synchronize import FetchedMetadata, SlaveSynchronize
from nodes.broker.ha.service import HaService
from nodes.broker.part import Part
from nodes.broker.tables.group.pre_online import (
    AdoptMetadata,
    Attempt,
    Carry,
    FetchMetadata,
    PreOnline,
    RetrieveMasterHaInfo,
    SendHaInfo,
    StartService,
    Step,
    WaitHaTransfer,
)
from nodes.protocol.headers import ExchangeHaInfoHeader
from nodes.rpc.errors import RemotingError

_RETRY_MS = 1_000


class OnlineStage(StrEnum):
    """The stages of pre-online."""

    ISOLATED = "isolated"
    FETCHING_MEMBER_GROUP = "fetching member group"
    EXCHANGING_HA_INFO = "exchanging HA info"
    WAITING_FOR_HA_TRANSFER = "waiting for HA transfer"
    SYNCHRONIZING_METADATA = "synchronizing metadata"
    STARTING_SERVICE = "starting service"
    ONLINE = "online"


class BrokerPreOnlineService(Part):
    """Tries once a second to go online, until it succeeds.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerPreOnlineService`.

    Emits:
        ONLINE_STAGE when a stage begins.
    """

    def __init__(
        self, broker: BrokerContext, membership: GroupMembership, ha: HaService, slave: SlaveSynchronize
    ) -> None:
        self._broker = broker
        self._membership = membership
        self._ha = ha
        self._slave = slave
        self._fetched: FetchedMetadata | None = None
        self._stage: tuple[OnlineStage, str] | None = None

    async def start(self) -> None:
        """Start the attempts, with `enableSlaveActingMaster`; a broker that is not isolated goes online at once.

        In controller mode it is isolated until controllers have decided what it is.
        """
        config, is_isolated = self._broker.config, self._membership.group.isolated
        if config.enable_slave_acting_master and not config.skip_pre_online:
            if is_isolated:
                self._enter(OnlineStage.ISOLATED)
            pre_online = PreOnline(
                self._membership.group, init_max_offset=self._broker.store.init_max_commit_log_offset
            )
            self._broker.host.start_soon(self._run, pre_online, name="BrokerPreOnlineService")
        if not is_isolated and not config.is_elected:
            await self._membership.start_without_isolation()

    async def _run(self, pre_online: PreOnline) -> None:
        while self._membership.group.isolated:
            self._broker.host.begin_cause("BrokerPreOnlineService")
            if await self._prepare(pre_online):
                self._enter(OnlineStage.ONLINE)
                return
            await self._broker.host.sleep_ms(_RETRY_MS)

    async def _prepare(self, pre_online: PreOnline) -> bool:
        self._enter(OnlineStage.FETCHING_MEMBER_GROUP)
        try:
            members = await self._membership.fetch_members()
        except RemotingError as error:
            self._broker.host.log.warning("prepare for broker online failed", error=str(error))
            return False
        return await self._drive(pre_online.prepare(members, self._slave.local_versions))

    async def _drive(self, attempt: Attempt) -> bool:
        outcome: Any = None
        while True:
            try:
                step = attempt.send(outcome)
            except StopIteration as end:
                return bool(end.value)
            outcome = await self._carry_out(step)

    async def _carry_out(self, step: Step) -> Any:  # noqa: PLR0911 - one answer for each step
        match step:
            case SendHaInfo(address, info):
                self._enter(OnlineStage.EXCHANGING_HA_INFO, address)
                return await self._membership.send_ha_info(address, info)
            case RetrieveMasterHaInfo(address):
                self._enter(OnlineStage.EXCHANGING_HA_INFO, address)
                return _complete(await self._membership.retrieve_ha_info(address))
            case WaitHaTransfer(host):
                self._enter(OnlineStage.WAITING_FOR_HA_TRANSFER, host)
                return await self._ha.wait_transfer(host)
            case FetchMetadata(address):
                self._enter(OnlineStage.SYNCHRONIZING_METADATA, address)
                self._fetched = await self._slave.fetch_metadata(address)
                return None if self._fetched is None else self._fetched.versions
            case AdoptMetadata():
                assert self._fetched is not None
                return self._slave.adopt(self._fetched, step)
            case StartService(min_id, address):
                self._enter(OnlineStage.STARTING_SERVICE)
                return await self._membership.start_service(min_id, address)
            case Carry(effects):
                return await self._membership.carry_out(effects)

    def _enter(self, stage: OnlineStage, peer: str = "") -> None:
        if self._stage != (stage, peer):
            self._stage = (stage, peer)
            value = stage.value if not peer else f"{stage.value} with {peer}"
            self._broker.host.record(Belief(BeliefKind.ONLINE_STAGE, self._broker.broker_name, value))


def _complete(info: ExchangeHaInfoHeader | None) -> ExchangeHaInfoHeader | None:
    """The answer; one without flushed offset counts as none, because RocketMQ fails on the missing number."""
    return info if info is not None and info.master_flush_offset is not None else None
