"""A producer process of RocketMQ 5: an application that sends at a steady rate, one message at a time.

Mirrors:
    `org.apache.rocketmq.client.java.impl.producer.ProducerImpl`.
"""

import attrs
import trio

from nodes.beliefs import Lifecycle, LifecycleEvent, MessageEvent, MessageRecord, attempt_key
from nodes.client.producer.keys import KeyDraws, MessageKeys, TopicPartitions
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.client.producer.transactions import UniqIds
from nodes.client5.client import Client5, StatusError
from nodes.client5.grpc_channel import CallFailedError
from nodes.client5.tables.publishing import (
    take_message_queue_by_message_group,
    take_message_queues,
    writeable,
)
from nodes.config.client5 import Producer5Config
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.definition import (
    Endpoints,
    Message,
    MessageQueue,
    Publishing,
    Resource,
    RetryPolicy,
    Settings,
    SystemProperties,
)
from nodes.protocol.v2.enums import ClientType, Code, Encoding, MessageType, TransactionResolution, TransactionSource
from nodes.protocol.v2.service import (
    EndTransactionRequest,
    EndTransactionResponse,
    RecoverOrphanedTransactionCommand,
    SendMessageRequest,
    SendMessageResponse,
    TelemetryCommand,
)
from nodes.threads import ScheduledThread
from nodes.values import frozen

_INT_RANGE = 2**31
_RESOLUTIONS = {
    LocalTransactionState.COMMIT: TransactionResolution.COMMIT,
    LocalTransactionState.ROLLBACK: TransactionResolution.ROLLBACK,
}


@frozen
class Producer5Setup:
    """The proxies, the options and the messages of a producer."""

    endpoints: tuple[str, ...]
    config: Producer5Config
    topics: tuple[str, ...]
    """Where it sends: one topic, or those of `partitions`."""
    rate_per_s: int
    tags: tuple[str, ...] = ()
    keys: MessageKeys | None = None
    """Keys of the messages; with `is_fifo` they are the message groups, too."""
    partitions: TopicPartitions | None = None
    """Choice of the topic, by the key; None: there is one topic."""
    is_fifo: bool = False
    transactions: LocalTransactions | None = None
    messages: int = 0
    """After so many that a broker has accepted it sends no more; 0: without end."""
    timer_ms: int = 0
    """How much later each message shall be delivered; 0: at once."""


class Producer5:
    """Sends a message every `1 / rate_per_s` seconds, to its topic or to one of several by the key of the message."""

    def __init__(self, host: Host, setup: Producer5Setup) -> None:
        self._host = host
        self._setup = setup
        self._client = Client5(
            host,
            setup.endpoints,
            setup.config,
            None,
            ClientType.PRODUCER,
            self._settings,
            self._on_command,
            self._take_settings,
            writeable,
        )
        self._backoff = RetryPolicy(setup.config.max_attempts)
        self._keys = None if setup.keys is None else KeyDraws(setup.keys, host.rng("keys"))
        self._ids = UniqIds(host)
        self._index = host.rng("publishing").randrange(_INT_RANGE)
        self._sent = self._accepted = 0
        self._timer = ScheduledThread(host, "application")
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start, send, shut down."""
        if not await self._client.start(self._setup.topics):
            return
        self._timer.at_fixed_rate("send", self._send_one, 0, 1_000 / self._setup.rate_per_s)
        self._timer.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        self._timer.stop()
        await self._client.shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    def _settings(self) -> Settings:
        return Settings(
            client_type=ClientType.PRODUCER,
            access_point=self._client.access_point,
            backoff_policy=self._backoff,
            request_timeout_ms=self._setup.config.request_timeout,
            publishing=Publishing(tuple(map(Resource, self._setup.topics))),
        )

    def _take_settings(self, settings: Settings) -> None:
        if settings.backoff_policy is not None:
            self._backoff = settings.backoff_policy

    # --- sending -----------------------------------------------------------------------

    async def _send_one(self) -> None:
        self._sent += 1
        message = self._message()
        try:
            endpoints, transaction_id = await self._send(message)
        except (CallFailedError, StatusError) as error:
            self._host.log.warning("send failed", topic=message.topic.name, error=str(error))
            return
        self._accepted += 1
        if self._accepted == self._setup.messages:
            self._timer.stop()
        if self._setup.transactions is not None:
            does = self._setup.transactions
            if does.duration_ms:
                await self._host.sleep_ms(does.duration_ms)
            source = TransactionSource.SOURCE_CLIENT
            await self._end_transaction(endpoints, message, transaction_id, does.state, source)

    def _message(self) -> Message:
        setup, now_ms = self._setup, self._host.clock.now_ms()
        key = "" if self._keys is None else self._keys.draw()
        system = SystemProperties(
            tag=setup.tags[(self._sent - 1) % len(setup.tags)] if setup.tags else None,
            keys=(key,) if key else (),
            message_id=self._ids.create(),
            body_encoding=Encoding.IDENTITY,
            message_type=self._message_type(),
            born_timestamp_ms=now_ms,
            born_host=self._host.ip,
            delivery_timestamp_ms=now_ms + setup.timer_ms if setup.timer_ms else None,
            message_group=key if setup.is_fifo else None,
        )
        topic = setup.topics[0] if setup.partitions is None else setup.partitions.topic_of(key)
        return Message(Resource(topic), system_properties=system, body=str(self._sent).encode())

    def _message_type(self) -> MessageType:
        if self._setup.transactions is not None:
            return MessageType.TRANSACTION
        if self._setup.timer_ms:
            return MessageType.DELAY
        return MessageType.FIFO if self._setup.is_fifo else MessageType.NORMAL

    async def _send(self, message: Message) -> tuple[Endpoints, str]:
        """Send with attempts at different brokers, at once unless the proxy is busy; a FIFO message has one broker.

        Returns:
            The endpoints that have taken it, and the transaction id.

        Raises:
            CallFailedError: the last attempt got no answer.
            StatusError: the last attempt was refused.
        """
        queues = self._client.queues[message.topic.name]
        attempts = max(1, self._backoff.max_attempts)
        candidates = self._candidates(message, queues, attempts)
        for attempt in range(1, attempts + 1):
            queue = candidates[(attempt - 1) % len(candidates)]
            endpoints = queue.broker.endpoints
            try:
                return endpoints, await self._attempt(message, queue)
            except (CallFailedError, StatusError) as error:
                self._client.isolated[endpoints] = None
                self._record_unacknowledged(message, queue)
                if attempt == attempts:
                    raise
                if isinstance(error, StatusError) and error.status.code is Code.TOO_MANY_REQUESTS:
                    await self._host.sleep_ms(self._pause_ms(attempt))
        raise AssertionError(attempts)

    def _candidates(self, message: Message, queues: tuple[MessageQueue, ...], most: int) -> tuple[MessageQueue, ...]:
        group = message.system_properties.message_group
        if group is not None:
            return (take_message_queue_by_message_group(queues, group),)
        first = self._index
        self._index += 1
        return take_message_queues(queues, first, self._client.isolated, most)

    async def _attempt(self, message: Message, queue: MessageQueue) -> str:
        system = attrs.evolve(message.system_properties, queue_id=queue.id)
        sent = Message(message.topic, message.user_properties, system, message.body)
        answer = await self._client.call(
            queue.broker.endpoints, RequestCode.V2_SEND_MESSAGE, SendMessageRequest((sent,)), SendMessageResponse
        )
        if answer.status.code is not Code.OK:
            raise StatusError(answer.status)
        return answer.entries[0].transaction_id

    def _pause_ms(self, attempt: int) -> int:
        backoff = self._backoff.exponential_backoff
        if backoff is None:
            return 0
        return int(min(backoff.initial_ms * backoff.multiplier ** (attempt - 1), backoff.max_ms))

    def _record_unacknowledged(self, message: Message, queue: MessageQueue) -> None:
        """An attempt without OK: a broker knows it by the address of the proxy."""
        ip = self._client.address(queue.broker.endpoints).rpartition(":")[0]
        key = attempt_key(ip, message.system_properties.born_timestamp_ms)
        place = (message.topic.name, queue.broker.name, queue.id, -1)
        self._host.record(MessageRecord(MessageEvent.UNACKNOWLEDGED, "", *place, key=key))

    # --- transactions --------------------------------------------------------------------

    def _on_command(self, endpoints: Endpoints, command: TelemetryCommand) -> None:
        recover = command.recover_orphaned_transaction_command
        if recover is not None and self._setup.transactions is not None:
            self._host.start_soon(self._check, endpoints, recover, name="checkTransaction")

    async def _check(self, endpoints: Endpoints, command: RecoverOrphanedTransactionCommand) -> None:
        does = self._setup.transactions
        assert does is not None
        state = does.check_state or does.state
        source = TransactionSource.SOURCE_SERVER_CHECK
        await self._end_transaction(endpoints, command.message, command.transaction_id, state, source)

    async def _end_transaction(
        self,
        endpoints: Endpoints,
        message: Message,
        transaction_id: str,
        state: LocalTransactionState,
        source: TransactionSource,
    ) -> None:
        """Send the end of a transaction, unless that is unknown.

        OK says that the proxy knew the transaction, not that the broker hears of its end.
        """
        message_id = message.system_properties.message_id
        place = (message.topic.name, "", message.system_properties.queue_id, -1)
        self._host.record(MessageRecord(MessageEvent.DECIDED, "", *place, "", -1, state.value, message_id))
        resolution = _RESOLUTIONS.get(state)
        if resolution is None:
            return
        request = EndTransactionRequest(message.topic, message_id, transaction_id, resolution, source)
        try:
            answer = await self._client.call(endpoints, RequestCode.V2_END_TRANSACTION, request, EndTransactionResponse)
        except CallFailedError as error:
            self._host.log.warning("end of a transaction failed", error=str(error))
            return
        if answer.status.code is not Code.OK:
            self._host.log.warning("end of a transaction refused", error=answer.status.message)
