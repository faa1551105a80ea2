"""Locks of ordered queues, as one client requests, renews and releases them."""

from collections.abc import Callable, Iterable, Mapping

from nodes.beliefs import Ownership, OwnershipEvent
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.tables.process_queue import ProcessQueue
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import MASTER_ID, MessageQueue
from nodes.protocol.registry import decode_body
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke, invoke_oneway, succeeded

_LOCK_TIMEOUT_MS = 1_000


class OrderLocks:
    """Locks queues at the broker with id 0 of their group; without such a broker in the route it asks none.

    Args:
        process_queues: the process queue table; answers change the flags of its entries.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceImpl#lock`, `#lockAll`, `#unlock`, `#unlockAll`.

    Emits:
        LOCKED and UNLOCKED whenever an answer or a release changes the locks of the client. Expiry is not
        recorded: a lock is void 30 s after the last LOCKED or renewal.
    """

    def __init__(
        self, instance: ClientInstance, group: str, process_queues: Mapping[MessageQueue, ProcessQueue]
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._group = group
        self._process_queues = process_queues
        self._held: dict[MessageQueue, None] = {}

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a queue or renew its lock; returns whether this client holds it now."""
        locked = await self._ask(self._instance.routes.broker_name_of(queue), (queue,)) or ()
        for granted in locked:
            self._grant(granted)
        return queue in locked

    async def lock_all(self) -> None:
        """Lock or renew every queue that is not dropped, broker by broker.

        A queue that is missing in the answer is marked as not locked; without an answer nothing changes.
        """
        for broker_name, queues in queues_by_broker(self._process_queues, self._instance.routes.broker_name_of).items():
            locked = await self._ask(broker_name, queues)
            if locked is None:
                continue
            for queue in queues:
                if queue in locked:
                    self._grant(queue)
                else:
                    self._host.log.warning("the message queue locked Failed", queue=str(queue))
                    self._lose(queue)

    def unlock(self, queue: MessageQueue) -> None:
        """Unlock a queue, without waiting for the answer."""
        address = self._address(self._instance.routes.broker_name_of(queue))
        if address is not None:
            invoke_oneway(self._instance.rpc, address, RequestCode.UNLOCK_BATCH_MQ, None, self._body((queue,)))
        self._lose(queue)

    async def unlock_all(self) -> None:
        """Unlock all queues that are not dropped, and wait for each broker's answer."""
        for broker_name, queues in queues_by_broker(self._process_queues, self._instance.routes.broker_name_of).items():
            address = self._address(broker_name)
            if address is None:
                continue
            try:
                answer = await invoke(
                    self._instance.rpc,
                    address,
                    RequestCode.UNLOCK_BATCH_MQ,
                    None,
                    self._body(queues),
                    timeout_ms=_LOCK_TIMEOUT_MS,
                )
                succeeded(answer)
            except (RemotingError, BrokerError) as error:
                self._host.log.warning("unlockBatchMQ exception", broker=broker_name, error=str(error))
                continue
            for queue in queues:
                self._lose(queue)

    async def _ask(self, broker_name: str, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...] | None:
        """The queues that this client holds now; None if no broker is known, or it did not answer."""
        address = self._address(broker_name)
        if address is None:
            return None
        try:
            answer = await invoke(
                self._instance.rpc,
                address,
                RequestCode.LOCK_BATCH_MQ,
                None,
                self._body(queues),
                timeout_ms=_LOCK_TIMEOUT_MS,
            )
            return decode_body(LockBatchResponseBody, succeeded(answer).body).lock_ok_mq_set
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("lockBatchMQ exception", broker=broker_name, error=str(error))
            return None

    def _address(self, broker_name: str) -> str | None:
        routes = self._instance.routes
        found = routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, only_this_broker=True)
        return None if found is None else found.address

    def _body(self, queues: Iterable[MessageQueue]) -> LockBatchRequestBody:
        return LockBatchRequestBody(self._group, self._instance.client_id, tuple(sorted(queues)))

    def _grant(self, queue: MessageQueue) -> None:
        process_queue = self._process_queues.get(queue)
        if process_queue is not None:
            process_queue.locked = True
            process_queue.last_lock_ms = self._host.clock.now_ms()
        if queue not in self._held:
            self._held[queue] = None
            self._record(OwnershipEvent.LOCKED, queue)

    def _lose(self, queue: MessageQueue) -> None:
        process_queue = self._process_queues.get(queue)
        if process_queue is not None:
            process_queue.locked = False
        if queue in self._held:
            del self._held[queue]
            self._record(OwnershipEvent.UNLOCKED, queue)

    def _record(self, event: OwnershipEvent, queue: MessageQueue) -> None:
        self._host.record(Ownership(event, self._group, queue.topic, queue.broker_name, queue.queue_id))


def queues_by_broker(
    process_queues: Mapping[MessageQueue, ProcessQueue], broker_name_of: Callable[[MessageQueue], str]
) -> Mapping[str, tuple[MessageQueue, ...]]:
    """The queues that are not dropped: brokerName -> its queues, both sorted."""
    found: dict[str, list[MessageQueue]] = {}
    for queue in sorted(process_queues):
        if not process_queues[queue].dropped:
            found.setdefault(broker_name_of(queue), []).append(queue)
    return {broker_name: tuple(found[broker_name]) for broker_name in sorted(found)}
