"""Locks of queues as ephemeral nodes of a session, which ends when its client is silent."""

from nodes.client.exclusivity.lent_queues import LentQueues, LockSetup
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_locks import (
    NodeHeader,
    NodeRequestHeader,
    OpenSessionRequestHeader,
    SessionHeader,
    SessionIdHeader,
)
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.values import frozen


@frozen
class OwnNode:
    """An ephemeral node of this consumer."""

    session_id: int
    token: int


class SessionLocks(LentQueues[OwnNode]):
    """One session of a consumer, and its nodes.

    A client that has heard nothing for two thirds of the time-out gives the connection up and counts as suspended: it
    consumes nothing until the service answers again, and then goes on with the nodes that it still has.

    Mirrors:
        `org.apache.zookeeper.ClientCnxn#SendThread` (`readTimeout`), and a user of Curator's `InterProcessMutex` that
        stops at `ConnectionState.SUSPENDED`.
    """

    def __init__(self, setup: LockSetup) -> None:
        super().__init__(setup)
        self._session: SessionHeader | None = None
        self._heard_ms = 0
        """When the service last answered, by the clock of the consumer that never jumps."""

    async def _take(self, queue: MessageQueue) -> OwnNode | None:
        session = self._session or await self._open()
        asked_ms = self._elapsed_ms()
        try:
            answer = await self._ask(RequestCode.CREATE_NODE, NodeRequestHeader(session.session_id, self._key(queue)))
        except BrokerError as error:
            if error.code != ResponseCode.NO_PERMISSION:
                self._expire()
            return None
        self._heard_ms = asked_ms
        return OwnNode(session.session_id, decode_header(NodeHeader, answer.ext_fields).czxid)

    def _is_valid(self, held: OwnNode) -> bool:
        session = self._session
        if session is None or session.session_id != held.session_id:
            return False
        return self._elapsed_ms() - self._heard_ms <= session.timeout_ms * 2 // 3

    async def _look_after(self) -> None:
        """Ping; a session that has expired takes all its nodes along."""
        if self._session is None:
            return
        asked_ms = self._elapsed_ms()
        try:
            await self._ask(RequestCode.PING_SESSION, SessionIdHeader(self._session.session_id))
        except RemotingError as error:
            self._host.log.warning("the lock service does not answer", error=str(error))
        except BrokerError as error:
            self._host.log.warning("the session is over", error=str(error))
            self._expire()
        else:
            self._heard_ms = asked_ms
        for queue in list(self._held):
            self.holds(queue)

    def _give_back(self, queue: MessageQueue, held: OwnNode) -> None:
        self._send(RequestCode.DELETE_NODE, NodeRequestHeader(held.session_id, self._key(queue)))

    def release_all(self) -> None:
        """Close the session, which ends all nodes."""
        super().release_all()
        if self._session is not None:
            self._send(RequestCode.CLOSE_SESSION, SessionIdHeader(self._session.session_id))

    async def _open(self) -> SessionHeader:
        header = OpenSessionRequestHeader(self._client_id, self._config.lease_duration_ms)
        asked_ms = self._elapsed_ms()
        answer = await self._ask(RequestCode.OPEN_SESSION, header)
        self._session, self._heard_ms = decode_header(SessionHeader, answer.ext_fields), asked_ms
        return self._session

    def _expire(self) -> None:
        self._session = None
        for queue in list(self._held):
            self.lose(queue)
