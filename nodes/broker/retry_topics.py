"""Retry and dead letter topics, made when the first member or the first message for them comes."""

from nodes.broker.context import BrokerContext
from nodes.broker.metadata_files import persist_topics
from nodes.broker.registration import Registration
from nodes.protocol.model import READ_WRITE, TopicConfig
from nodes.protocol.names import dlq_topic
from nodes.protocol.retries import DLQ_NUMS_PER_GROUP


def provide_topic(broker: BrokerContext, registration: Registration, topic: str, queue_nums: int) -> TopicConfig | None:
    """The topic; a new one is written to disk and registered at once, one that only changes is written.

    Mirrors:
        `org.apache.rocketmq.broker.topic.TopicConfigManager#createTopicInSendMessageBackMethod`.
    """
    now_ms, version = broker.host.clock.now_ms(), broker.topics.data_version
    lookup = broker.topics.create_topic_in_send_message_back_method(topic, queue_nums, READ_WRITE, 0, now_ms=now_ms)
    if broker.topics.data_version is not version:
        persist_topics(broker)
        broker.versions.believe()
    if lookup.created:
        registration.register_increment((topic,))
    return lookup.config


def provide_dlq_topic(broker: BrokerContext, registration: Registration, group: str) -> str:
    """The name of a group's dead letter topic, which exists from now on."""
    topic = dlq_topic(group)
    provide_topic(broker, registration, topic, DLQ_NUMS_PER_GROUP)
    return topic
