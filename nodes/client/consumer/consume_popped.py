"""Consumption of popped messages: a pool of threads calls the listener; each message is answered for itself."""

from functools import partial

from nodes.client.consumer.listener import ConsumerListener
from nodes.client.consumer.pop import PopAnswers, popped_from
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.popped_messages import NoDelayLevelError, is_pop_timeout, put_off_ms
from nodes.client.tables.process_queue import PopProcessQueue
from nodes.config import ConsumerConfig
from nodes.host import Host
from nodes.protocol.model import Message, MessageQueue
from nodes.threads import ScheduledPool
from nodes.values import frozen


@frozen(eq=False)
class PopConsumeRequest:
    """A batch for the listener."""

    queue: MessageQueue
    process_queue: PopProcessQueue
    messages: tuple[Message, ...]


class ConsumeMessagePopConcurrentlyService:
    """Passes popped messages to the listener, unless somebody else may have them by now.

    Args:
        answers: notifies brokers the result.
        max_reconsume_times: failures from which a message is put off by its age.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService`.
    """

    def __init__(
        self,
        host: Host,
        config: ConsumerConfig,
        group: str,
        listener: ConsumerListener,
        answers: PopAnswers,
        max_reconsume_times: int,
        stats: ConsumerStats,
    ) -> None:
        self._stats = stats
        self._host = host
        self._group = group
        self._listener = listener
        self._answers = answers
        self._max_reconsume_times = max_reconsume_times
        self._batch_max = config.consume_message_batch_max_size
        self._threads = ScheduledPool(host, "ConsumeMessageThread", config.consume_thread_min)
        self._stopped = False

    def submit(self, queue: MessageQueue, process_queue: PopProcessQueue, messages: tuple[Message, ...]) -> None:
        """Queue messages in batches for the pool."""
        for start in range(0, len(messages), self._batch_max):
            request = PopConsumeRequest(queue, process_queue, messages[start : start + self._batch_max])
            self._threads.schedule(partial(self._consume, request), 0)

    def stop(self) -> None:
        """Start no further batch; running listeners are not waited for, and their results are not reported."""
        self._stopped = True
        self._threads.stop()

    async def _consume(self, request: PopConsumeRequest) -> None:
        """Consume a batch; one that is late is counted as answered, one whose queue was dropped before is not."""
        process_queue, messages = request.process_queue, request.messages
        if process_queue.dropped:
            return
        began_ms = self._host.clock.now_ms()
        if is_pop_timeout(messages, began_ms):
            process_queue.wait_ack -= len(messages)
            return
        places = tuple(popped_from(message, self._group) for message in messages)
        succeeded = await self._listener.consume_popped(places, messages)
        if self._stopped:
            return
        now_ms = self._host.clock.now_ms()
        is_void = self._is_void(request, now_ms)
        counted = None if is_void else succeeded
        self._stats.consumed(request.queue.topic, now_ms - began_ms, len(messages), now_ms, succeeded=counted)
        if is_void:
            process_queue.wait_ack -= len(messages)
            self._host.log.warning("processQueue invalid or popTimeout", queue=str(request.queue))
            return
        try:
            await self._process_result(request, succeeded=succeeded)
        except NoDelayLevelError as error:
            # As in RocketMQ the rest of the batch gets no answer, and stays counted.
            self._host.log.warning("processConsumeResult failed", queue=str(request.queue), error=str(error))

    def _is_void(self, request: PopConsumeRequest, now_ms: int) -> bool:
        """Whether the result of the listener is ignored."""
        return request.process_queue.dropped or is_pop_timeout(request.messages, now_ms)

    async def _process_result(self, request: PopConsumeRequest, *, succeeded: bool) -> None:
        """Answer each message.

        Raises:
            NoDelayLevelError: a message failed too often within 10 s.
        """
        for message in request.messages:
            request.process_queue.wait_ack -= 1
            invisible_ms = None
            if not succeeded:
                invisible_ms = put_off_ms(message, self._max_reconsume_times, self._host.clock.now_ms())
            if invisible_ms is None:
                await self._answers.ack(message)
            else:
                await self._answers.change_invisible_time(message, invisible_ms)
