"""Calls of clients of RocketMQ 5 that their proxies refuse each time, as far as a scenario shows it."""

from collections.abc import Iterator

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ProxySpec, has_endpoint
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from nodes.config.client5 import SimpleConsumer5Config
from nodes.proxy.tables.topic_types import TopicMessageType


def refused_calls(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Warnings about receives and sends that are refused."""
    types = {topic.name: topic.message_type for topic in scenario.topics}
    for proxy in scenario.proxies:
        for group in scenario.consumers:
            if isinstance(group.config5, SimpleConsumer5Config) and has_endpoint(group.endpoints, proxy.name):
                yield from _refused_receives(proxy, group, group.config5)
        for producer in scenario.producers:
            if producer.config5 is not None and has_endpoint(producer.endpoints, proxy.name):
                for topic in producer.topics:
                    yield from _refused_sends(proxy, producer, topic, types.get(topic))


def _refused_receives(
    proxy: ProxySpec, group: ConsumerGroupSpec, config: SimpleConsumer5Config
) -> Iterator[HarmfulSetting]:
    options, names = proxy.config, ", ".join(group.names)
    least_ms = options.grpc_client_consumer_min_long_polling_timeout_millis
    if config.await_duration + config.request_timeout <= least_ms:
        yield HarmfulSetting(
            "receives-refused",
            names,
            f"awaitDuration and requestTimeout make {config.await_duration + config.request_timeout} ms, and "
            f"{proxy.name} refuses calls with less than grpcClientConsumerMinLongPollingTimeoutMillis = {least_ms}: "
            "ILLEGAL_POLLING_TIME",
        )
    shortest_ms, longest_ms = options.min_invisible_time_mills_for_recv, options.max_invisible_time_mills
    if config.invisible_duration < shortest_ms or 0 < longest_ms < config.invisible_duration:
        yield HarmfulSetting(
            "receives-refused",
            names,
            f"invisibleDuration = {config.invisible_duration}, and {proxy.name} takes {shortest_ms} to {longest_ms} "
            "ms: ILLEGAL_INVISIBLE_TIME",
        )


def _refused_sends(
    proxy: ProxySpec, producer: ProducerSpec, topic: str, topic_type: TopicMessageType | None
) -> Iterator[HarmfulSetting]:
    options = proxy.config
    if 0 < options.max_delay_time_mills < producer.timer_ms:
        yield HarmfulSetting(
            "sends-refused",
            producer.name,
            f"its messages are to be delivered {producer.timer_ms} ms later, and {proxy.name} delays for "
            f"maxDelayTimeMills = {options.max_delay_time_mills} at most: ILLEGAL_DELIVERY_TIME",
        )
    own = _type_of(producer)
    if options.enable_topic_message_type_check and topic_type not in (None, own, TopicMessageType.MIXED):
        yield HarmfulSetting(
            "sends-refused",
            producer.name,
            f"its messages are {own}, and topic {topic} takes {topic_type}: {proxy.name} refuses each, "
            "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE",
        )


def _type_of(producer: ProducerSpec) -> TopicMessageType:
    """The type of the messages of a producer, as a proxy sees it."""
    if producer.transactions is not None:
        return TopicMessageType.TRANSACTION
    if producer.timer_ms or producer.delay_level:
        return TopicMessageType.DELAY
    return TopicMessageType.FIFO if producer.fifo else TopicMessageType.NORMAL
