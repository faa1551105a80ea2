"""Redlock: a lock is had by the consumer that most of several independent nodes have lent it."""

from collections.abc import Mapping

import trio

from nodes.client.exclusivity.lent_queues import LentQueues
from nodes.protocol.codes import RequestCode
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

_CLOCK_DRIFT_PERCENT, _CLOCK_DRIFT_MS = 1, 2
_Request = AcquireLeaseRequestHeader | RenewLeaseRequestHeader


@frozen
class Majority:
    """What the nodes have granted."""

    grants: Mapping[str, int]
    """Node -> number of its grant; stands for the random value of a key, which shows whose it is."""
    valid_until_ms: int
    """By the clock of the consumer that never jumps."""
    token: None = None
    """There is no number that grows from holder to holder."""


class Redlock(LentQueues[Majority]):
    """Asks all nodes at the same time, and has the lock if most of them have granted it in time.

    Mirrors:
        The algorithm in Redis's documentation ("Distributed Locks with Redis"), extension included.
    """

    async def _take(self, queue: MessageQueue) -> Majority | None:
        key = self._key(queue)
        header = AcquireLeaseRequestHeader(key, self._client_id, self._config.lease_duration_ms)
        asked_ms = self._elapsed_ms()
        grants = await self._ask_all(dict.fromkeys(self._services, (RequestCode.ACQUIRE_LEASE, header)))
        return self._majority(queue, grants, asked_ms)

    def _is_valid(self, held: Majority) -> bool:
        return self._elapsed_ms() < held.valid_until_ms

    async def _look_after(self) -> None:
        """Extend the locks one after the other; one that most nodes do not extend is lost at once."""
        for queue, held in list(self._held.items()):
            if queue not in self._held or not self.holds(queue):
                continue
            key, duration_ms = self._key(queue), self._config.lease_duration_ms
            asked_ms = self._elapsed_ms()
            renewals = {
                node: (RequestCode.RENEW_LEASE, RenewLeaseRequestHeader(key, token, duration_ms))
                for node, token in held.grants.items()
            }
            extended = self._majority(queue, await self._ask_all(renewals), asked_ms)
            if queue not in self._held:
                continue
            if extended is None:
                self.lose(queue)
            else:
                self._hold(queue, extended)

    def _give_back(self, queue: MessageQueue, held: Majority) -> None:
        self._release(queue, held.grants)

    def _majority(self, queue: MessageQueue, grants: Mapping[str, int], asked_ms: int) -> Majority | None:
        """The lock, if most nodes granted it before its time was over; else what they granted is given back."""
        duration_ms = self._config.lease_duration_ms
        drift_ms = duration_ms * _CLOCK_DRIFT_PERCENT // 100 + _CLOCK_DRIFT_MS
        valid_until_ms = asked_ms + duration_ms - drift_ms
        if len(grants) > len(self._services) // 2 and self._elapsed_ms() < valid_until_ms:
            return Majority(grants, valid_until_ms)
        self._release(queue, grants)
        return None

    def _release(self, queue: MessageQueue, grants: Mapping[str, int]) -> None:
        for node, token in grants.items():
            self._send(RequestCode.RELEASE_LEASE, ReleaseLeaseRequestHeader(self._key(queue), token), node)

    async def _ask_all(self, requests: Mapping[str, tuple[RequestCode, _Request]]) -> Mapping[str, int]:
        """Node -> number of its grant, of the nodes that granted."""
        granted: dict[str, int] = {}

        async def ask(
            node: str, code: RequestCode, header: AcquireLeaseRequestHeader | RenewLeaseRequestHeader
        ) -> None:
            try:
                answer = await self._ask(code, header, node)
            except (RemotingError, BrokerError) as error:
                self._host.log.info("a node does not grant a lock", node=node, error=str(error))
            else:
                granted[node] = decode_header(LeaseHeader, answer.ext_fields).token

        async with trio.open_nursery() as nursery:
            for node, (code, header) in requests.items():
                nursery.start_soon(ask, node, code, header)
        return {node: granted[node] for node in requests if node in granted}
