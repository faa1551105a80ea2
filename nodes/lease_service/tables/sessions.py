"""Sessions that end when their client is silent, and nodes that end with their session."""

from collections.abc import Mapping

import attrs

from nodes.config.tables import MAX_GROUPS, MAX_QUEUES
from nodes.protocol.errors import require_room
from nodes.values import frozen


@attrs.define
class ClientSession:
    """One session of a client."""

    holder: str
    timeout_ms: int
    expires_ms: int
    """A multiple of the tick time, by a clock that never jumps."""


@frozen
class EphemeralNode:
    """A node that lives as long as its session."""

    session_id: int
    czxid: int
    """Number of the transaction that created it; larger than that of every earlier one."""


class SessionTable:
    """The sessions of one ensemble.

    Args:
        tick_time_ms: sessions expire at multiples of it.
        sessions: (session id, holder, time-out) of an earlier process; their time begins again, as after an election.
        nodes: of an earlier process.
        last_zxid: of the earlier process.

    Mirrors:
        `org.apache.zookeeper.server.SessionTrackerImpl`, `ExpiryQueue`, and ephemeral nodes of `DataTree`.
    """

    def __init__(
        self,
        tick_time_ms: int,
        now_ms: int,
        sessions: Mapping[int, tuple[str, int]] | None = None,
        nodes: Mapping[str, EphemeralNode] | None = None,
        last_zxid: int = 0,
    ) -> None:
        self._tick_time_ms = tick_time_ms
        self._sessions = {
            number: ClientSession(holder, timeout_ms, self._expiry_ms(timeout_ms, now_ms))
            for number, (holder, timeout_ms) in (sessions or {}).items()
        }
        self._nodes = dict(nodes or {})
        self.last_zxid = last_zxid

    @property
    def sessions(self) -> Mapping[int, ClientSession]:
        """ClientSession id -> session."""
        return self._sessions

    @property
    def nodes(self) -> Mapping[str, EphemeralNode]:
        """Path -> node."""
        return self._nodes

    def open(self, holder: str, timeout_ms: int, now_ms: int) -> int:
        """Open a session; returns its id. Time-outs are kept between 2 and 20 ticks, as in ZooKeeper."""
        self.last_zxid += 1
        require_room(self._sessions, self.last_zxid, MAX_GROUPS, "sessions")
        kept_ms = min(max(timeout_ms, 2 * self._tick_time_ms), 20 * self._tick_time_ms)
        self._sessions[self.last_zxid] = ClientSession(holder, kept_ms, self._expiry_ms(kept_ms, now_ms))
        return self.last_zxid

    def touch(self, session_id: int, now_ms: int) -> bool:
        """Hear from a session; returns False if it has expired."""
        found = self._sessions.get(session_id)
        if found is None:
            return False
        found.expires_ms = self._expiry_ms(found.timeout_ms, now_ms)
        return True

    def create(self, session_id: int, path: str) -> EphemeralNode | None:
        """Create a node; None: another session has it. The session that has it already gets it again."""
        found = self._nodes.get(path)
        if found is not None:
            return found if found.session_id == session_id else None
        require_room(self._nodes, path, MAX_QUEUES, "nodes")
        self.last_zxid += 1
        made = self._nodes[path] = EphemeralNode(session_id, self.last_zxid)
        return made

    def delete(self, session_id: int, path: str) -> bool:
        """Delete a node of a session; returns whether it had it."""
        found = self._nodes.get(path)
        if found is None or found.session_id != session_id:
            return False
        del self._nodes[path]
        return True

    def close(self, session_id: int) -> tuple[str, ...]:
        """End a session; returns the paths of its nodes, which are gone."""
        self._sessions.pop(session_id, None)
        gone = tuple(path for path, node in self._nodes.items() if node.session_id == session_id)
        for path in gone:
            del self._nodes[path]
        return gone

    def expired(self, now_ms: int) -> tuple[int, ...]:
        """The ids of sessions whose time is over."""
        return tuple(number for number, session in self._sessions.items() if session.expires_ms <= now_ms)

    def _expiry_ms(self, timeout_ms: int, now_ms: int) -> int:
        """`ExpiryQueue#roundToNextInterval`: the next multiple of the tick time after the time-out."""
        return ((now_ms + timeout_ms) // self._tick_time_ms + 1) * self._tick_time_ms
