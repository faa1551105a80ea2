"""What shows in the trace of requests that a broker refuses by its users and permissions."""

from collections.abc import Callable, Iterable

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS
from nodes.values import frozen

_RECORD_PERIOD_MS = 1_000
_DENIALS_MAX = 256
"""Guests may send any names: more denials than that at once leave nothing but their lines in the log."""
_NAME_CHARS = 64


@frozen
class Denial:
    """A client may not do something."""

    user: str
    """As the request names it; empty: it names none."""
    ip: str
    """Of the client."""
    code: int
    """Of its request."""
    resource: str = ""
    """Such as `Topic:orders`; empty: the user itself is refused, or no resource is known."""
    is_late: bool = False
    """Whether the request is allowed, and refused as too late since a check of permissions has read it."""


@attrs.define
class _Open:
    """A denial since it was recorded last."""

    recorded_ns: int
    denied: int = 0


class DeniedBeliefs:
    """Records denials: the first one at once, later ones once a second at most, and that the same is allowed again.

    Emits:
        DENIED.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._open: dict[Denial, _Open] = {}

    def on_denied(self, denial: Denial, reason: str, actions: Iterable[str] = ()) -> None:
        """A request is refused."""
        denial = attrs.evolve(denial, user=denial.user[:_NAME_CHARS], resource=denial.resource[:_NAME_CHARS])
        now_ns = self._host.clock.monotonic_ns()
        found = self._open.get(denial)
        if found is None:
            if len(self._open) >= _DENIALS_MAX:
                return
            found = self._open[denial] = _Open(now_ns - _RECORD_PERIOD_MS * NS_PER_MS)
        found.denied += 1
        if now_ns - found.recorded_ns >= _RECORD_PERIOD_MS * NS_PER_MS:
            value = {
                "user": denial.user,
                "ip": denial.ip,
                "request": _request(denial.code),
                "resource": denial.resource,
                "actions": list(actions),
                "reason": reason,
                "denied": found.denied,
            }
            found.recorded_ns, found.denied = now_ns, 0
            self._host.record(Belief(BeliefKind.DENIED, _subject(denial), value))

    def on_allowed(self, user: str, ip: str, code: int, resources: Callable[[], Iterable[str]]) -> None:
        """A request passes the checks: what they denied before is allowed.

        Args:
            user: as the request names it.
            ip: of the client.
            code: of the request.
            resources: returns the resources that the request needs, if anything like it was denied before.
        """
        if not self._open:
            return
        passed = (user[:_NAME_CHARS], ip, code, False)
        like = [item for item in self._open if (item.user, item.ip, item.code, item.is_late) == passed]
        if not like:
            return
        allowed = ["", *resources()]
        for denial in like:
            if denial.resource in allowed:
                self.end(denial)

    def end(self, denial: Denial) -> None:
        """What was denied is allowed again, if it was denied."""
        if self._open.pop(denial, None) is not None:
            self._host.record(Belief(BeliefKind.DENIED, _subject(denial), None))


def _request(code: int) -> str:
    return RequestCode(code).name if code in _CODES else str(code)


_CODES = frozenset(int(code) for code in RequestCode)


def _subject(denial: Denial) -> str:
    words = (denial.user, denial.ip, _request(denial.code), denial.resource, "late" if denial.is_late else "")
    return "/".join(word for word in words if word).replace(" ", "_")
