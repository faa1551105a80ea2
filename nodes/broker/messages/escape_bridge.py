"""Where a broker's own messages go: into its own log, or as an acting master to another broker."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from nodes.broker.context import BrokerContext
from nodes.broker.shared import Log, Master
from nodes.broker.tables.store.escape import (
    EscapeWay,
    due_now,
    escape_way,
    not_waited_for,
    producer_group,
    put_status,
    specific_queue,
)
from nodes.broker.tables.store.put_message_result import PutMessageResult, PutMessageStatus
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import AUTO_CREATE_TOPIC, MASTER_ID, Message, MessageQueue
from nodes.protocol.properties import properties_to_text
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import invoke

SendToBroker = Callable[[str | None, str, Message, str], Awaitable[int | None]]
"""Address (None: unknown), brokerName, message, producer group -> code of the answer; raises if there is none."""


class RouteFinder(Protocol):
    """Routes to other brokers, as the bridge needs them."""

    async def try_to_find_queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """The queues to write to; the nameserver is asked only if none is known."""

    def next_queue(self, topic: str, avoiding: str | None) -> MessageQueue:
        """The next queue in turn, if possible not of the broker `avoiding`."""

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""


def escape_bridge(
    broker: BrokerContext,
    log: Log,
    routes: RouteFinder,
    send: SendToBroker,
    peek_master: Callable[[], Master | None] | None = None,
) -> "EscapeBridge":
    """The bridge of a broker, according to its role and its options."""
    way = escape_way(
        # In controller mode only the master writes of its own accord, which may be another broker by then.
        is_master=broker.broker_id == MASTER_ID or broker.config.is_elected,
        enable_slave_acting_master=broker.config.enable_slave_acting_master,
        enable_remote_escape=broker.config.enable_remote_escape,
    )
    group = f"InnerProducerGroup_{broker.broker_name}_{broker.broker_id}"
    return EscapeBridge(broker.broker_name, group, way, log, routes, send, peek_master)


class EscapeBridge:
    """Stores messages that the broker itself writes, such as delayed messages that are due.

    Args:
        broker_name: of this broker.
        inner_producer_group: producer group of messages that have none of their own.
        way: where messages may go.
        log: of this broker.
        routes: routes to other brokers.
        send: sends to another broker.
        peek_master: finds a master in the same container, into whose log a slave puts; None: there is no container.

    Mirrors:
        `org.apache.rocketmq.broker.failover.EscapeBridge`.
    """

    def __init__(
        self,
        broker_name: str,
        inner_producer_group: str,
        way: EscapeWay,
        log: Log,
        routes: RouteFinder,
        send: SendToBroker,
        peek_master: Callable[[], Master | None] | None = None,
    ) -> None:
        self._broker_name = broker_name
        self._inner_producer_group = inner_producer_group
        self._way = way
        self._log = log
        self._peek_master = peek_master
        self._routes = routes
        self._send = send

    @property
    def is_shut(self) -> bool:
        """Whether it refuses every message, for as long as the process lives."""
        return self._way is EscapeWay.NONE and self._peek_master is None

    async def put_message(self, message: Message) -> PutMessageStatus:
        """Put a message; another broker must have another name, and must answer SUCCESS."""
        if not self._goes_out():
            return await self._put_here(message)
        return put_status(await self.put_message_to_remote_broker(not_waited_for(message)))

    async def async_put_message(self, message: Message) -> PutMessageStatus:
        """Put a message into the next queue in turn, of any broker.

        If the broker's address is unknown, the send goes to a nameserver, which refuses it.
        """
        if not self._goes_out():
            return await self._put_here(message)
        if not await self._routes.try_to_find_queues(message.topic):
            return PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL
        try:
            return put_status(
                await self._send_to(self._routes.next_queue(message.topic, None), due_now(not_waited_for(message)))
            )
        except (RemotingError, BrokerError):
            return PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL

    async def put_message_to_specific_queue(self, message: Message) -> PutMessageResult:
        """Like `async_put_message_to_specific_queue`; UNKNOWN_ERROR if there is no answer."""
        try:
            return await self.async_put_message_to_specific_queue(message)
        except (RemotingError, BrokerError):
            return PutMessageResult(PutMessageStatus.UNKNOWN_ERROR)

    async def async_put_message_to_specific_queue(self, message: Message) -> PutMessageResult:
        """Put a message into its queue, or into a fixed one, chosen by topic and by the broker that stored it first.

        Returns:
            The result; without the stored message, whatever its status, if another broker was asked.

        Raises:
            RemotingError, BrokerError: the other broker did not answer, or refused.
        """
        if not self._goes_out():
            log = self._local()
            if log is None:
                return PutMessageResult(PutMessageStatus.SERVICE_NOT_AVAILABLE)
            return await log.put(message)
        queues = await self._routes.try_to_find_queues(message.topic)
        if not queues:
            return PutMessageResult(PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL)
        queue = specific_queue(queues, message.topic, message.store_host)
        return PutMessageResult(put_status(await self._send_to(queue, not_waited_for(message))))

    async def put_message_to_remote_broker(self, message: Message, broker_name: str = "") -> int | None:
        """Send a message to a broker of another name.

        Args:
            broker_name: the broker; empty: the next in turn.

        Returns:
            SUCCESS; None: there is no broker to send to, or it did not answer SUCCESS.
        """
        if broker_name == self._broker_name or not await self._routes.try_to_find_queues(message.topic):
            return None
        queue = MessageQueue(message.topic, broker_name, message.queue_id)
        if not broker_name:
            queue = self._routes.next_queue(message.topic, self._broker_name)
        address = self._routes.find_broker_address_in_publish(queue.broker_name)
        if queue.broker_name == self._broker_name or address is None:
            return None
        try:
            code = await self._send_to(queue, message)
        except (RemotingError, BrokerError):
            return None
        return code if put_status(code) is PutMessageStatus.PUT_OK else None

    def _local(self) -> Log | None:
        """The log of a master in this process; None: there is none."""
        if self._way is EscapeWay.LOCAL:
            return self._log
        master = None if self._peek_master is None else self._peek_master()
        return None if master is None else master.log

    def _goes_out(self) -> bool:
        return self._way is EscapeWay.REMOTE and self._local() is None

    async def _put_here(self, message: Message) -> PutMessageStatus:
        log = self._local()
        return PutMessageStatus.SERVICE_NOT_AVAILABLE if log is None else (await log.put_due(message)).status

    async def _send_to(self, queue: MessageQueue, message: Message) -> int | None:
        address = self._routes.find_broker_address_in_publish(queue.broker_name)
        group = producer_group(message, self._inner_producer_group)
        return await self._send(address, queue.broker_name, message._replace(queue_id=queue.queue_id), group)


_SEND_TIMEOUT_MS = 3_000
_DEFAULT_TOPIC_QUEUE_NUMS = 8
STORED_CODES = (0, 10, 11, 12)
"""SUCCESS, and the codes of messages that are stored but not flushed or replicated in time."""


class BrokerOuterApi:
    """Sends messages to other brokers.

    Mirrors:
        `org.apache.rocketmq.broker.out.BrokerOuterAPI#sendMessageToSpecificBroker`.
    """

    def __init__(self, client: RpcClient, nameservers: Nameservers) -> None:
        self._client = client
        self._nameservers = nameservers

    async def send_message_to_specific_broker(
        self, address: str | None, broker_name: str, message: Message, group: str
    ) -> int:
        """Send a message; without an address it goes to a nameserver, as every request without address does.

        Returns:
            The code with which it was stored.

        Raises:
            RemotingError: no answer.
            BrokerError: it was refused.
        """
        header = headers.SendMessageRequestHeaderV2(
            group,
            message.topic,
            AUTO_CREATE_TOPIC,
            _DEFAULT_TOPIC_QUEUE_NUMS,
            message.queue_id,
            message.sys_flag,
            message.born_timestamp,
            message.flag,
            properties_to_text(message.properties),
            message.reconsume_times,
            bname=broker_name,
        )
        code = RequestCode.SEND_MESSAGE_V2
        if address is None:
            answer = await self._nameservers.call(code, header, message.body, timeout_ms=_SEND_TIMEOUT_MS)
        else:
            answer = await invoke(self._client, address, code, header, message.body, timeout_ms=_SEND_TIMEOUT_MS)
        if answer.code not in STORED_CODES:
            raise BrokerError(answer.code, answer.remark)
        return answer.code
