"""The metadata of a slave, copied from its master; and those that a returning master takes back from a slave."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from nodes.broker.context import BrokerContext
from nodes.broker.delay_offsets import TimerCheckPoint
from nodes.broker.member_group import MemberGroup, vip_address
from nodes.broker.metadata_files import (
    persist_consumer_offsets,
    persist_delay_offsets,
    persist_groups,
    persist_message_request_modes,
    persist_timer_check_point,
    persist_topics,
)
from nodes.broker.pre_online import AdoptMetadata, MetadataVersions
from nodes.broker.slave_sync import master_to_ask, sync_subscription_group_config, sync_topic_config
from nodes.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    DelayOffsetSerializeWrapper,
    MessageRequestModeSerializeWrapper,
    SubscriptionGroupTable,
    TopicConfigSerializeWrapper,
)
from nodes.protocol.codes import RequestCode
from nodes.protocol.registry import ProtocolError, decode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError, invoke, succeeded
from nodes.threads import ScheduledThread

T = TypeVar("T")

_INITIAL_DELAY_MS = 10_000
_PERIOD_MS = 3_000
_FULL_SYNC_INTERVAL_MS = 60_000
_TIMEOUT_MS = 3_000
_FAILURES = (RemotingError, BrokerError, ProtocolError, ValueError)
"""No answer, a refusal, an answer that is none, and content that the tables do not take."""


@attrs.frozen
class FetchedMetadata:
    """What a member of the group has of what its master may take back."""

    consumer_offsets: ConsumerOffsetSerializeWrapper
    delay_offsets: DelayOffsetSerializeWrapper
    timer_check_point: TimerCheckPoint

    @property
    def versions(self) -> MetadataVersions:
        """The versions to compare with one's own."""
        return MetadataVersions(
            self.consumer_offsets.data_version, self.delay_offsets.data_version, self.timer_check_point.data_version
        )


class SlaveSynchronize:
    """Copies the tables of another broker of the group.

    Error handling: each copy is tried for itself; one that fails is logged and tried again with the next turn.

    Args:
        group: says which broker is the master to copy from, anew before every call.

    Mirrors:
        `org.apache.rocketmq.broker.slave.SlaveSynchronize`, `BrokerController#initializeBrokerScheduledTasks`,
        `BrokerPreOnlineService#syncMetadataReverse`.

    Emits:
        DATA_VERSION whenever a copy changed one.
    """

    def __init__(self, broker: BrokerContext, client: RpcClient, group: MemberGroup) -> None:
        self._broker = broker
        self._client = client
        self._group = group
        self._last_attempt_ms = broker.host.clock.now_ms()

    def start(self, thread: ScheduledThread) -> None:
        """Begin to look every 3 s whether to copy, as only slaves do; isolation does not keep one from it.

        Args:
            thread: the one on which the broker registers: a silent master delays the registrations.
        """
        thread.at_fixed_rate("slaveSynchronize", self._synchronize, _INITIAL_DELAY_MS, _PERIOD_MS)

    async def sync_all(self) -> None:
        """Copy all tables, one after the other; without a master to ask, none."""
        await self._attempt("topic config", self._sync_topic_config)
        await self._attempt("consumer offset", self._sync_consumer_offset)
        await self._attempt("delay offset", self._sync_delay_offset)
        await self._attempt("subscription group config", self._sync_subscription_group_config)
        await self._attempt("message request mode", self._sync_message_request_mode)

    # What a master takes back

    async def fetch_metadata(self, address: str) -> FetchedMetadata | None:
        """What a member has; None where one of the calls failed, a refusal because it has no timer among them."""
        try:
            delays = await self._ask(address, RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetSerializeWrapper)
            offsets = await self._ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetSerializeWrapper)
            check_point = await self._ask_timer_check_point(address)
        except _FAILURES as error:
            self._broker.host.log.warning("get metadata reversely failed", broker=address, error=str(error))
            return None
        return FetchedMetadata(offsets, delays, check_point)

    def local_versions(self) -> MetadataVersions:
        """The versions of what this broker has."""
        broker = self._broker
        return MetadataVersions(broker.offsets.data_version, broker.delay_offsets.data_version, broker.timer_version)

    def adopt(self, fetched: FetchedMetadata, adopt: AdoptMetadata) -> None:
        """Put what was fetched over what this broker has, and write it down."""
        if adopt.consumer_offsets:
            self._adopt_consumer_offsets(fetched.consumer_offsets)
        if adopt.delay_offsets:
            self._adopt_delay_offsets(fetched.delay_offsets)
        if adopt.timer_check_point:
            self._follow_timer(fetched.timer_check_point)
        self._broker.versions.believe()

    # The turns of a slave

    async def _synchronize(self) -> None:
        clock = self._broker.host.clock
        if clock.now_ms() - self._last_attempt_ms > _FULL_SYNC_INTERVAL_MS:
            await self.sync_all()
            self._last_attempt_ms = clock.now_ms()
        await self._attempt("timer check point", self._sync_timer_check_point)

    async def _attempt(self, what: str, copy: Callable[[], Awaitable[None]]) -> None:
        try:
            await copy()
        except _FAILURES as error:
            master = self._group.slave_sync_master_addr
            self._broker.host.log.warning("sync failed", what=what, master=master, error=str(error))
        finally:
            self._broker.versions.believe()

    def _master(self) -> str | None:
        return master_to_ask(self._group.slave_sync_master_addr, self._broker.address)

    async def _sync_topic_config(self) -> None:
        master = self._master()
        if master is not None:
            address = vip_address(master)
            found = await self._ask(address, RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigSerializeWrapper)
            if sync_topic_config(self._broker.topics, found, now_ms=self._broker.host.clock.now_ms()):
                persist_topics(self._broker)

    async def _sync_consumer_offset(self) -> None:
        master = self._master()
        if master is not None:
            code = RequestCode.GET_ALL_CONSUMER_OFFSET
            self._adopt_consumer_offsets(await self._ask(master, code, ConsumerOffsetSerializeWrapper))

    async def _sync_delay_offset(self) -> None:
        master = self._master()
        if master is not None:
            code = RequestCode.GET_ALL_DELAY_OFFSET
            self._adopt_delay_offsets(await self._ask(master, code, DelayOffsetSerializeWrapper))

    async def _sync_subscription_group_config(self) -> None:
        master = self._master()
        if master is not None:
            code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            found = await self._ask(master, code, SubscriptionGroupTable)
            if sync_subscription_group_config(self._broker.groups, found, now_ms=self._broker.host.clock.now_ms()):
                persist_groups(self._broker)

    async def _sync_message_request_mode(self) -> None:
        master = self._master()
        if master is not None:
            code = RequestCode.GET_ALL_MESSAGE_REQUEST_MODE
            self._broker.request_modes.adopt(await self._ask(master, code, MessageRequestModeSerializeWrapper))
            persist_message_request_modes(self._broker)

    async def _sync_timer_check_point(self) -> None:
        master, timer = self._group.slave_sync_master_addr, self._broker.timer
        if master is not None and timer is not None and not timer.should_running_dequeue:
            self._follow_timer(await self._ask_timer_check_point(master))

    # Calls, and what their answers replace

    async def _ask(self, address: str, code: RequestCode, shape: type[T]) -> T:
        answer = succeeded(await invoke(self._client, address, code, timeout_ms=_TIMEOUT_MS))
        return decode_body(shape, answer.body)

    async def _ask_timer_check_point(self, address: str) -> TimerCheckPoint:
        return TimerCheckPoint.decode(await self._ask(vip_address(address), RequestCode.GET_TIMER_CHECK_POINT, bytes))

    def _adopt_consumer_offsets(self, found: ConsumerOffsetSerializeWrapper) -> None:
        self._broker.offsets.put_all(found.offset_table, found.data_version)
        persist_consumer_offsets(self._broker)

    def _adopt_delay_offsets(self, found: DelayOffsetSerializeWrapper) -> None:
        persist_delay_offsets(self._broker, found)
        self._broker.delay_offsets.put_all(found)

    def _follow_timer(self, found: TimerCheckPoint) -> None:
        if self._broker.timer is not None:
            self._broker.timer.follow(found)
            persist_timer_check_point(self._broker)
