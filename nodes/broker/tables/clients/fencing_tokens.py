"""The greatest fencing token of each queue that a broker has seen."""

from collections.abc import Mapping
from enum import Enum, auto

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.errors import require_room


class FencingVerdict(Enum):
    """What a token says of its sender."""

    SAME = auto()
    """It is that of the present holder."""
    LATER = auto()
    """It is that of a new holder; from now on all earlier ones are refused."""
    REFUSED = auto()
    """A later holder has been seen."""


class FencingTokens:
    """Tokens of one broker, by queue.

    Args:
        greatest: those that an earlier process has seen.
    """

    def __init__(self, greatest: Mapping[str, int] | None = None) -> None:
        self._greatest = dict(greatest or {})
        self._refused = dict.fromkeys(self._greatest, 0)

    @property
    def greatest(self) -> Mapping[str, int]:
        """Key -> greatest token."""
        return self._greatest

    @property
    def refused(self) -> Mapping[str, int]:
        """Key -> requests that were refused."""
        return self._refused

    def judge(self, key: str, token: int) -> FencingVerdict:
        """Compare the token of a request, and remember it if it is the greatest."""
        known = self._greatest.get(key)
        if token == known:
            return FencingVerdict.SAME
        if known is not None and token < known:
            self._refused[key] += 1
            return FencingVerdict.REFUSED
        require_room(self._greatest, key, MAX_QUEUES, "fencing tokens")
        self._greatest[key] = token
        self._refused.setdefault(key, 0)
        return FencingVerdict.LATER
