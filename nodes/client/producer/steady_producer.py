"""A producer process: an application that sends at a steady rate, one message at a time."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.default_producer import ClientError, DefaultProducer, OutgoingMessage, SendStatus
from nodes.client.producer.keys import KeyDraws, MessageKeys, TopicPartitions
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.client.producer.message_traces import TraceDispatcher, TraceKind, TraceProducers
from nodes.client.producer.transactions import TransactionProducer, UniqIds
from nodes.client.tables.queue_selectors import SelectorName, selector_of
from nodes.config import ProducerConfig
from nodes.host import Host
from nodes.protocol.properties import DELAY_TIME_LEVEL, INSTANCE_ID, KEYS, TAGS, TIMER_DELAY_MS, UNIQ_KEY
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.threads import ScheduledThread
from nodes.values import frozen


class _SteadyListener:
    def __init__(self, host: Host, does: LocalTransactions) -> None:
        self._host = host
        self._does = does

    async def execute_local_transaction(self) -> LocalTransactionState:
        if self._does.duration_ms:
            await self._host.sleep_ms(self._does.duration_ms)
        return self._does.state

    async def check_local_transaction(self) -> LocalTransactionState:
        return self._does.check_state or self._does.state


@frozen
class ProducerSetup:
    """The group, the options, the servers and the messages of a producer."""

    group: str
    config: ProducerConfig
    nameservers: tuple[str, ...]
    topics: tuple[str, ...]
    """Where it sends: one topic, or those of `partitions`."""
    rate_per_s: int
    tags: tuple[str, ...] = ()
    """Tags of the messages, in turn; empty: messages have none."""
    keys: MessageKeys | None = None
    """Keys of the messages; None: messages have none."""
    select: SelectorName | None = None
    """Choice of the queues; None: queues take turns, and a failed send is repeated at another broker."""
    partitions: TopicPartitions | None = None
    """Choice of the topic, by the key; None: there is one topic."""
    transactions: LocalTransactions | None = None
    """Send each message in a transaction, and wait for its end before the next; None: ordinary sends."""
    messages: int = 0
    """After so many that a broker has accepted it sends no more; 0: without end."""
    delay_level: int = 0
    """Of each message; 0: none."""
    timer_ms: int = 0
    """How much later each message shall be delivered, as a timed message; 0: at once."""

    def delay_properties(self) -> dict[str, str]:
        """The properties that delay each message."""
        level = {DELAY_TIME_LEVEL: str(self.delay_level)} if self.delay_level else {}
        timer = {TIMER_DELAY_MS: str(self.timer_ms)} if self.timer_ms else {}
        return {**level, **timer}


class SteadyProducer:
    """Sends a message every `1 / rate_per_s` seconds, without end or until there are enough.

    All go to one topic, or each to one of several by its key. A send that hangs delays the next ones, which then follow
    back to back.

    Mirrors:
        `org.apache.rocketmq.client.producer.DefaultMQProducer`, `TransactionMQProducer` under an application's timer.
    """

    def __init__(self, host: Host, setup: ProducerSetup) -> None:
        config, group = setup.config, setup.group
        self._host = host
        self._group = group
        self._topic, self._partitions = setup.topics[0], setup.partitions
        self._rate_per_s = setup.rate_per_s
        self._tags = setup.tags
        self.instance = ClientInstance(host, config, setup.nameservers)
        self.producer = DefaultProducer(self.instance, config, group)
        self._keys = None if setup.keys is None else KeyDraws(setup.keys, host.rng("keys"))
        self._selector = (
            None
            if setup.select is None
            else selector_of(setup.select, host.rng("SelectMessageQueueByRandom").randrange)
        )
        self._send = self.producer.send
        self._traces = self._trace_dispatcher(setup) if config.enable_trace else None
        if setup.transactions is not None:
            listener = _SteadyListener(host, setup.transactions)
            transactional = TransactionProducer(self.instance, self.producer, group, listener)
            self.instance.on_check_transaction_state = transactional.check_transaction_state
            self._send = transactional.send_message_in_transaction
            if self._traces is not None:
                transactional.on_end = self._traces.on_transaction_end
        self._sent = self._accepted = 0
        self._messages = setup.messages
        self._always = setup.delay_properties()
        if config.namespace is not None:
            self._always[INSTANCE_ID] = config.namespace
        self._ids = UniqIds(host)
        self._timer = ScheduledThread(host, "application")
        self._stopping = trio.Event()

    def _trace_dispatcher(self, setup: ProducerSetup) -> TraceDispatcher:
        """What sends traces of its messages."""
        traces = TraceDispatcher(
            self._host, setup.config, setup.nameservers, setup.group, TraceKind.PRODUCE, TraceProducers(self._host)
        )
        self.producer.on_sent = traces.on_sent
        return traces

    async def main(self) -> None:
        """Start, send, shut down."""
        self.instance.register(self.producer)
        await self.instance.start()
        await self.instance.heartbeat_all()
        if self._traces is not None:
            await self._traces.start()
        self._timer.at_fixed_rate("send", self._send_one, 0, 1_000 / self._rate_per_s)
        self._timer.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self.instance.unregister(self.producer, self._group, is_consumer=False)
        self.instance.rpc.close_all()
        if self._traces is not None:
            await self._traces.shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    # --- sending --------------------------------------------------------------------

    async def _send_one(self) -> None:
        self._sent += 1
        properties = {TAGS: self._tags[(self._sent - 1) % len(self._tags)]} if self._tags else {}
        key = ""
        if self._keys is not None:
            key = properties[KEYS] = self._keys.draw()
        topic = self._topic if self._partitions is None else self._partitions.topic_of(key)
        if self._always or self._traces is not None:
            # While it waits, and in traces, only its id distinguishes a message; RocketMQ's producers give one to each.
            properties |= {UNIQ_KEY: self._ids.create(), **self._always}
        message = OutgoingMessage(topic, str(self._sent).encode(), properties)
        try:
            if self._selector is None:
                result = await self._send(message)
            else:
                result = await self.producer.send_selected(message, self._selector, key)
        except (RemotingError, BrokerError, ClientError) as error:
            self._host.log.warning("send failed", topic=topic, error=str(error))
        else:
            self._accepted += 1
            if self._accepted == self._messages:
                self._timer.stop()
            if result.status is not SendStatus.SEND_OK:
                self._host.log.warning("sent, but not kept as asked", topic=topic, status=result.status.value)
