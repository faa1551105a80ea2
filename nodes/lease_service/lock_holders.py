"""What a lock service believes of the holders of its locks."""

from nodes.beliefs import Belief, BeliefKind, Json
from nodes.host import Host


class LockHolders:
    """Records who holds each lock, whenever that changes.

    Emits:
        LEASE of the key; None: no client holds it.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._believed: dict[str, Json] = {}

    def believe(self, key: str, holder: str, token: int) -> None:
        """A client holds a lock."""
        self._record(key, {"holder": holder, "token": token})

    def believe_free(self, key: str) -> None:
        """No client holds a lock."""
        self._record(key, None)

    def _record(self, key: str, value: Json) -> None:
        if self._believed.get(key) != value:
            self._believed[key] = value
            self._host.record(Belief(BeliefKind.LEASE, key, value))
