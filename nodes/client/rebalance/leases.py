"""Leases of queues, as a consumer holds them: granted by a lock service, judged by the consumer's own clock."""

from collections.abc import Callable

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.client.instance.client_instance import ClientInstance
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import (
    AcquireLeaseRequestHeader,
    LeaseHeader,
    ReleaseLeaseRequestHeader,
    RenewLeaseRequestHeader,
)
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError, invoke, invoke_oneway, succeeded
from nodes.threads import ScheduledThread
from nodes.values import frozen

_TIMEOUT_MS = 1_000


@frozen
class _Held:
    """A lease as the service granted it."""

    token: int
    expires_ms: int
    """By the wall clock of the service, and compared with that of the consumer."""


class QueueLeases:
    """The leases of one consumer; implements `nodes.client.rebalance.exclusivity.QueueExclusivity`.

    What the clocks of service and consumer differ by, a consumer without answers holds a queue too long or too short.
    A message that is in process when its lease ends is not interrupted.

    Args:
        service: `ip:port` of the lock service.
        on_lost: called with a queue whose lease was held, and is not any more.

    Emits:
        LEASE whenever a lease was granted, released or lost.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        group: str,
        service: str,
        on_lost: Callable[[MessageQueue], None],
    ) -> None:
        self._host = instance.host
        self._client_id = instance.client_id
        self._config = config
        self._group = group
        self._service = service
        self._on_lost = on_lost
        # The client of the lock service shares no connection with RocketMQ's.
        self._client = RpcClient(self._host, config)
        self._held: dict[MessageQueue, _Held] = {}

    def start(self) -> None:
        """Start to renew."""
        thread = ScheduledThread(self._host, "renewLeases")
        interval_ms = self._config.lease_renew_interval_ms
        thread.at_fixed_rate("renewLeases", self._renew_all, interval_ms, interval_ms)
        thread.start()

    async def acquire(self, queue: MessageQueue) -> bool:
        """Ask for the lease of a queue; returns whether it was granted."""
        header = AcquireLeaseRequestHeader(self._key(queue), self._client_id, self._config.lease_duration_ms)
        try:
            answer = await self._ask(RequestCode.ACQUIRE_LEASE, header)
        except (RemotingError, BrokerError) as error:
            self._host.log.info("no lease", queue=str(queue), error=str(error))
            return False
        self._hold(queue, answer)
        return True

    def holds(self, queue: MessageQueue) -> bool:
        """Whether the lease of a queue has not expired yet, by the clock of this consumer; one that has is lost."""
        held = self._held.get(queue)
        if held is None:
            return False
        if self._host.clock.now_ms() < held.expires_ms:
            return True
        self._lose(queue)
        return False

    def release(self, queue: MessageQueue) -> None:
        """Give a lease back, without waiting for the answer."""
        held = self._held.pop(queue, None)
        if held is not None:
            header = ReleaseLeaseRequestHeader(self._key(queue), held.token)
            invoke_oneway(self._client, self._service, RequestCode.RELEASE_LEASE, header)
            self._host.record(Belief(BeliefKind.LEASE, self._key(queue), None))

    def release_all(self) -> None:
        """Give every lease back."""
        for queue in list(self._held):
            self.release(queue)

    async def _renew_all(self) -> None:
        """Renew the leases one after the other; without an answer a lease stays until it expires."""
        for queue, held in list(self._held.items()):
            if queue not in self._held or not self.holds(queue):
                continue
            header = RenewLeaseRequestHeader(self._key(queue), held.token, self._config.lease_duration_ms)
            try:
                answer = await self._ask(RequestCode.RENEW_LEASE, header)
            except RemotingError as error:
                self._host.log.warning("renewing a lease failed", queue=str(queue), error=str(error))
            except BrokerError as error:
                self._host.log.warning("a lease was lost", queue=str(queue), error=str(error))
                self._lose(queue)
            else:
                if queue in self._held:
                    self._hold(queue, answer)

    async def _ask(self, code: RequestCode, header: "attrs.AttrsInstance") -> Command:
        """The answer of the service.

        Raises:
            RemotingError, BrokerError: there was none, or it refused.
        """
        return succeeded(await invoke(self._client, self._service, code, header, timeout_ms=_TIMEOUT_MS))

    def _hold(self, queue: MessageQueue, answer: Command) -> None:
        granted = decode_header(LeaseHeader, answer.ext_fields)
        known = self._held.get(queue)
        self._held[queue] = _Held(granted.token, granted.expires_ms)
        if known is None or known.token != granted.token:
            value = {"holder": self._client_id, "token": granted.token}
            self._host.record(Belief(BeliefKind.LEASE, self._key(queue), value, self._service))

    def _lose(self, queue: MessageQueue) -> None:
        if self._held.pop(queue, None) is not None:
            self._host.record(Belief(BeliefKind.LEASE, self._key(queue), None))
            self._on_lost(queue)

    def _key(self, queue: MessageQueue) -> str:
        return f"{self._group}/{queue.topic}/{queue.broker_name}/{queue.queue_id}"
