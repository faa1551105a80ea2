"""Messages that a consumer sends back: they are delivered again later, or become dead letters."""

from collections.abc import Callable

from nodes.beliefs import DiscardReason, MessageEvent, MessageRecord
from nodes.broker.context import BrokerContext
from nodes.broker.messages.put_message import Flush, PutMessage
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration, provide_dlq_topic, provide_topic
from nodes.broker.shared import Master
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message, SubscriptionGroupConfig, is_writeable
from nodes.protocol.names import retry_topic
from nodes.protocol.properties import DELAY_TIME_LEVEL, WAIT_STORE_MSG_OK
from nodes.protocol.registry import decode_header
from nodes.protocol.retries import retry_delay_level, retry_properties
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_Refusal = tuple[ResponseCode, str]


class ConsumerSendMsgBack(Part):
    """Stores a copy of a message in its group's retry topic, delayed by a level.

    The copy is made from the message in this broker's log at the offset that the consumer names; its reconsume count
    is the stored one, not the consumer's.

    Args:
        peek_master: finds a master in the same container, which stores the copy for a slave that acts.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AbstractSendMessageProcessor#consumerSendMsgBack`.

    Emits:
        STORED for the copy, in the delay topic at first; DISCARDED if the group has no retry queue.
    """

    def __init__(
        self,
        broker: BrokerContext,
        registration: NameserverRegistration,
        messages: PutMessage,
        peek_master: Callable[[], Master | None] | None = None,
    ) -> None:
        self._broker = broker
        self._peek_master = peek_master
        self._registration = registration
        self._messages = messages
        self._chance = broker.host.rng("retryQueue")

    def handlers(self) -> Handlers:
        """Messages that are sent back."""
        return self._registration.answered_when_registered({RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back})

    def _send_back(self, channel: Channel, request: Command) -> Command | None:
        broker = self._broker
        if broker.broker_id == MASTER_ID:
            return self.send_back_from(broker.store, channel, request)
        if not broker.config.enable_slave_acting_master:
            return request.answer(ResponseCode.SYSTEM_BUSY, "this broker is a slave")
        master = None if self._peek_master is None else self._peek_master()
        if master is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"no master available along with {broker.ip}")
        return master.send_back(broker.store, channel, request)

    def send_back_from(self, store: MessageStore, channel: Channel, request: Command) -> Command | None:
        """Put a message of a store into this master's log; the store may be that of a slave in the same container."""
        broker = self._broker
        header = decode_header(headers.ConsumerSendMsgBackRequestHeader, request.ext_fields)
        group = broker.groups.find_subscription_group_config(header.group, now_ms=broker.host.clock.now_ms())
        if group is None:
            remark = f"subscription group not exist, {header.group}"
            return request.answer(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        if not is_writeable(broker.config.broker_permission):
            remark = f"the broker[{broker.ip}] sending message is forbidden"
            return request.answer(ResponseCode.NO_PERMISSION, remark)
        return self._store_and_answer(store, channel, request, header, group)

    def _store_and_answer(
        self,
        store: MessageStore,
        channel: Channel,
        request: Command,
        header: headers.ConsumerSendMsgBackRequestHeader,
        group: SubscriptionGroupConfig,
    ) -> Command | None:
        """The answer, or None if it waits for the disk."""
        if group.retry_queue_nums <= 0:
            # The message is lost, though its consumer was answered that it will be delivered again.
            self._record_discarded(store.look_message(header.offset), header.group)
            return success(request)
        refusal = self._store(store, header, group)
        if refusal is not None:
            return request.answer(*refusal)
        flush = Flush(self._broker)
        if flush.at_once:
            return success(request)
        begin = self._answer_when_flushed
        self._broker.host.start_soon(begin, channel, request, flush, cause.get(), name="consumerSendMsgBack")
        return None

    def _record_discarded(self, message: Message | None, group: str) -> None:
        if message is not None:
            place = message.topic, self._broker.broker_name, message.queue_id, message.queue_offset
            why = DiscardReason.NO_RETRY_QUEUE.value
            record = MessageRecord(MessageEvent.DISCARDED, group, *place, "", message.store_timestamp, why)
            self._broker.host.record(record)

    async def _answer_when_flushed(self, channel: Channel, request: Command, flush: Flush, began: int) -> None:
        cause.set(began)
        late = ResponseCode.SYSTEM_ERROR, PutMessageStatus.FLUSH_DISK_TIMEOUT.value
        answer = success(request) if await flush.wait() else request.answer(*late)
        if not request.is_oneway and not channel.closed:
            channel.send(answer)

    def _store(
        self, store: MessageStore, header: headers.ConsumerSendMsgBackRequestHeader, group: SubscriptionGroupConfig
    ) -> _Refusal | None:
        """Store the copy; returns the reason if that fails."""
        broker, topic = self._broker, retry_topic(header.group)
        queue_id = self._chance.randrange(group.retry_queue_nums)
        config = provide_topic(broker, self._registration, topic, group.retry_queue_nums).config
        if config is None or not is_writeable(config.perm):
            return ResponseCode.NO_PERMISSION, f"the topic[{topic}] sending message is forbidden"
        message = store.look_message(header.offset)
        if message is None:
            return ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}"
        times_max = group.retry_max_times if header.max_reconsume_times is None else header.max_reconsume_times
        level = header.delay_level
        if message.reconsume_times >= times_max or level < 0:
            topic, queue_id, level = provide_dlq_topic(broker, self._registration, header.group), 0, 0
        elif level == 0:
            level = retry_delay_level(message.reconsume_times)
        status = self._messages.put(_copy(message, topic, queue_id, level)).status
        return None if status is PutMessageStatus.PUT_OK else (ResponseCode.SYSTEM_ERROR, status.value)


def _copy(message: Message, topic: str, queue_id: int, level: int) -> Message:
    properties = retry_properties(message)
    properties |= {WAIT_STORE_MSG_OK: "false", DELAY_TIME_LEVEL: str(level)}
    return message._replace(
        topic=topic,
        queue_id=queue_id,
        properties=properties,
        reconsume_times=message.reconsume_times + 1,
    )
