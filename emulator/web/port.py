"""The port of the dashboard: on this machine only, taken before the run begins."""

import socket

LOOPBACK = "127.0.0.1"
ANY_FREE_PORT = 0
_BACKLOG = 128


class DashboardError(Exception):
    """The dashboard cannot listen; says why in one line."""


def listen(port: int = ANY_FREE_PORT) -> socket.socket:
    """A socket that listens on the loopback address.

    Args:
        port: 0 takes one that is free.

    Raises:
        DashboardError: the port cannot be had.
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
