"""Sends: the topic they are for, the queue they go to, and who waits for them."""

from collections.abc import Callable

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.commit_log import write_commit_log
from nodes.broker.context import BrokerContext
from nodes.broker.metadata_files import persist_topics
from nodes.broker.registration import Registration
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import Message, TopicConfig
from nodes.protocol.properties import text_to_properties
from nodes.protocol.registry import decode_header
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
        on_stored: Callable[[str, int], None],
    ) -> None:
        self._broker = broker
        self._registration = registration
        self._on_stored = on_stored
        self._chance = broker.host.rng("sendQueue")
        server.register(RequestCode.SEND_MESSAGE, self._send)
        server.register(RequestCode.SEND_MESSAGE_V2, self._send_v2)

    def _send(self, channel: Channel, request: Command) -> Command:
        return self._store(channel, request, decode_header(headers.SendMessageRequestHeader, request.ext_fields))

    def _send_v2(self, channel: Channel, request: Command) -> Command:
        return self._store(channel, request, decode_header(headers.SendMessageRequestHeaderV2, request.ext_fields))

    def _store(self, channel: Channel, request: Command, header: headers.SendMessageRequestHeader) -> Command:
        broker = self._broker
        if broker.broker_id != 0:
            return request.answer(ResponseCode.SYSTEM_BUSY, "this broker is a slave")
        config = self._topic_config(header)
        if config is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist here")
        queue_id = header.queue_id
        if queue_id >= max(config.write_queue_nums, config.read_queue_nums):
            return request.answer(ResponseCode.SYSTEM_ERROR, f"topic {header.topic} has no queue {queue_id}")
        if queue_id < 0:
            queue_id = self._chance.randrange(config.write_queue_nums)
        stored = broker.store.put_message(
            Message(
                header.topic,
                queue_id,
                0,
                0,
                header.born_timestamp,
                0,
                request.body or b"",
                text_to_properties(header.properties),
                header.reconsume_times or 0,
                header.sys_flag,
                header.flag,
                born_host=channel.remote_address,
            ),
            now_ms=broker.host.clock.now_ms(),
        )
        write_commit_log(broker.host.disk, stored)
        offset = stored.queue_offset
        broker.host.record(MessageRecord(MessageEvent.STORED, "", header.topic, broker.broker_name, queue_id, offset))
        answer = headers.SendMessageResponseHeader(f"{broker.address}#{stored.commit_log_offset}", queue_id, offset)
        self._on_stored(header.topic, queue_id)
        return success(request, answer)

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
