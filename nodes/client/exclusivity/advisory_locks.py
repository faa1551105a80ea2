"""Advisory locks of a database: a consumer has them as long as it has its connection."""

from nodes.client.exclusivity.lent_queues import LentQueues, LockSetup
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_locks import AdvisoryLockHeader, AdvisoryLockRequestHeader
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.values import frozen


@frozen
class OwnLock:
    """An advisory lock of a connection of this consumer."""

    connection: int
    """Which one, counted by the consumer."""
    token: int


class ConnectionLocks(LentQueues[OwnLock]):
    """The locks of one connection.

    Nothing ends a lock but the end of its connection. A consumer asks the database now and then; without an answer it
    closes the connection and has no lock any more, and the database may not know that for hours.

    Mirrors:
        A session of PostgreSQL with `pg_try_advisory_lock`, whose driver checks the connection with `SELECT 1`.
    """

    def __init__(self, setup: LockSetup) -> None:
        super().__init__(setup)
        self._connection = 0

    async def _take(self, queue: MessageQueue) -> OwnLock | None:
        connection = self._connection
        try:
            answer = await self._ask(RequestCode.TRY_ADVISORY_LOCK, self._header(queue))
        except BrokerError as error:
            if error.code == ResponseCode.NO_PERMISSION:
                return None
            raise
        except RemotingError:
            self._drop_connection()
            raise
        if connection != self._connection:
            return None
        return OwnLock(connection, decode_header(AdvisoryLockHeader, answer.ext_fields).token)

    def _is_valid(self, held: OwnLock) -> bool:
        return held.connection == self._connection

    async def _look_after(self) -> None:
        """Ask whether the connection is still there."""
        if not self._held:
            return
        try:
            await self._ask(RequestCode.SELECT_1)
        except RemotingError as error:
            self._host.log.warning("the connection to the database has failed", error=str(error))
            self._drop_connection()

    def _give_back(self, queue: MessageQueue, held: OwnLock) -> None:
        if self._is_valid(held):
            self._send(RequestCode.ADVISORY_UNLOCK, self._header(queue))

    def _on_channel_closed(self, address: str) -> None:  # noqa: ARG002 - there is one
        """The database, or its kernel, has ended the connection."""
        self._end_connection()

    def _drop_connection(self) -> None:
        channel = self._client.channel(self._services[0])
        if channel is not None:
            channel.close()
        self._end_connection()

    def _end_connection(self) -> None:
        self._connection += 1
        for queue in list(self._held):
            self.holds(queue)

    def _header(self, queue: MessageQueue) -> AdvisoryLockRequestHeader:
        return AdvisoryLockRequestHeader(self._key(queue), self._client_id)
