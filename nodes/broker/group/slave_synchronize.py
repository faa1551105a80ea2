"""Copies of metadata within a group: a slave copies its master's, a returning master takes a slave's back."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from nodes.beliefs import MessageEvent
from nodes.broker.context import BrokerContext
from nodes.broker.files import (
    persist_consumer_offsets,
    persist_delay_offsets,
    persist_groups,
    persist_message_request_modes,
    persist_timer_check_point,
    persist_timer_metrics,
    persist_topics,
)
from nodes.broker.offset_records import record_offsets
from nodes.broker.part import Part
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.group.member_group import MemberGroup
from nodes.broker.tables.group.pre_online import AdoptMetadata, MetadataVersions
from nodes.broker.tables.group.slave_sync import master_to_ask, sync_subscription_group_config, sync_topic_config
from nodes.broker.tables.timer.delay_offsets import TimerCheckPoint
from nodes.broker.tables.timer.timer_tables import TimerTables
from nodes.host import Channel
from nodes.protocol.bodies import (
    ConsumerOffsetSerializeWrapper,
    DelayOffsetSerializeWrapper,
    MessageRequestModeSerializeWrapper,
    SubscriptionGroupTable,
    TimerMetricsSerializeWrapper,
    TopicConfigSerializeWrapper,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID
from nodes.protocol.names import broker_vip_channel
from nodes.protocol.registry import ProtocolError, decode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.server import Handlers
from nodes.rpc.typed import invoke, succeeded, success
from nodes.threads import ScheduledThread
from nodes.values import frozen

T = TypeVar("T")

_INITIAL_DELAY_MS = 10_000
_PERIOD_MS = 3_000
_FULL_SYNC_INTERVAL_MS = 60_000
ELECTED_INITIAL_DELAY_MS, ELECTED_FULL_SYNC_INTERVAL_MS = 3_000, 10_000
"""Of a slave whose master controllers elect: it copies all tables every 12 s, at every fourth look."""
_TIMEOUT_MS = 3_000
_FAILURES = (RemotingError, BrokerError, ProtocolError, ValueError)
"""No answer, a refusal, a malformed answer, content that the tables refuse."""


@frozen
class FetchedMetadata:
    """The metadata of a member that a returning master may adopt."""

    address: str
    """Of the member."""
    consumer_offsets: ConsumerOffsetSerializeWrapper
    delay_offsets: DelayOffsetSerializeWrapper
    timer_check_point: TimerCheckPoint

    @property
    def versions(self) -> MetadataVersions:
        """The versions, to be compared with the local ones."""
        return MetadataVersions(
            self.consumer_offsets.data_version, self.delay_offsets.data_version, self.timer_check_point.data_version
        )


class SlaveSynchronize(Part):
    """Copies tables of another broker of the group.

    Error handling: each table is copied independently; a failure is logged, and the next period tries again.

    Args:
        group: names the master to copy from; read before every call.
        thread: the thread of registrations: a silent master delays them.

    Mirrors:
        `org.apache.rocketmq.broker.slave.SlaveSynchronize`, `BrokerController#initializeBrokerScheduledTasks`,
        `org.apache.rocketmq.broker.controller.ReplicasManager#handleSlaveSynchronize`,
        `BrokerPreOnlineService#syncMetadataReverse`.

    Emits:
        DATA_VERSION whenever a copy changes a version; COPIED for every offset that a copy changes.
    """

    def __init__(
        self,
        broker: BrokerContext,
        clients: ClientTables,
        timer: TimerTables,
        client: RpcClient,
        group: MemberGroup,
        thread: ScheduledThread,
    ) -> None:
        self._broker = broker
        self._clients = clients
        self._timer = timer
        self._client = client
        self._group = group
        self._thread = thread
        self._last_attempt_ms = broker.host.clock.now_ms()
        self._full_sync_interval_ms = _FULL_SYNC_INTERVAL_MS
        self.on_check_point: Callable[[], None] = lambda: None
        """Called when a check point of the timer was copied."""

    async def start(self) -> None:
        """Start the copies of a slave; in controller mode its role does."""
        if self._broker.broker_id != MASTER_ID and not self._broker.config.is_elected:
            self.schedule()

    def schedule(
        self, *, initial_delay_ms: int = _INITIAL_DELAY_MS, full_sync_interval_ms: int = _FULL_SYNC_INTERVAL_MS
    ) -> None:
        """Start the copies, with a check every 3 s; an isolated slave copies, too.

        Args:
            initial_delay_ms: before the first check.
            full_sync_interval_ms: all tables are copied at the first check that is later than this after the last time.
        """
        self._full_sync_interval_ms = full_sync_interval_ms
        self._thread.at_fixed_rate("slaveSynchronize", self._synchronize, initial_delay_ms, _PERIOD_MS)

    async def sync_all(self) -> None:
        """Copy all tables, one after the other; does nothing if no master is known."""
        await self._attempt("topic config", self._sync_topic_config)
        await self._attempt("consumer offset", self._sync_consumer_offset)
        await self._attempt("delay offset", self._sync_delay_offset)
        await self._attempt("subscription group config", self._sync_subscription_group_config)
        await self._attempt("message request mode", self._sync_message_request_mode)
        await self._attempt("timer metrics", self._sync_timer_metrics)

    # Metadata that a master takes back

    async def fetch_metadata(self, address: str) -> FetchedMetadata | None:
        """Fetch the metadata of a member; None if one of the calls fails, also because the member has no timer."""
        try:
            delays = await self._ask(address, RequestCode.GET_ALL_DELAY_OFFSET, DelayOffsetSerializeWrapper)
            offsets = await self._ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET, ConsumerOffsetSerializeWrapper)
            check_point = await self._ask_timer_check_point(address)
        except _FAILURES as error:
            self._broker.host.log.warning("get metadata reversely failed", broker=address, error=str(error))
            return None
        return FetchedMetadata(address, offsets, delays, check_point)

    def local_versions(self) -> MetadataVersions:
        """The versions of this broker's own metadata."""
        delays, timer = self._timer.delay_offsets.data_version, self._timer.version
        return MetadataVersions(self._clients.offsets.data_version, delays, timer)

    def adopt(self, fetched: FetchedMetadata, adopt: AdoptMetadata) -> None:
        """Replace this broker's metadata by what was fetched, and persist it."""
        if adopt.consumer_offsets:
            self._adopt_consumer_offsets(fetched.consumer_offsets, fetched.address)
        if adopt.delay_offsets:
            self._adopt_delay_offsets(fetched.delay_offsets)
        if adopt.timer_check_point:
            self._follow_timer(fetched.timer_check_point)
        self._broker.versions.believe()

    # Periodic copies of a slave

    async def _synchronize(self) -> None:
        clock = self._broker.host.clock
        if clock.now_ms() - self._last_attempt_ms > self._full_sync_interval_ms:
            await self.sync_all()
            self._last_attempt_ms = clock.now_ms()
        await self._attempt("timer check point", self._sync_timer_check_point)

    async def _attempt(self, subject: str, copy: Callable[[], Awaitable[None]]) -> None:
        try:
            await copy()
        except _FAILURES as error:
            master = self._group.slave_sync_master_addr
            self._broker.host.log.warning("sync failed", what=subject, master=master, error=str(error))
        finally:
            self._broker.versions.believe()

    def _master(self) -> str | None:
        return master_to_ask(self._group.slave_sync_master_addr, self._broker.address)

    async def _sync_topic_config(self) -> None:
        master = self._master()
        if master is not None:
            address = broker_vip_channel(master, is_change=True)
            found = await self._ask(address, RequestCode.GET_ALL_TOPIC_CONFIG, TopicConfigSerializeWrapper)
            if sync_topic_config(self._broker.topics, found, now_ms=self._broker.host.clock.now_ms()):
                persist_topics(self._broker)

    async def _sync_consumer_offset(self) -> None:
        master = self._master()
        if master is not None:
            code = RequestCode.GET_ALL_CONSUMER_OFFSET
            self._adopt_consumer_offsets(await self._ask(master, code, ConsumerOffsetSerializeWrapper), master)

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
            self._clients.request_modes.adopt(await self._ask(master, code, MessageRequestModeSerializeWrapper))
            persist_message_request_modes(self._broker, self._clients.request_modes)

    async def _sync_timer_metrics(self) -> None:
        """Copy the counts of timed messages; RocketMQ does so even if there was none."""
        master, wheel = self._master(), self._timer.wheel
        if master is not None and wheel is not None and wheel.has_messages:
            found = await self._ask(master, RequestCode.GET_TIMER_METRICS, TimerMetricsSerializeWrapper)
            if wheel.metrics.adopt(found):
                persist_timer_metrics(self._broker, wheel)

    async def _sync_timer_check_point(self) -> None:
        master, wheel = self._group.slave_sync_master_addr, self._timer.wheel
        if master is not None and wheel is not None and not wheel.progress.should_running_dequeue:
            self._follow_timer(await self._ask_timer_check_point(master))

    # Calls, and the replacement of tables

    async def _ask(self, address: str, code: RequestCode, shape: type[T]) -> T:
        answer = succeeded(await invoke(self._client, address, code, timeout_ms=_TIMEOUT_MS))
        return decode_body(shape, answer.body)

    async def _ask_timer_check_point(self, address: str) -> TimerCheckPoint:
        return TimerCheckPoint.decode(
            await self._ask(broker_vip_channel(address, is_change=True), RequestCode.GET_TIMER_CHECK_POINT, bytes)
        )

    def _adopt_consumer_offsets(self, found: ConsumerOffsetSerializeWrapper, source: str) -> None:
        changed = self._clients.offsets.put_all(found.offset_table, found.data_version)
        record_offsets(self._broker, MessageEvent.COPIED, changed, source)
        persist_consumer_offsets(self._broker, self._clients.offsets)

    def _adopt_delay_offsets(self, found: DelayOffsetSerializeWrapper) -> None:
        persist_delay_offsets(self._broker, found)
        self._timer.delay_offsets.put_all(found)

    def _follow_timer(self, found: TimerCheckPoint) -> None:
        wheel = self._timer.wheel
        if wheel is not None:
            wheel.progress.follow(found)
            persist_timer_check_point(self._broker, wheel)
            self.on_check_point()


class MetadataHandlers(Part):
    """Answers requests for whole tables, in any role.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor` for 21, 43, 45, 60, 61, 201 and 402.
    """

    def __init__(self, broker: BrokerContext, clients: ClientTables, timer: TimerTables) -> None:
        self._broker = broker
        self._clients = clients
        self._timer = timer

    def handlers(self) -> Handlers:
        """Requests for topics, groups, offsets, delay offsets, request modes, and progress and counts of the timer."""
        return {
            RequestCode.GET_ALL_TOPIC_CONFIG: self._get_all_topic_config,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self._get_all_consumer_offset,
            RequestCode.GET_ALL_DELAY_OFFSET: self._get_all_delay_offset,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self._get_all_subscription_group,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: self._get_all_message_request_mode,
            RequestCode.GET_TIMER_CHECK_POINT: self._get_timer_check_point,
            RequestCode.GET_TIMER_METRICS: self._get_timer_metrics,
        }

    def _get_all_topic_config(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._broker.topics.wrapper())

    def _get_all_consumer_offset(self, _channel: Channel, request: Command) -> Command:
        offsets = self._clients.offsets
        body = ConsumerOffsetSerializeWrapper(offsets.offsets, offsets.data_version, offsets.group_topic_map())
        return success(request, None, body)

    def _get_all_delay_offset(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._timer.delay_offsets.wrapper())

    def _get_all_subscription_group(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._broker.groups.wrapper())

    def _get_all_message_request_mode(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._clients.request_modes.wrapper())

    def _get_timer_check_point(self, _channel: Channel, request: Command) -> Command:
        wheel = self._timer.wheel
        if wheel is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "this broker has no timer, so no check point of one")
        return success(request, None, wheel.catch_up_check_point(self._broker.host.clock.now_ms()).encode())

    def _get_timer_metrics(self, _channel: Channel, request: Command) -> Command:
        wheel = self._timer.wheel
        if wheel is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "this broker has no timer, so no counts of one")
        return success(request, None, wheel.metrics.wrapper())
