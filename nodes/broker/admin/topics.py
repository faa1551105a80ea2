"""Requests of operators that create, change and delete topics."""

import attrs

from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_consumer_offsets, persist_topics
from nodes.broker.messages.static_topics import StaticTopics
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.metadata.attributes import AttributeRefusedError
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.host import Channel
from nodes.protocol import headers_admin as headers
from nodes.protocol.attribute_parser import parse_to_map
from nodes.protocol.bodies import TopicList
from nodes.protocol.bodies_admin import CreateTopicListRequestBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import TopicConfig
from nodes.protocol.names import SYSTEM_TOPICS, is_system_topic, validate_topic
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.static_topics import TopicConfigAndQueueMapping
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_Refusal = tuple[ResponseCode, str]


class AdminTopics(Part):
    """Changes topics while the broker runs, and registers them at once.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#updateAndCreateTopic`, `#updateAndCreateTopicList`,
        `#deleteTopic`, `#getTopicConfig`, `#getSystemTopicListFromBroker`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        offsets: ConsumerOffsetManager,
        in_flight: PopInflightMessageCounter,
        registration: NameserverRegistration,
        static_topics: StaticTopics,
    ) -> None:
        self._broker = broker
        self._offsets = offsets
        self._in_flight = in_flight
        self._registration = registration
        self._static_topics = static_topics

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            **self._registration.answered_when_registered(
                {
                    RequestCode.UPDATE_AND_CREATE_TOPIC: self._update_and_create_topic,
                    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self._update_and_create_topic_list,
                }
            ),
            RequestCode.DELETE_TOPIC_IN_BROKER: self._delete_topic,
            RequestCode.GET_TOPIC_CONFIG: self._get_topic_config,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self._get_system_topics,
        }

    def _update_and_create_topic(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.CreateTopicRequestHeader, request.ext_fields)
        config = TopicConfig(
            header.topic,
            header.read_queue_nums,
            header.write_queue_nums,
            header.perm,
            header.topic_sys_flag or 0,
            header.order,
            header.topic_filter_type,
            parse_to_map(header.attributes or ""),
        )
        return self._update(request, (config,))

    def _update_and_create_topic_list(self, _channel: Channel, request: Command) -> Command:
        return self._update(request, decode_body(CreateTopicListRequestBody, request.body).topic_config_list)

    def _update(self, request: Command, configs: tuple[TopicConfig, ...]) -> Command:
        for config in configs:
            refusal = _name_refusal(config.topic_name) or _mixed_refusal(config)
            if refusal is not None:
                return request.answer(*refusal)
        topics, now_ms = self._broker.topics, self._broker.host.clock.now_ms()
        changed = [config for config in configs if topics.select_topic_config(config.topic_name) != config]
        try:
            for config in changed:
                topics.require_room(config)
                topics.update_topic_config(config, now_ms=now_ms)
        except AttributeRefusedError as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
        if changed:
            persist_topics(self._broker)
            self._broker.versions.believe()
            self._registration.register_increment(tuple(config.topic_name for config in changed))
        return success(request)

    def _delete_topic(self, _channel: Channel, request: Command) -> Command:
        topic = decode_header(headers.TopicHeader, request.ext_fields).topic
        if not topic or topic.isspace():
            return request.answer(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        if is_system_topic(topic):
            return request.answer(*_conflict(topic))
        broker = self._broker
        broker.topics.delete_topic_config(topic, now_ms=broker.host.clock.now_ms())
        self._static_topics.forget(topic)
        self._offsets.clean_offset_by_topic(topic)
        self._in_flight.clear_topic(topic)
        broker.store.delete_topic(topic)
        broker.stats.forget_topic(topic)
        persist_topics(broker)
        persist_consumer_offsets(broker, self._offsets)
        broker.versions.believe()
        return success(request)

    def _get_topic_config(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.TopicHeader, request.ext_fields)
        config = self._broker.topics.select_topic_config(header.topic)
        if config is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {header.topic}")
        mapping = self._static_topics.mappings.get(header.topic) if header.lo else None
        return success(
            request, None, TopicConfigAndQueueMapping(**attrs.asdict(config, recurse=False), mapping_detail=mapping)
        )

    def _get_system_topics(self, _channel: Channel, request: Command) -> Command:
        named = [*SYSTEM_TOPICS, *filter(is_system_topic, self._broker.topics.topics)]
        return success(request, None, TopicList(tuple(sorted(dict.fromkeys(named)))))


def _name_refusal(topic: str) -> _Refusal | None:
    valid = validate_topic(topic)
    if not valid.valid:
        return ResponseCode.INVALID_PARAMETER, valid.remark
    return _conflict(topic) if is_system_topic(topic) else None


def _mixed_refusal(config: TopicConfig) -> _Refusal | None:
    if config.attributes.get("+message.type") == "MIXED":
        return ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported."
    return None


def _conflict(topic: str) -> _Refusal:
    return ResponseCode.INVALID_PARAMETER, f"The topic[{topic}] is conflict with system topic."
