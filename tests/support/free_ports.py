"""Ports that no one uses, one behind the other."""

import os
import socket
from contextlib import ExitStack
from itertools import count

_FIRST = 18_000
_PER_WORKER = 1_000
"""Test programs that run at a time look in ranges of their own: a port that one has found is free until it is used."""


def free_ports(number: int, host: str = "127.0.0.1") -> int:
    """The first of so many free ports."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for first in count(_FIRST + worker * _PER_WORKER, number):
        with ExitStack() as held:
            try:
                for port in range(first, first + number):
                    held.enter_context(socket.create_server((host, port)))
            except OSError:
                continue
            return first
    raise AssertionError
