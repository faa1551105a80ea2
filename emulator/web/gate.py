"""The port of the dashboard, on the loopback address only, and the checks of its requests."""

import hmac
import socket

import attrs

from emulator.base.errors import UserError
from emulator.web.http import Headers, Refusal

LOOPBACK = "127.0.0.1"
ANY_FREE_PORT = 0
_BACKLOG = 128


class DashboardError(UserError):
    """The dashboard cannot listen; the text says why in one line."""


def listen(port: int = ANY_FREE_PORT) -> socket.socket:
    """A socket that listens on the loopback address; opened before the run begins.

    Args:
        port: 0 chooses a free port.

    Raises:
        DashboardError: the port cannot be used.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        why = error.strerror or error
        raise DashboardError(f"--web-port {port}: no dashboard can listen there: {why}") from None
    return made


@attrs.frozen
class Gate:
    """Checks the address and the token of requests.

    Args:
        port: port of the dashboard.
        token: of this run.
    """

    port: int
    token: str = attrs.field(repr=False)

    def check_address(self, headers: Headers) -> None:
        """Check that the host of a request, and its origin if it has one, is this dashboard.

        Raises:
            Refusal: it is not.
        """
        hosts, origins = _values(headers, b"host"), _values(headers, b"origin")
        own = tuple(f"{name}:{self.port}" for name in (LOOPBACK, "localhost"))
        if len(hosts) != 1 or hosts[0] not in own:
            raise Refusal(403, f"the dashboard is at http://{own[0]}/ and nowhere else")
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            raise Refusal(403, "only the page of the dashboard itself may ask")

    def check_token(self, headers: Headers) -> None:
        """Check the token of a request.

        Raises:
            Refusal: it is missing or wrong.
        """
        given = "".join(_values(headers, b"authorization"))
        # Bytes, since strings with non-ASCII characters cannot be compared in constant time.
        if not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise Refusal(401, "the token is missing or wrong; the terminal of `rmqemu up` shows it")


def _values(headers: Headers, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]
