"""Sends: checks of the topic, the choice of the queue, and the answer after flush and replication."""

from functools import partial

import trio

from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_topics
from nodes.broker.ha.service import HaService
from nodes.broker.messages.put_message import Flush, PutMessage
from nodes.broker.part import Part, RequestRefusedError
from nodes.broker.registration.registration import NameserverRegistration, provide_dlq_topic, provide_topic
from nodes.broker.tables.clients.queue_locks import RebalanceLockManager
from nodes.broker.tables.ha.ha_in_sync import NOT_ENOUGH_REMARK
from nodes.broker.tables.metadata.attributes import is_compaction
from nodes.broker.tables.store.accepted_message import (
    accepted_batch,
    accepted_message,
    accepted_properties,
    batch_refusal,
    header_properties,
    is_too_large,
    region_fields,
    too_large_remark,
)
from nodes.broker.tables.store.put_message_result import put_refusal
from nodes.broker.tables.store.transaction_messages import half_message, is_prepared
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.batch_body import LongBatchError
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import MASTER_ID, RETRY_TOPIC_PREFIX, Message, is_writeable
from nodes.protocol.names import NOT_ALLOWED_SEND_TOPICS, parse_group, validate_topic
from nodes.protocol.properties import CLUSTER, DELAY_TIME_LEVEL, KEYS, TIMER_OUT_MS, UNIQ_KEY
from nodes.protocol.recall_handle import recall_handle_of
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.rpc.server import Handlers, InTask


class SendMessage(Part):
    """Stores messages of producers, and messages that consumers send to retry topics.

    Mirrors:
        `org.apache.rocketmq.broker.processor.SendMessageProcessor`, `AbstractSendMessageProcessor#msgCheck`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        locks: RebalanceLockManager,
        registration: NameserverRegistration,
        ha: HaService,
        messages: PutMessage,
    ) -> None:
        self._broker = broker
        self._locks = locks
        self._registration = registration
        self._ha = ha
        self._messages = messages
        self._chance = broker.host.rng("sendQueue")

    def handlers(self) -> Handlers:
        """Sends of both versions, and batches."""
        return {
            RequestCode.SEND_MESSAGE: self._send,
            RequestCode.SEND_MESSAGE_V2: self._send_v2,
            RequestCode.SEND_BATCH_MESSAGE: self._send_v2,
        }

    def _send(self, channel: Channel, request: Command) -> Command | InTask | None:
        return self._store(channel, request, decode_header(headers.SendMessageRequestHeader, request.ext_fields))

    def _send_v2(self, channel: Channel, request: Command) -> Command | InTask | None:
        return self._store(channel, request, decode_header(headers.SendMessageRequestHeaderV2, request.ext_fields))

    def _store(
        self, channel: Channel, request: Command, header: headers.SendMessageRequestHeader
    ) -> Command | InTask | None:
        broker = self._broker
        if broker.broker_id != MASTER_ID and not broker.config.enable_slave_acting_master:
            return request.answer(ResponseCode.SYSTEM_BUSY, "this broker is a slave")
        try:
            registered = self.provide_topic(header)
        except RequestRefusedError as refusal:
            return self._answer(request, refusal.code, refusal.remark)
        if registered is None:
            return self._store_now(channel, request, header)
        return InTask(partial(self._store_when_registered, header, registered))

    async def _store_when_registered(
        self, header: headers.SendMessageRequestHeader, registered: trio.Event, channel: Channel, request: Command
    ) -> Command | None:
        """Store the first message of a new topic when the nameservers know it, or the time for that is up."""
        await registered.wait()
        return self._store_now(channel, request, header)

    def _store_now(
        self, channel: Channel, request: Command, header: headers.SendMessageRequestHeader
    ) -> Command | None:
        broker = self._broker
        try:
            queue_id = self.queue_id(header)
            messages = self._accepted(channel, header, queue_id, request.body or b"")
        except RequestRefusedError as refusal:
            return self._answer(request, refusal.code, refusal.remark)
        ack_nums = self._ha.ack_nums_to_wait_for(messages[0].properties)
        if ack_nums is None:
            return self._answer(request, ResponseCode.SYSTEM_ERROR, NOT_ENOUGH_REMARK)
        results = self._messages.put_all(messages, in_batch=bool(header.batch))
        stored = [result.stored for result in results if result.stored is not None]
        if not stored:
            return self._answer(request, *put_refusal(results[0].status, broker.config))
        unique = messages[0].properties.get(UNIQ_KEY)
        waits = TIMER_OUT_MS in stored[0].properties and not header.batch
        handle = recall_handle_of(stored[0], broker.broker_name) if waits else None
        msg_ids = ",".join([offset_message_id(item.store_host, item.commit_log_offset) for item in stored])
        answer = headers.SendMessageResponseHeader(msg_ids, queue_id, stored[0].queue_offset, unique, handle)
        if ack_nums <= 1 and not broker.flush.wait_ms:
            return self._answer(request, ResponseCode.SUCCESS, None, answer)
        flush = Flush(broker)
        broker.host.start_soon(
            self._answer_when_safe, channel, request, answer, flush, ack_nums, cause.get(), name="handleDiskFlushAndHA"
        )
        return None

    async def _answer_when_safe(
        self,
        channel: Channel,
        request: Command,
        header: headers.SendMessageResponseHeader,
        flush: Flush,
        ack_nums: int,
        began: int,
    ) -> None:
        """Answer when the message is flushed and replicated, or the time is up; it is stored in either case."""
        cause.set(began)
        end = self._broker.store.max_commit_log_offset
        acked = ack_nums <= 1 or await self._ha.wait_for_acks(end, ack_nums)
        code: ResponseCode = ResponseCode.SUCCESS if await flush.wait() else ResponseCode.FLUSH_DISK_TIMEOUT
        remark: str | None = None
        if not acked:
            code, remark = self._ha.late_answer
        if not request.is_oneway and not channel.closed:
            channel.send(self._answer(request, code, remark, header))

    def _answer(
        self,
        request: Command,
        code: int,
        remark: str | None,
        header: headers.SendMessageResponseHeader | None = None,
    ) -> Command:
        """An answer with the broker's region, unless the message has no unique id, as those of emulated producers."""
        if header is not None and header.transaction_id is None:
            return request.answer(code, remark, encode_header(header))
        fields = region_fields(self._broker.config)
        return request.answer(code, remark, fields if header is None else {**encode_header(header), **fields})

    def _stored_fields(self) -> dict[str, str]:
        """The properties that the broker gives each message."""
        return {**region_fields(self._broker.config), CLUSTER: self._broker.cluster_name}

    def _accepted(
        self, channel: Channel, header: headers.SendMessageRequestHeader, queue_id: int, body: bytes
    ) -> tuple[Message, ...]:
        """The messages to store: one, those of a batch, or a half message."""
        born_host = channel.remote_address
        if header.batch:
            messages = self._batch(header, queue_id, body, born_host)
        else:
            messages = (self._single(header, queue_id, body, born_host),)
        size_max = self._broker.config.max_message_size
        if header.batch and MessageSysFlag.transaction_value(header.sys_flag):
            raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, too_large_remark(size_max))
        for message in messages:
            if is_too_large(message, size_max):
                raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, too_large_remark(size_max))
        if header.batch or not is_prepared(messages[0]):
            return messages
        if self._broker.config.reject_transaction_message:
            remark = f"the broker[{self._broker.ip}] sending transaction message is forbidden"
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, remark)
        return (half_message(messages[0]),)

    def _single(self, header: headers.SendMessageRequestHeader, queue_id: int, body: bytes, born_host: str) -> Message:
        properties = accepted_properties(header_properties(header), self._stored_fields())
        topic, stored_queue_id, properties = self._handle_retry_and_dlq(header, queue_id, properties)
        config = self._broker.topics.select_topic_config(header.topic)
        if config is not None and is_compaction(config.attributes) and not properties.get(KEYS, "").strip():
            raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, "Required message key is missing")
        return accepted_message(header, topic, stored_queue_id, properties, body, born_host, header.flag)

    def _batch(
        self, header: headers.SendMessageRequestHeader, queue_id: int, body: bytes, born_host: str
    ) -> tuple[Message, ...]:
        refusal = batch_refusal(header.topic)
        if refusal is not None:
            raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, refusal)
        size_max = self._broker.config.max_message_size
        if len(body) > size_max:
            raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, too_large_remark(size_max))
        try:
            messages = accepted_batch(header, queue_id, body, self._stored_fields(), born_host)
        except LongBatchError as error:
            raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, str(error)) from None
        if not messages:
            raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, "the batch has no message in it")
        return messages

    def provide_topic(self, header: headers.SendMessageRequestHeader) -> trio.Event | None:
        """Create the topic of a message if it is unknown.

        Returns:
            What is set when the nameservers have answered the registration of the new topic; None: it is not new.

        Raises:
            RequestRefusedError: this broker does not take messages of the topic.
        """
        broker = self._broker
        known = broker.topics.select_topic_config(header.topic)
        if known is not None and known.order and not is_writeable(broker.config.broker_permission):
            # The broker's permission alone is checked here; the topic's permission only shapes routes.
            remark = f"the broker[{broker.ip}] sending message is forbidden"
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, remark)
        if known is None:
            valid = validate_topic(header.topic)
            if not valid.valid:
                raise RequestRefusedError(ResponseCode.INVALID_PARAMETER, valid.remark)
        if header.topic in NOT_ALLOWED_SEND_TOPICS:
            remark = f"Sending message to topic[{header.topic}] is forbidden."
            raise RequestRefusedError(ResponseCode.NO_PERMISSION, remark)
        return None if known is not None else self._create_topic(header)

    def queue_id(self, header: headers.SendMessageRequestHeader) -> int:
        """The queue of a message, drawn if the header leaves it open.

        Raises:
            RequestRefusedError: the topic does not exist, or it has no such queue.
        """
        config = self._broker.topics.select_topic_config(header.topic)
        if config is None:
            raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist here")
        if header.queue_id >= max(config.write_queue_nums, config.read_queue_nums):
            remark = f"topic {header.topic} has no queue {header.queue_id}"
            raise RequestRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        return header.queue_id if header.queue_id >= 0 else self._chance.randrange(config.write_queue_nums)

    def _create_topic(self, header: headers.SendMessageRequestHeader) -> trio.Event | None:
        """Create the topic of a send if that is allowed; returns its registration."""
        lookup = self._broker.topics.create_topic_in_send_message_method(
            header.topic,
            header.default_topic,
            header.default_topic_queue_nums,
            0,
            now_ms=self._broker.host.clock.now_ms(),
        )
        if lookup.created:
            persist_topics(self._broker)
            return self._registration.register_increment((header.topic,))
        if lookup.config is None and header.topic.startswith(RETRY_TOPIC_PREFIX):
            return provide_topic(self._broker, self._registration, header.topic, 1).registered
        return None

    def _handle_retry_and_dlq(
        self, header: headers.SendMessageRequestHeader, queue_id: int, properties: dict[str, str]
    ) -> tuple[str, int, dict[str, str]]:
        """Topic, queue and properties of the stored message; a retry topic may become the dead letter topic.

        A group with any locked queue is taken for an ordered one: its messages here were consumed often enough.

        Raises:
            RequestRefusedError: the group of the retry topic does not exist.
        """
        if not header.topic.startswith(RETRY_TOPIC_PREFIX):
            return header.topic, queue_id, properties
        broker, group_name = self._broker, parse_group(header.topic)
        now_ms = broker.host.clock.now_ms()
        group = broker.groups.find_subscription_group_config(group_name, now_ms=now_ms)
        if group is None:
            remark = f"subscription group not exist, {group_name}"
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        times_max = group.retry_max_times if header.max_reconsume_times is None else header.max_reconsume_times
        if (header.reconsume_times or 0) <= times_max and self._locks.is_lock_all_expired(group_name, now_ms):
            return header.topic, queue_id, properties
        topic = provide_dlq_topic(broker, self._registration, group_name)
        return topic, 0, {**properties, DELAY_TIME_LEVEL: "-1"}
