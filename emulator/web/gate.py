"""Who may pass: a request has to come from our own page, and to bring the token.

A page of another origin, or of a name that was made to point at this machine,
can send requests here; it can read no answer and knows no token.
"""

import hmac
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from emulator.web.port import LOOPBACK

Headers = Iterable[tuple[bytes, bytes]]
SAFE_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
"""On every answer."""


@attrs.frozen
class Refusal(Exception):  # noqa: N818 - an answer, not an accident
    """A request is not served."""

    status: int
    problem: str
    """One line."""


@attrs.frozen
class Gate:
    """Knows its own address and the token.

    Args:
        port: on which the dashboard listens.
        token: of this run.
    """

    port: int
    token: str = attrs.field(repr=False)

    def check_address(self, headers: Headers) -> None:
        """A request names us as its host, and as its origin if it names one.

        Raises:
            Refusal: it does not.
        """
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        own = tuple(f"{name}:{self.port}" for name in (LOOPBACK, "localhost"))
        if len(hosts) != 1 or hosts[0] not in own:
            raise Refusal(403, f"the dashboard is at http://{own[0]}/ and nowhere else")
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            raise Refusal(403, "only the page of the dashboard itself may ask")

    def check_token(self, headers: Headers) -> None:
        """A request brings the token.

        Raises:
            Refusal: it does not.
        """
        given = "".join(_values(headers, b"authorization"))
        # Bytes: texts that are not ASCII cannot be compared in constant time.
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise Refusal(401, "the token is missing or wrong; the terminal of `rmqemu up` shows it")


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]
