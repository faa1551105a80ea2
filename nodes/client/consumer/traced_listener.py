"""Traces of consumption: one before a batch is handed to the listener, one after it has returned.

Mirrors:
    `org.apache.rocketmq.client.trace.hook.ConsumeMessageTraceHookImpl`.
"""

from nodes.client.consumer.listener import MessageListener
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.message_traces import TraceDispatcher
from nodes.client.tables.message_traces import ConsumeReturnType, TracedMessage, sub_after_trace, sub_before_trace
from nodes.config import ConsumerConfig
from nodes.host import Clock
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import RETRY_TOPIC_PREFIX, Message, MessageQueue
from nodes.protocol.names import DEFAULT_TRACE_REGION
from nodes.protocol.namespaces import without_namespace
from nodes.protocol.properties import MSG_REGION, RETRY_TOPIC, TRACE_SWITCH, UNIQ_KEY
from nodes.values import frozen

_MS_PER_MINUTE = 60_000


@frozen
class _Begun:
    """A batch that the listener has."""

    messages: tuple[TracedMessage, ...]
    batch_size: int
    """With the messages that are not traced."""
    region_id: str
    request_id: str
    began_ms: int


class ConsumptionTraces:
    """Traces the batches of one group."""

    def __init__(self, clock: Clock, dispatcher: TraceDispatcher) -> None:
        self._clock = clock
        self.dispatcher = dispatcher
        """Sends the traces."""

    def before(self, messages: tuple[Message, ...]) -> _Begun | None:
        """Trace that the listener gets a batch; None: its brokers want none of its messages traced."""
        group = self.dispatcher.group
        wanted = [message for message in messages if message.properties.get(TRACE_SWITCH) != "false"]
        if not wanted:
            return None
        batch = tuple(map(_traced, wanted))
        region_id = wanted[-1].properties.get(MSG_REGION, DEFAULT_TRACE_REGION)
        begun = _Begun(batch, len(messages), region_id, self.dispatcher.ids.create(), self._clock.now_ms())
        self.dispatcher.append(sub_before_trace(batch, group, region_id, begun.request_id, begun.began_ms))
        return begun

    def after(self, begun: _Begun, returned: ConsumeReturnType, *, succeeded: bool) -> None:
        """Trace what the listener has returned."""
        now_ms, group = self._clock.now_ms(), self.dispatcher.group
        cost_ms = (now_ms - begun.began_ms) // begun.batch_size
        request = begun.region_id, begun.request_id
        self.dispatcher.append(
            sub_after_trace(begun.messages, group, *request, cost_ms, returned, now_ms, succeeded=succeeded)
        )


def _traced(message: Message) -> TracedMessage:
    """What a trace holds of a message; one that was sent back has its first topic."""
    topic, properties = message.topic, message.properties
    if topic.startswith(RETRY_TOPIC_PREFIX):
        topic = properties.get(RETRY_TOPIC, topic)
    msg_id = properties.get(UNIQ_KEY) or offset_message_id(message.store_host, message.commit_log_offset)
    return TracedMessage(without_namespace(topic), msg_id, properties, message.reconsume_times)


class TracedListener(MessageListener):
    """A listener whose batches are traced; those that administrators have it consume are not."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        consume_ms: int,
        fail_times: int,
        config: ConsumerConfig,
        traces: TraceDispatcher,
    ) -> None:
        super().__init__(instance, group, consume_ms, fail_times)
        self._clock = instance.host.clock
        self._traces = ConsumptionTraces(self._clock, traces)
        self._timeout_ms = config.consume_timeout * _MS_PER_MINUTE

    async def consume_message(self, queue: MessageQueue, messages: tuple[Message, ...]) -> bool:
        """Consume a batch; returns whether it succeeded."""
        return await self._traced((queue,) * len(messages), messages, self._timeout_ms)

    async def consume_popped(self, places: tuple[MessageQueue, ...], messages: tuple[Message, ...]) -> bool:
        """Consume popped messages, which are never late for a trace: RocketMQ takes their milliseconds for seconds."""
        return await self._traced(places, messages, None)

    async def _traced(
        self, places: tuple[MessageQueue, ...], messages: tuple[Message, ...], timeout_ms: int | None
    ) -> bool:
        begun, began_ms = self._traces.before(messages), self._clock.now_ms()
        succeeded = await super().consume_popped(places, messages)
        if begun is None:
            return succeeded
        returned = ConsumeReturnType.SUCCESS if succeeded else ConsumeReturnType.FAILED
        if timeout_ms is not None and self._clock.now_ms() - began_ms >= timeout_ms:
            returned = ConsumeReturnType.TIME_OUT
        self._traces.after(begun, returned, succeeded=succeeded)
        return succeeded
