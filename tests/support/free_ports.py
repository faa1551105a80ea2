"""Ports that no one uses, one behind the other."""

import socket
from contextlib import ExitStack
from itertools import count

_FIRST = 18_000


def free_ports(number: int, host: str = "127.0.0.1") -> int:
    """The first of so many free ports."""
    for first in count(_FIRST, number):
        with ExitStack() as held:
            try:
                for port in range(first, first + number):
                    held.enter_context(socket.create_server((host, port)))
            except OSError:
                continue
            return first
    raise AssertionError
