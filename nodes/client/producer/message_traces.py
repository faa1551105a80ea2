"""Message trace: a second producer in a client, which sends what the client records about its messages.

Mirrors:
    `org.apache.rocketmq.client.trace.AsyncTraceDispatcher`.
"""

from enum import StrEnum

import trio

from nodes.cause import cause
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.default_producer import (
    ClientError,
    DefaultProducer,
    OutgoingMessage,
    SendResult,
    SendStatus,
)
from nodes.client.producer.transactions import EndedTransaction, UniqIds
from nodes.client.tables.message_traces import (
    SentMessage,
    TraceContext,
    TracedMessage,
    TraceQueue,
    end_transaction_trace,
    pub_trace,
    trace_messages,
)
from nodes.config import ClientConfig, ProducerConfig
from nodes.config.request_pools import PoolSize
from nodes.host import Host
from nodes.protocol.model import MessageQueue
from nodes.protocol.names import DEFAULT_TRACE_REGION, TRACE_TOPIC
from nodes.protocol.namespaces import without_namespace
from nodes.protocol.properties import KEYS, MSG_REGION, TRACE_SWITCH, UNIQ_KEY
from nodes.routes import SendWhichQueue
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.thread_pool import Admission, ThreadPool
from nodes.threads import ScanThread

_TRACE_INSTANCE_NAME = "PID_CLIENT_INNER_TRACE_PRODUCER"
_TRACE_GROUP_PREFIX = "_INNER_TRACE_PRODUCER"
_SEND_TIMEOUT_MS = 5_000
_POLL_MS = 5
_SHUTDOWN_WAIT_MS = 5_000
_SEND_THREADS = PoolSize(threads=2, queue_capacity=2_048)
"""RocketMQ starts two more threads while so many batches wait; here the next batch is lost at once."""
_FIRST_INDEX_BOUND = 1_000
_TRACE_LOADER = 1
"""Distinguishes the ids of trace messages from those of the application's messages."""


class TraceKind(StrEnum):
    """What a dispatcher traces."""

    PRODUCE = "PRODUCE"
    CONSUME = "CONSUME"


class TraceProducers:
    """The trace producers of a process: one for each producer or consumer that traces, all of one client.

    The client id contains no process id, so all processes on one address have the same.

    Mirrors:
        `AsyncTraceDispatcher#start`, `#genGroupNameForTrace`,
        `org.apache.rocketmq.client.impl.MQClientManager#getOrCreateMQClientInstance`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._created = 0
        self._instances: dict[str, ClientInstance] = {}
        self.ids = UniqIds(host, loader=_TRACE_LOADER)
        """Generates the ids of trace messages, and those that the two traces of a consumption share."""

    def create(
        self, config: ClientConfig, nameservers: tuple[str, ...], group: str, kind: TraceKind
    ) -> DefaultProducer:
        """A producer for the traces of a group; its options are the shipped ones, but for its servers and account."""
        own = ProducerConfig(
            namesrv_addr=config.namesrv_addr,
            fetch_namesrv_addr_by_address_server=config.fetch_namesrv_addr_by_address_server,
            leaves_removed_nameserver=config.leaves_removed_nameserver,
            access_key=config.access_key,
            secret_key=config.secret_key,
            send_msg_timeout=_SEND_TIMEOUT_MS,
            namespace_v2=config.namespace_v2,
        )
        name = f"{_TRACE_INSTANCE_NAME}_{';'.join(nameservers) or 'null'}"
        if name not in self._instances:
            self._instances[name] = ClientInstance(self._host, own, nameservers, name)
        self._created += 1
        return DefaultProducer(self._instances[name], own, f"{_TRACE_GROUP_PREFIX}-{group}-{kind}-{self._created}")


class TraceDispatcher:
    """Collects the traces of one producer or consumer, and sends them in batches.

    A batch is due when `traceMsgBatchNum` traces wait, or 5 s after the last one. What cannot be sent is lost, and the
    application does not notice.
    """

    def __init__(
        self,
        host: Host,
        config: ClientConfig,
        nameservers: tuple[str, ...],
        group: str,
        kind: TraceKind,
        producers: TraceProducers,
    ) -> None:
        self._host = host
        self.group = without_namespace(group)
        """The group whose messages it traces; no name in a trace has its namespace."""
        self.ids = producers.ids
        self._trace_topic = config.trace_topic or TRACE_TOPIC
        self._producer = producers.create(config, nameservers, group, kind)
        self._queue = TraceQueue(config.trace_msg_batch_num, now_ms=host.clock.now_ms())
        self._worker = ScanThread(host, "MQ-AsyncArrayDispatcher-Thread", _POLL_MS, self._flush)
        self._threads: ThreadPool[tuple[list[TraceContext], int]] = ThreadPool(_SEND_THREADS)
        self._busy = 0
        self._idle = trio.Event()
        self._which: SendWhichQueue | None = None

    async def start(self) -> None:
        """Start the trace producer and the worker."""
        instance = self._producer.instance
        instance.register(self._producer)
        await instance.start()
        self._worker.start()
        self._poll_when_due()

    async def shutdown(self) -> None:
        """Send what waits, which may take 5 s, and close the trace producer."""
        while batch := self._queue.take(self._host.clock.now_ms()):
            self._submit(batch)
        try:
            with self._host.timeout_ms(_SHUTDOWN_WAIT_MS):
                while self._busy:
                    await self._idle.wait()
        except trio.TooSlowError:
            self._host.log.warning("trace data is lost: the threads that send it are busy", group=self.group)
        instance = self._producer.instance
        await instance.unregister(self._producer, self._producer.group, is_consumer=False)
        instance.shutdown()

    def append(self, context: TraceContext) -> None:
        """Queue a trace; it is discarded if 2,048 wait."""
        if not self._queue.append(context):
            self._host.log.info("buffer full, context is discarded", discarded=self._queue.discarded, group=self.group)
        self._poll_when_due()

    # --- what the client reports ----------------------------------------------------

    def on_sent(self, message: OutgoingMessage, address: str, began_ms: int, result: SendResult) -> None:
        """Trace an answered send; a send without answer, or one that was refused, leaves no trace.

        Mirrors:
            `org.apache.rocketmq.client.trace.hook.SendMessageTraceHookImpl`.
        """
        fields = result.answer.ext_fields
        if message.topic.startswith(self._trace_topic) or fields.get(TRACE_SWITCH) == "false":
            return
        properties = message.properties
        sent = SentMessage(
            TracedMessage(without_namespace(message.topic), properties.get(UNIQ_KEY, ""), properties),
            self.group,
            fields.get(MSG_REGION) or DEFAULT_TRACE_REGION,
            began_ms,
            self._host.clock.now_ms() - began_ms,
            address,
            len(message.body),
            result.header().msg_id,
            result.status is SendStatus.SEND_OK,
        )
        self.append(pub_trace(sent))

    def on_transaction_end(self, ended: EndedTransaction) -> None:
        """Trace what a producer is about to send about a local transaction.

        Mirrors:
            `org.apache.rocketmq.client.trace.hook.EndTransactionTraceHookImpl`.
        """
        properties = ended.properties
        message = TracedMessage(without_namespace(ended.topic), properties.get(UNIQ_KEY, ""), properties)
        region_id = properties.get(MSG_REGION) or DEFAULT_TRACE_REGION
        now_ms = self._host.clock.now_ms()
        self.append(
            end_transaction_trace(
                message, self.group, region_id, ended.address, ended.state, now_ms, checked=ended.checked
            )
        )

    # --- the worker -----------------------------------------------------------------

    def _poll_when_due(self) -> None:
        wait_ms = self._queue.wait_ms(self._host.clock.now_ms())
        if wait_ms is not None:
            self._worker.scan_in_ms(wait_ms)

    async def _flush(self) -> None:
        now_ms = self._host.clock.now_ms()
        while self._queue.wait_ms(now_ms) == 0:
            self._submit(self._queue.take(now_ms))
        self._poll_when_due()

    def _submit(self, batch: list[TraceContext]) -> None:
        match self._threads.submit((batch, cause.get()), self._host.clock.now_ms()):
            case Admission.STARTED:
                self._busy += 1
                self._host.start_soon(self._work, batch, cause.get(), name="MQTraceSendThread")
            case Admission.REJECTED:
                self._host.log.error("flushTraceContext error: too many batches wait to be sent", group=self.group)

    async def _work(self, batch: list[TraceContext], began: int) -> None:
        while True:
            cause.set(began)
            await self._send_batch(batch)
            waiting = self._threads.finish()
            if waiting is None:
                break
            batch, began = waiting[1]
        self._busy -= 1
        if not self._busy:
            self._idle.set()
            self._idle = trio.Event()

    async def _send_batch(self, batch: list[TraceContext]) -> None:
        for body, keys in trace_messages(batch, self._trace_topic):
            properties = {KEYS: keys, UNIQ_KEY: self.ids.create()}
            brokers = await self._producer.brokers_of(self._trace_topic)
            message = OutgoingMessage(self._trace_topic, body.encode(), properties)
            self._host.start_soon(self._send, message, brokers, name="AsyncSenderExecutor")

    async def _send(self, message: OutgoingMessage, brokers: tuple[str, ...]) -> None:
        try:
            await self._producer.send_async(message, self._next_queue if brokers else None)
        except (RemotingError, BrokerError, ClientError) as error:
            self._host.log.warning("send trace data failed", topic=message.topic, error=str(error))

    def _next_queue(self, queues: tuple[MessageQueue, ...]) -> MessageQueue:
        """The next queue in turn."""
        if self._which is None:
            self._which = SendWhichQueue(self._host.rng("trace sendWhichQueue").randrange(_FIRST_INDEX_BOUND))
        return self._which.next_of(queues)
