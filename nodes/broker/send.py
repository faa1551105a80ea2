"""Sends: the topic they are for, the queue they go to, and who waits for them."""

from nodes.broker.context import BrokerContext
from nodes.broker.ha_in_sync import NOT_ENOUGH_REMARK
from nodes.broker.ha_service import HaService
from nodes.broker.metadata_files import persist_topics
from nodes.broker.put_message import PutMessage
from nodes.broker.registration import Registration
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message, TopicConfig
from nodes.protocol.properties import text_to_properties
from nodes.protocol.registry import decode_header, encode_header
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success


class SendMessage:
    """Stores what producers send.

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
        properties = text_to_properties(header.properties)
        ack_nums = self._ha.ack_nums_to_wait_for(properties)
        if ack_nums is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, NOT_ENOUGH_REMARK)
        message = Message(
            header.topic,
            queue_id,
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
        if ack_nums <= 1:
            return success(request, answer)
        end = broker.store.max_commit_log_offset
        broker.host.start_soon(
            self._answer_when_acked, channel, request, answer, end, ack_nums, cause.get(), name="handleHA"
        )
        return None

    async def _answer_when_acked(
        self,
        channel: Channel,
        request: Command,
        header: headers.SendMessageResponseHeader,
        end: int,
        ack_nums: int,
        began: int,
    ) -> None:
        """Answer once enough logs reach `end`; a message that did not make it in time is stored all the same."""
        cause.set(began)
        acked = await self._ha.wait_for_acks(end, ack_nums)
        code = ResponseCode.SUCCESS if acked else ResponseCode.FLUSH_SLAVE_TIMEOUT
        if not request.is_oneway and not channel.closed:
            channel.send(request.answer(code, None, encode_header(header)))

    def _queue_id(self, header: headers.SendMessageRequestHeader) -> int | tuple[ResponseCode, str]:
        """The queue that a message goes to, or why it goes nowhere."""
        broker = self._broker
        if broker.broker_id != MASTER_ID and not broker.config.enable_slave_acting_master:
            return ResponseCode.SYSTEM_BUSY, "this broker is a slave"
        config = self._topic_config(header)
        if config is None:
            return ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist here"
        if header.queue_id >= max(config.write_queue_nums, config.read_queue_nums):
            return ResponseCode.SYSTEM_ERROR, f"topic {header.topic} has no queue {header.queue_id}"
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
        return lookup.config
