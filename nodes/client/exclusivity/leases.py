"""Leases of queues: granted by a lock service until an instant, and renewed before it."""

from nodes.client.exclusivity.lent_queues import LentQueues
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_locks import (
    AcquireLeaseRequestHeader,
    LeaseHeader,
    ReleaseLeaseRequestHeader,
    RenewLeaseRequestHeader,
)
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.values import frozen


@frozen
class QueueLease:
    """A lease as the service granted it."""

    token: int
    expires_ms: int
    """By the clock that the kind of lease compares it with."""


class QueueLeases(LentQueues[QueueLease]):
    """Leases whose end, an instant of the service's wall clock, is compared with the wall clock of the consumer.

    What the two clocks differ by, a consumer without answers holds a queue too long or too short.
    """

    async def _take(self, queue: MessageQueue) -> QueueLease | None:
        asked_ms = self._elapsed_ms()
        header = AcquireLeaseRequestHeader(self._key(queue), self._client_id, self._config.lease_duration_ms)
        return self._granted(await self._ask(RequestCode.ACQUIRE_LEASE, header), asked_ms)

    def _is_valid(self, held: QueueLease) -> bool:
        return self._host.clock.now_ms() < held.expires_ms

    async def _look_after(self) -> None:
        """Renew the leases one after the other; without an answer a lease stays until it expires."""
        for queue, held in list(self._held.items()):
            if queue not in self._held or not self.holds(queue):
                continue
            header = RenewLeaseRequestHeader(self._key(queue), held.token, self._config.lease_duration_ms)
            asked_ms = self._elapsed_ms()
            try:
                answer = await self._ask(RequestCode.RENEW_LEASE, header)
            except RemotingError as error:
                self._host.log.warning("renewing a lease failed", queue=str(queue), error=str(error))
            except BrokerError as error:
                self._host.log.warning("a lease was lost", queue=str(queue), error=str(error))
                self.lose(queue)
            else:
                if queue in self._held:
                    self._hold(queue, self._granted(answer, asked_ms))

    def _give_back(self, queue: MessageQueue, held: QueueLease) -> None:
        self._send(RequestCode.RELEASE_LEASE, ReleaseLeaseRequestHeader(self._key(queue), held.token))

    def _granted(self, answer: Command, asked_ms: int) -> QueueLease:  # noqa: ARG002 - of blobs
        granted = decode_header(LeaseHeader, answer.ext_fields)
        return QueueLease(granted.token, granted.expires_ms)


class BlobLeases(QueueLeases):
    """Leases of blobs: a consumer counts their duration itself, from the instant at which it asked.

    Mirrors:
        `BlobLeaseClient` of the Azure SDKs, whose users renew well before the duration is over.
    """

    def _is_valid(self, held: QueueLease) -> bool:
        return self._elapsed_ms() < held.expires_ms

    def _granted(self, answer: Command, asked_ms: int) -> QueueLease:
        token = decode_header(LeaseHeader, answer.ext_fields).token
        return QueueLease(token, asked_ms + self._config.lease_duration_ms)
