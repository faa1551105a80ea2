"""Sends: the topic they are for, the queue they go to, and who waits for them."""

from nodes.broker.context import BrokerContext
from nodes.broker.flush import Flush
from nodes.broker.ha_in_sync import NOT_ENOUGH_REMARK
from nodes.broker.ha_service import HaService
from nodes.broker.metadata_files import persist_topics
from nodes.broker.put_message import PutMessage
from nodes.broker.registration import Registration
from nodes.broker.retry_topics import provide_dlq_topic, provide_topic
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, RETRY_TOPIC_PREFIX, Message, TopicConfig, is_writeable
from nodes.protocol.pop_names import parse_group
from nodes.protocol.properties import DELAY_TIME_LEVEL, text_to_properties
from nodes.protocol.registry import decode_header, encode_header
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success


class SendMessage:
    """Stores what producers send, and what consumers send to retry topics as producers do.

    Mirrors:
        `org.apache.rocketmq.broker.processor.SendMessageProcessor`, `AbstractSendMessageProcessor#msgCheck`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        server: RpcServer,
        registration: Registration,
        ha: HaService,
        messages: PutMessage,
    ) -> None:
        self._broker = broker
        self._registration = registration
        self._ha = ha
        self._messages = messages
        self._chance = broker.host.rng("sendQueue")
        server.register(RequestCode.SEND_MESSAGE, self._send)
        server.register(RequestCode.SEND_MESSAGE_V2, self._send_v2)

    def _send(self, channel: Channel, request: Command) -> Command | None:
        return self._store(channel, request, decode_header(headers.SendMessageRequestHeader, request.ext_fields))

    def _send_v2(self, channel: Channel, request: Command) -> Command | None:
        return self._store(channel, request, decode_header(headers.SendMessageRequestHeaderV2, request.ext_fields))

    def _store(self, channel: Channel, request: Command, header: headers.SendMessageRequestHeader) -> Command | None:
        broker = self._broker
        queue_id = self._queue_id(header)
        if not isinstance(queue_id, int):
            return request.answer(*queue_id)
        addressed = self._handle_retry_and_dlq(header, queue_id, text_to_properties(header.properties))
        if addressed is None:
            remark = f"subscription group not exist, {parse_group(header.topic)}"
            return request.answer(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        topic, stored_queue_id, properties = addressed
        ack_nums = self._ha.ack_nums_to_wait_for(properties)
        if ack_nums is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, NOT_ENOUGH_REMARK)
        message = Message(
            topic,
            stored_queue_id,
            0,
            0,
            header.born_timestamp,
            0,
            request.body or b"",
            properties,
            header.reconsume_times or 0,
            header.sys_flag,
            header.flag,
            born_host=channel.remote_address,
        )
        stored = self._messages.put(message).stored
        if stored is None:
            return request.answer(
                ResponseCode.SERVICE_NOT_AVAILABLE, "this broker is a slave: its log takes no message"
            )
        msg_id = f"{broker.address}#{stored.commit_log_offset}"
        answer = headers.SendMessageResponseHeader(msg_id, queue_id, stored.queue_offset)
        flush = Flush(broker)
        if ack_nums <= 1 and flush.at_once:
            return success(request, answer)
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
        """Answer once disk and enough logs have it; a message that did not make it in time is stored all the same."""
        cause.set(began)
        end = self._broker.store.max_commit_log_offset
        acked = ack_nums <= 1 or await self._ha.wait_for_acks(end, ack_nums)
        code = ResponseCode.SUCCESS if await flush.wait() else ResponseCode.FLUSH_DISK_TIMEOUT
        if not acked:
            code = ResponseCode.FLUSH_SLAVE_TIMEOUT
        if not request.is_oneway and not channel.closed:
            channel.send(request.answer(code, None, encode_header(header)))

    def _queue_id(self, header: headers.SendMessageRequestHeader) -> int | tuple[ResponseCode, str]:
        """The queue that a message goes to, or why it goes nowhere."""
        broker = self._broker
        if broker.broker_id != MASTER_ID and not broker.config.enable_slave_acting_master:
            return ResponseCode.SYSTEM_BUSY, "this broker is a slave"
        known = broker.topics.select_topic_config(header.topic)
        if not is_writeable(broker.config.broker_permission) and known is not None and known.order:
            # The only permission that a send is measured by; that of the topic is for who reads the route.
            return ResponseCode.NO_PERMISSION, f"the broker[{broker.host.ip}] sending message is forbidden"
        config = self._topic_config(header)
        if config is None:
            return ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist here"
        if header.queue_id >= max(config.write_queue_nums, config.read_queue_nums):
            return ResponseCode.INVALID_PARAMETER, f"topic {header.topic} has no queue {header.queue_id}"
        return header.queue_id if header.queue_id >= 0 else self._chance.randrange(config.write_queue_nums)

    def _topic_config(self, header: headers.SendMessageRequestHeader) -> TopicConfig | None:
        lookup = self._broker.topics.create_topic_in_send_message_method(
            header.topic,
            header.default_topic,
            header.default_topic_queue_nums,
            0,
            now_ms=self._broker.host.clock.now_ms(),
        )
        if lookup.created:
            persist_topics(self._broker)
            self._registration.register_increment((header.topic,))
        elif lookup.config is None and header.topic.startswith(RETRY_TOPIC_PREFIX):
            return provide_topic(self._broker, self._registration, header.topic, 1)
        return lookup.config

    def _handle_retry_and_dlq(
        self, header: headers.SendMessageRequestHeader, queue_id: int, properties: dict[str, str]
    ) -> tuple[str, int, dict[str, str]] | None:
        """Topic, queue and properties to store a message under: a retry topic may turn out to be the dead letters.

        A group of which anybody holds a lock is taken for one in order: what it sends there was tried often enough.

        Returns:
            None where the group of the retry topic does not exist.
        """
        if not header.topic.startswith(RETRY_TOPIC_PREFIX):
            return header.topic, queue_id, properties
        broker, group_name = self._broker, parse_group(header.topic)
        now_ms = broker.host.clock.now_ms()
        group = broker.groups.find_subscription_group_config(group_name, now_ms=now_ms)
        if group is None:
            return None
        times_max = group.retry_max_times if header.max_reconsume_times is None else header.max_reconsume_times
        if (header.reconsume_times or 0) <= times_max and broker.locks.is_lock_all_expired(group_name, now_ms):
            return header.topic, queue_id, properties
        topic = provide_dlq_topic(broker, self._registration, group_name)
        return topic, 0, {**properties, DELAY_TIME_LEVEL: "-1"}
