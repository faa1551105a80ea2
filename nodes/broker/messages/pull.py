"""Pulls: permission checks, reads, answers."""

from collections.abc import Callable

from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.messages.pull_request_hold import HeldPull, PullRequestHoldService
from nodes.broker.messages.single_active import SingleActive
from nodes.broker.part import Part, RequestRefusedError
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.consumer_offsets import TOPIC_GROUP_SEPARATOR
from nodes.broker.tables.metadata.attributes import is_compaction
from nodes.broker.tables.store.broker_stats import StatsName
from nodes.broker.tables.store.get_message_result import (
    GetMessageResult,
    compacted_result,
    has_keys,
    pull_response_code,
)
from nodes.broker.tables.store.message_filter import carried_subscription, filter_refusal, matcher
from nodes.broker.tables.store.message_store import PULL_BYTES_MAX
from nodes.filter.filter_api import filtered_record
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message, MessageModel, PermName, SubscriptionData
from nodes.protocol.registry import decode_header, encode_header, encode_shared_body
from nodes.protocol.sys_flags import PullSysFlag
from nodes.rpc.server import Handlers, Wake

_READ = int(PermName.READ)


def _nothing(_message: Message) -> bool:
    """No message matches the pull of a consumer that waits to be the active one."""
    return False


class PullMessage(Part):
    """Answers pulls; never checks whether the caller owns the queue or holds its lock.

    Only of a group with a single active consumer the others get nothing, and wait.

    Args:
        wake: gives a held pull to a thread, as `RequestExecutors.wake`; None: it is answered when it is woken.
        tracked_min: the lowest id of the group, of a broker in a container; outside of one each takes its own for it.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PullMessageProcessor`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        tables: ClientTables,
        offsets: OffsetManage,
        tracked_min: Callable[[], int] | None = None,
        wake: Wake | None = None,
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._offsets = offsets
        self._tracked_min = tracked_min
        self._wake = wake
        self.hold = PullRequestHoldService(broker, self._answer_held if wake is None else self._answer_in_thread)
        """Pulls that wait for messages."""
        self.single_active = SingleActive(broker, tables, self.hold.on_activated)
        """Who gets the messages of groups with a single active consumer."""

    def handlers(self) -> Handlers:
        """Pulls of push and of lite pull consumers."""
        return {
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
            **self.single_active.handlers(),
        }

    async def start(self) -> None:
        """Start to look after the pulls that wait."""
        self.hold.start()

    def _pull(self, channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.PullMessageRequestHeader, request.ext_fields)
        if header.fencing_token is not None:
            refused = self._offsets.fencing.refusal(request, header)
            if refused is not None:
                return refused
        answer = self._answer(channel, request, header, may_hold=bool(header.sys_flag & PullSysFlag.SUSPEND))
        if header.sys_flag & PullSysFlag.COMMIT_OFFSET:
            self._offsets.commit_of(channel, header.consumer_group, header.topic, header.queue_id, header.commit_offset)
        return answer

    def _answer_in_thread(self, held: HeldPull) -> None:
        """Answer a pull that is woken when a thread has time; if no more pulls may wait, it is never answered.

        Mirrors:
            `PullMessageProcessor#executeRequestWhenWakeup`, whose `RejectedExecutionException` is only logged.
        """

        def answer(_channel: Channel, _request: Command, done: Callable[[], None]) -> None:
            self._answer_held(held)
            done()

        assert self._wake is not None
        if not self._wake(held.channel, held.request, answer):
            self._broker.host.log.error("PullRequestHoldService failed when notifyMessageArriving")

    def _answer_held(self, held: HeldPull) -> None:
        """Read again and answer without holding the pull again; a closed channel drops the answer."""
        if held.channel.closed:
            return
        if self.single_active.has_left(held.channel, held.header):
            # Read as a pull, it would register its consumer again.
            held.channel.send(self._sent_on(held.request, held.header))
            return
        answer = self._offsets.fencing.refusal(held.request, held.header) or self._answer(
            held.channel, held.request, held.header, may_hold=False
        )
        assert answer is not None
        held.channel.send(answer)

    def _answer(
        self, channel: Channel, request: Command, header: headers.PullMessageRequestHeader, *, may_hold: bool
    ) -> Command | None:
        """The answer; None: there is no message yet, and the pull is held."""
        broker = self._broker
        topic, queue_id, group = header.topic, header.queue_id, header.consumer_group
        try:
            subscription = self._permitted(header)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark)
        reset = self._tables.offsets.query_then_erase_reset_offset(group, topic, queue_id)
        if reset is not None:
            low, high = broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id)
            moved = headers.PullMessageResponseHeader(MASTER_ID, reset, low, high)
            return request.answer(int(ResponseCode.PULL_OFFSET_MOVED), None, encode_header(moved))
        if group in self._tables.single_active.groups and not self._begins_here(channel, header):
            if may_hold and not self.single_active.is_active(channel, header):
                self.hold.suspend(channel, request, header, _nothing)
                return None
            return self._sent_on(request, header)
        matches = matcher(subscription)
        # The log of a slave may lag behind, so there a bad offset is left uncorrected.
        is_lenient = broker.broker_id != MASTER_ID and not broker.config.offset_check_in_slave
        result = self._read(header, matches, is_lenient=is_lenient)
        self._tables.offsets.commit_pull_offset(group, topic, queue_id, result.next_begin_offset)
        for message in result.filtered:
            broker.host.record(filtered_record(message, group, broker.broker_name, channel.remote_address))
        self._count(topic, group, len(result.messages))
        code = pull_response_code(result.status, header.queue_offset)
        tracked_min = self._tracked_min  # checked here, because most brokers are in no container
        if tracked_min is not None and code is not ResponseCode.SUCCESS and self._sends_to_master(tracked_min, result):
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
        if code is ResponseCode.PULL_NOT_FOUND and may_hold:
            self.hold.suspend(channel, request, header, matches)
            return None
        if code is ResponseCode.PULL_OFFSET_MOVED and is_lenient:
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
        body = None
        if result.messages:
            is_short = result.found_bytes <= PULL_BYTES_MAX
            body = encode_shared_body(PullMessageResponseBody(result.messages), is_short=is_short)
        may_suggest = broker.config.slave_read_enable and tracked_min is None
        read = headers.PullMessageResponseHeader(
            self._suggested(group, result.fall_behind_bytes) if may_suggest else MASTER_ID,
            result.next_begin_offset,
            result.min_offset,
            result.max_offset,
        )
        return request.answer(int(code), None, encode_header(read), body)

    def _read(
        self,
        header: headers.PullMessageRequestHeader,
        matches: Callable[[Message], bool] | None,
        *,
        is_lenient: bool,
    ) -> GetMessageResult:
        broker, topic = self._broker, self._broker.topics.select_topic_config(header.topic)
        is_compacted = topic is not None and broker.config.enable_compaction and is_compaction(topic.attributes)
        result = broker.store.get_message(
            header.topic,
            header.queue_id,
            header.queue_offset,
            header.max_msg_nums,
            transfer_count_max=broker.config.max_transfer_count_on_message_in_memory,
            matches=has_keys if is_compacted else matches,
            correct_offset=not is_lenient,
        )
        return compacted_result(result, is_lenient=is_lenient) if is_compacted else result

    def _count(self, topic: str, group: str, messages: int) -> None:
        stats, now_ms = self._broker.stats, self._broker.host.clock.now_ms()
        if messages:
            stats.inc(StatsName.GROUP_GET_NUMS, f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", messages, now_ms)
            stats.store.found(messages, now_ms)
        else:
            stats.store.missed(now_ms)

    def _begins_here(self, channel: Channel, header: headers.PullMessageRequestHeader) -> bool:
        """Whether a pull is that of the active consumer, which begins at the right offset."""
        return self.single_active.is_active(channel, header) and self.single_active.restart_offset(header) is None

    def _sent_on(self, request: Command, header: headers.PullMessageRequestHeader) -> Command:
        """An answer without messages: go on at the offset of the group, if that is ahead."""
        store, topic, queue_id = self._broker.store, header.topic, header.queue_id
        begin = max(header.queue_offset, self.single_active.committed(header))
        low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        moved = headers.PullMessageResponseHeader(MASTER_ID, begin, low, high)
        return request.answer(int(ResponseCode.PULL_RETRY_IMMEDIATELY), None, encode_header(moved))

    def _sends_to_master(self, tracked_min: Callable[[], int], result: GetMessageResult) -> bool:
        """Whether a slave in a container sends a consumer back to the master, which lives."""
        if self._broker.broker_id == MASTER_ID or self._is_behind(result.fall_behind_bytes):
            return False
        return tracked_min() == MASTER_ID

    def _is_behind(self, fall_behind_bytes: int) -> bool:
        """Whether a consumer reads messages that are no longer in memory."""
        config = self._broker.config
        return fall_behind_bytes > config.total_physical_memory_size * config.access_message_in_memory_max_ratio // 100

    def _suggested(self, group: str, fall_behind_bytes: int) -> int:
        """The broker id for the next pull; the group has another one for messages that are no longer in memory here."""
        settings = self._broker.groups.find_subscription_group_config(group, now_ms=self._broker.host.clock.now_ms())
        if settings is None:
            return MASTER_ID
        return settings.which_broker_when_consume_slowly if self._is_behind(fall_behind_bytes) else settings.broker_id

    def _permitted(self, header: headers.PullMessageRequestHeader) -> SubscriptionData:
        """The subscription of a pull: its own, or that of the group's heartbeats.

        Raises:
            RequestRefusedError: a check fails; they are made in RocketMQ's order.
        """
        broker, group = self._broker, header.consumer_group
        if broker.broker_id != MASTER_ID and not broker.config.slave_read_enable:
            raise RequestRefusedError(ResponseCode.SYSTEM_BUSY, "this broker is a slave that does not serve reads")
        if not broker.config.broker_permission & _READ:
            remark = f"the broker[{broker.ip}] pulling message is forbidden"
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, remark)
        config = broker.groups.find_subscription_group_config(group, now_ms=broker.host.clock.now_ms())
        if config is None:
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group} does not exist here")
        if not config.consume_enable:
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, f"group {group} may not consume")
        topic = broker.topics.select_topic_config(header.topic)
        if topic is None:
            raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist here")
        if not topic.perm & _READ:
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, f"topic {header.topic} may not be read")
        if not 0 <= header.queue_id < topic.read_queue_nums:
            remark = f"topic {header.topic} has {topic.read_queue_nums} queues, not {header.queue_id}"
            raise RequestRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        if header.sys_flag & PullSysFlag.SUBSCRIPTION:
            return self._carried(header)
        return self._known(header, broadcast_allowed=config.consume_broadcast_enable)

    def _carried(self, header: headers.PullMessageRequestHeader) -> SubscriptionData:
        try:
            carried = carried_subscription(header)
        except ValueError:
            raise RequestRefusedError(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
            ) from None
        refusal = filter_refusal(carried, enable_property_filter=self._broker.config.enable_property_filter)
        if refusal is not None:
            raise RequestRefusedError(*refusal)
        return carried

    def _known(self, header: headers.PullMessageRequestHeader, *, broadcast_allowed: bool) -> SubscriptionData:
        broker, group, topic = self._broker, header.consumer_group, header.topic
        info = self._tables.consumers.group(group)
        if info is None:
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_NOT_EXIST, "the group has no member here")
        if not broadcast_allowed and info.message_model is MessageModel.BROADCASTING:
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, f"group {group} may not broadcast")
        if broker.groups.is_read_forbidden(group, topic):
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, f"group {group} may not read topic {topic}")
        known = info.subscriptions.get(topic)
        if known is None:
            remark = "the group has not subscribed to the topic here"
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_NOT_EXIST, remark)
        if known.sub_version < header.sub_version:
            remark = "the group's subscription here is older than the caller's"
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_NOT_LATEST, remark)
        refusal = filter_refusal(known, enable_property_filter=broker.config.enable_property_filter, is_known=True)
        if refusal is not None:
            raise RequestRefusedError(*refusal)
        return known
