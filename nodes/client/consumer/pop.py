"""Pops of a push consumer: a broker hands messages out, and hides them until they are answered or time is up."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from nodes.client.consumer.pull import BROKER_FLOW_CONTROL_DELAY_MS, FLOW_CONTROL_DELAY_MS, SUSPENDED_DELAY_MS
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.popped_messages import (
    HandlesMissingError,
    consume_init_mode,
    handle_of,
    retained_and_acknowledged,
    with_handles,
)
from nodes.client.tables.process_queue import PopProcessQueue, PopRequest
from nodes.config import ConsumerConfig
from nodes.filter.filter_api import client_keeps, filtered_record
from nodes.protocol import headers_pop
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import ExtraInfo
from nodes.protocol.model import MASTER_ID, Message, MessageQueue, SubscriptionData
from nodes.protocol.properties import TAGS
from nodes.protocol.registry import decode_body, decode_header, encode_header
from nodes.rpc.client import Reply
from nodes.rpc.errors import RemotingError

_ACK_TIMEOUT_MS = 3_000
_ANSWER_SPARE_MS = 10_000
"""How long a client waits for the answer of a pop after the time for which a broker may hold it."""
_INVISIBLE_MIN_MS = 5_000
_INVISIBLE_MAX_MS = 300_000
_INVISIBLE_MS = 60_000
"""In place of an invisible time outside of these bounds."""
_SHORTEST_POP_MS = 1


async def find_master(instance: ClientInstance, topic: str, broker_name: str) -> str | None:
    """The address of a broker's master, or of its acting one; the route of an unknown one is fetched once."""
    found = instance.routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, only_this_broker=True)
    if found is None:
        try:
            await instance.update_topic_route(topic)
        except RemotingError:
            return None
        found = instance.routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, only_this_broker=True)
    return None if found is None else found.address


def popped_from(message: Message, group: str) -> MessageQueue:
    """The queue in which a popped message is stored: perhaps one of a retry topic, whose name the client never sees."""
    handle = handle_of(message)
    return MessageQueue(handle.real_topic(message.topic, group), handle.broker_name, message.queue_id)


class PopAnswers:
    """Reports brokers what became of popped messages; nothing is repeated, and no result is looked at.

    Mirrors:
        `DefaultMQPushConsumerImpl#ackAsync`, `#changePopInvisibleTimeAsync`.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group

    async def ack(self, message: Message) -> None:
        """Acknowledge a message at the master of the broker that its handle names."""
        handle = handle_of(message)
        name = handle.broker_name
        header = headers_pop.AckMessageRequestHeader(*self._named(message, handle), bname=name)
        await self._send(RequestCode.ACK_MESSAGE, header, message.topic, name)

    async def change_invisible_time(self, message: Message, invisible_ms: int) -> None:
        """Hide a message for a time from now on; the new handle in the answer is not used."""
        handle = handle_of(message)
        name = handle.broker_name
        named = self._named(message, handle)
        header = headers_pop.ChangeInvisibleTimeRequestHeader(*named, invisible_ms, bname=name)
        await self._send(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header, message.topic, name)

    def _named(self, message: Message, handle: ExtraInfo) -> tuple[str, str, int, str, int]:
        """What a request names a message by: group, real topic, queue id, handle, offset."""
        topic = handle.real_topic(message.topic, self._group)
        return self._group, topic, handle.queue_id, " ".join(handle.words), handle.queue_offset

    async def _send(self, code: RequestCode, header: object, topic: str, broker_name: str) -> None:
        address = await find_master(self._instance, topic, broker_name)
        if address is None:
            self._instance.host.log.error("the broker does not exist", broker=broker_name, code=code.name)
            return
        self._instance.rpc.call_async(
            address,
            int(code),
            encode_header(header),
            None,
            timeout_ms=_ACK_TIMEOUT_MS,
            callback=partial(self._log, code),
        )

    def _log(self, code: RequestCode, answer: Reply) -> None:
        if isinstance(answer, RemotingError):
            self._instance.host.log.warning("a popped message was not answered", code=code.name, error=str(answer))
        elif answer.code != ResponseCode.SUCCESS:
            self._instance.host.log.warning(
                "a popped message was not answered", code=code.name, error=f"{answer.code} {answer.remark}"
            )


class PopThread(Protocol):
    """The thread that sends pulls and pops."""

    paused: bool

    def pull_now(self, request: PopRequest) -> None:
        """Queue a pop."""

    def pull_later(self, request: PopRequest, delay_ms: int) -> None:
        """Queue a pop after a delay."""


class PopConsumption(Protocol):
    """Passes popped messages to the listener."""

    def submit(self, queue: MessageQueue, process_queue: PopProcessQueue, messages: tuple[Message, ...]) -> None:
        """Consume messages that a pop of the queue has found."""

    def stop(self) -> None:
        """Pass on no further messages."""


class PopMessages:
    """Pops of all queues of a consumer.

    Args:
        thread: sends the pops in turn with pulls.
        consumption: passes messages to the listener.
        subscription: the present subscription of a topic.
        max_reconsume_times: revived more often than this, a message is acknowledged unseen.

    Mirrors:
        `DefaultMQPushConsumerImpl#popMessage`.

    Emits:
        FILTERED for every message that the client's filter keeps from the application.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        group: str,
        thread: PopThread,
        answers: PopAnswers,
        consumption: PopConsumption,
        subscription: Callable[[str], SubscriptionData | None],
        max_reconsume_times: int,
        stats: ConsumerStats,
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._stats = stats
        self._config = config
        self._group = group
        self._thread = thread
        self._answers = answers
        self._subscription = subscription
        self._consumption = consumption
        self._max_reconsume_times = max_reconsume_times

    def stop(self) -> None:
        """Pass no further messages to the listener."""
        self._consumption.stop()

    async def pop(self, request: PopRequest) -> None:
        """Pop a queue, or try again later."""
        process_queue, queue = request.process_queue, request.queue
        if process_queue.dropped:
            return
        process_queue.last_pop_ms = self._host.clock.now_ms()
        if self._thread.paused:
            self._thread.pull_later(request, SUSPENDED_DELAY_MS)
            return
        if process_queue.wait_ack > self._config.pop_threshold_for_queue:
            self._thread.pull_later(request, FLOW_CONTROL_DELAY_MS)
            return
        subscription = self._subscription(queue.topic)
        address = await find_master(self._instance, queue.topic, queue.broker_name) if subscription else None
        if subscription is None or address is None:
            self._thread.pull_later(request, self._config.pull_time_delay_mills_when_exception)
            return
        self._instance.rpc.call_async(
            address,
            int(RequestCode.POP_MESSAGE),
            encode_header(self._header(queue, subscription)),
            None,
            timeout_ms=self._config.broker_suspend_max_time_millis + _ANSWER_SPARE_MS,
            callback=partial(self._on_reply, request, subscription),
        )

    def _header(self, queue: MessageQueue, subscription: SubscriptionData) -> headers_pop.PopMessageRequestHeader:
        invisible_ms = self._config.pop_invisible_time
        is_usable = _INVISIBLE_MIN_MS <= invisible_ms <= _INVISIBLE_MAX_MS
        return headers_pop.PopMessageRequestHeader(
            self._group,
            queue.topic,
            queue.queue_id,
            self._config.pop_batch_nums,
            invisible_ms if is_usable else _INVISIBLE_MS,
            self._config.broker_suspend_max_time_millis,
            self._host.clock.now_ms(),
            consume_init_mode(self._config.consume_from_where),
            subscription.expression_type,
            subscription.sub_string,
            order=False,
            bname=queue.broker_name,
        )

    def _on_reply(self, request: PopRequest, subscription: SubscriptionData, answer: Reply) -> None:
        code = None if isinstance(answer, RemotingError) else answer.code
        match code:
            case ResponseCode.SUCCESS:
                assert isinstance(answer, Command)
                self._host.start_soon(self._found, request, subscription, answer, name="NettyClientPublicExecutor")
            case ResponseCode.POLLING_TIMEOUT | ResponseCode.PULL_NOT_FOUND:
                self._pop_again(request)
            case ResponseCode.FLOW_CONTROL:
                self._thread.pull_later(request, BROKER_FLOW_CONTROL_DELAY_MS)
            case _:
                self._thread.pull_later(request, self._config.pull_time_delay_mills_when_exception)

    def _pop_again(self, request: PopRequest) -> None:
        """Pop again at once; an answer without any delay would keep emulated time from advancing, so it adds one."""
        if request.process_queue.last_pop_ms == self._host.clock.now_ms():
            self._thread.pull_later(request, _SHORTEST_POP_MS)
        else:
            self._thread.pull_now(request)

    async def _found(self, request: PopRequest, subscription: SubscriptionData, answer: Command) -> None:
        queue, now_ms = request.queue, self._host.clock.now_ms()
        header = decode_header(headers_pop.PopMessageResponseHeader, answer.ext_fields)
        stored = decode_body(PullMessageResponseBody, answer.body).messages
        try:
            messages = with_handles(header, stored, queue.topic, queue.broker_name)
        except HandlesMissingError as error:
            self._host.log.warning("pop failed", queue=str(queue), error=str(error))
            self._thread.pull_later(request, self._config.pull_time_delay_mills_when_exception)
            return
        retained, refused = retained_and_acknowledged(
            messages, partial(self._keeps, subscription), self._max_reconsume_times
        )
        for message in refused:
            await self._answers.ack(message)
        self._stats.pulled(queue.topic, now_ms - request.process_queue.last_pop_ms, len(retained), now_ms)
        if not retained:
            self._pop_again(request)
            return
        request.process_queue.wait_ack += len(retained)
        self._consumption.submit(queue, request.process_queue, retained)
        if self._config.pull_interval > 0:
            self._thread.pull_later(request, self._config.pull_interval)
        else:
            self._thread.pull_now(request)

    def _keeps(self, subscription: SubscriptionData, message: Message) -> bool:
        keeps = client_keeps(subscription, message.properties.get(TAGS))
        if not keeps:
            place = popped_from(message, self._group)
            stored = message._replace(topic=place.topic)
            self._host.record(filtered_record(stored, self._group, place.broker_name, self._instance.client_id))
        return keeps
