"""Locks of queues as records with versions: whoever sees the same version for too long takes the lock over."""

from nodes.client.exclusivity.lent_queues import LentQueues, LockSetup
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_locks import ItemHeader, ItemKeyHeader, PutItemRequestHeader
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.values import frozen

_VERSIONS = 1 << 62
"""Record versions are drawn among so many; the real client draws UUIDs."""


@frozen
class OwnRecord:
    """A record of this consumer."""

    token: int
    record_version: int
    looked_up_ms: int
    """When it was last written, by the clock of the consumer that never jumps."""


@frozen
class _Seen:
    """The record of another consumer."""

    record_version: int
    since_ms: int
    """When this version was first seen."""


class RecordVersions(LentQueues[OwnRecord]):
    """Locks without any clock at the store: only time that a consumer has measured itself counts.

    A consumer that waits takes a lock over when it was released, or when it has seen the same version for as long as
    the owner has written down.
    An owner that was suspended for longer finds out with its next heartbeat, or when it looks at its own clock.

    Mirrors:
        `com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient` (`tryAcquireLock`, `LockItem#isExpired`, the
        heartbeat thread).
    """

    def __init__(self, setup: LockSetup) -> None:
        super().__init__(setup)
        self._seen: dict[MessageQueue, _Seen] = {}
        self._versions = self._host.rng("recordVersionNumber")

    async def _take(self, queue: MessageQueue) -> OwnRecord | None:
        found = await self._read(queue)
        if found is None:
            self._seen.pop(queue, None)
            return await self._write(queue, 1, None)
        if not self._is_abandoned(queue, found):
            return None
        return await self._write(queue, found.token + 1, found.record_version)

    def _is_abandoned(self, queue: MessageQueue, found: ItemHeader) -> bool:
        """Whether it was released, or has had one version for the lease duration that its owner has written down."""
        if not found.owner:
            return True
        seen, now_ms = self._seen.get(queue), self._elapsed_ms()
        if seen is None or seen.record_version != found.record_version:
            self._seen[queue] = _Seen(found.record_version, now_ms)
            return False
        return now_ms - seen.since_ms > found.lease_duration_ms

    def _is_valid(self, held: OwnRecord) -> bool:
        return self._elapsed_ms() - held.looked_up_ms <= self._config.lease_duration_ms

    async def _look_after(self) -> None:
        """Write another version into each record; without an answer it stays until its own time is over."""
        for queue, held in list(self._held.items()):
            if queue not in self._held or not self.holds(queue):
                continue
            try:
                renewed = await self._write(queue, held.token, held.record_version)
            except RemotingError as error:
                self._host.log.warning("the heartbeat of a lock failed", queue=str(queue), error=str(error))
                continue
            if renewed is None:
                self._host.log.warning("someone else acquired the lock", queue=str(queue))
                self.lose(queue)
            elif queue in self._held:
                self._hold(queue, renewed)

    def _give_back(self, queue: MessageQueue, held: OwnRecord) -> None:
        self._send(RequestCode.PUT_ITEM, self._record(queue, "", held.token, held.record_version))

    async def _read(self, queue: MessageQueue) -> ItemHeader | None:
        try:
            answer = await self._ask(RequestCode.GET_ITEM, ItemKeyHeader(self._key(queue)))
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return decode_header(ItemHeader, answer.ext_fields)

    async def _write(self, queue: MessageQueue, token: int, expected_version: int | None) -> OwnRecord | None:
        """Write a record of this consumer; None: the condition has failed."""
        now_ms = self._elapsed_ms()
        header = self._record(queue, self._client_id, token, expected_version)
        try:
            await self._ask(RequestCode.PUT_ITEM, header)
        except BrokerError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                return None
            raise
        return OwnRecord(token, header.record_version, now_ms)

    def _record(
        self, queue: MessageQueue, owner: str, token: int, expected_version: int | None
    ) -> PutItemRequestHeader:
        version, duration_ms = self._versions.randrange(_VERSIONS), self._config.lease_duration_ms
        return PutItemRequestHeader(self._key(queue), owner, version, duration_ms, token, expected_version)
