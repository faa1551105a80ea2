"""Masters of Spark: their URLs, whether they answer, and what a session has to know to use them."""

import os
import re
import socket
from collections.abc import Sequence

from emulator.base.errors import UserError
from nodes.fields import quoted

_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://(?P<hosts>.+)|yarn|k8s://.+"
)
_CONNECT_S = 5.0
_LOOPBACK = ("127.0.0.1", "localhost")


class MasterError(UserError):
    """A URL is no Spark master, or no one answers there; the text says which and why in one line."""


def settings_of(master: str) -> dict[str, str]:
    """The settings that a session needs for a master, after a look whether anybody answers there.

    Raises:
        MasterError: it is no master, or cannot be reached.
    """
    hosts = _hosts(master)
    return {} if all(host in _LOOPBACK for host, _ in hosts) else _settings_beyond_loopback(hosts)


def _hosts(master: str) -> list[tuple[str, int]]:
    """The addresses of a standalone master, of which one must answer; none for other kinds of masters.

    Raises:
        MasterError: it is no master, or cannot be reached.
    """
    hosts = _addresses("--master", master)
    problems = [unreachable(*address) for address in hosts]
    if hosts and all(problems):
        raise MasterError(f"{master} cannot be reached: {problems[0]}")
    return hosts


def require_master(name: str, master: str) -> str:
    """The URL of a master.

    Args:
        name: of the option or the variable.
        master: its value.

    Raises:
        MasterError: it is none.
    """
    _addresses(name, master)
    return master


def _addresses(name: str, master: str) -> list[tuple[str, int]]:
    match = _MASTER.fullmatch(master)
    if match is None:
        raise MasterError(
            f"{name} {quoted(master)}: expected local[N], local-cluster[N,CORES,MB] or spark://HOST:PORT"
            + ("; --remote takes the URL of a Connect server" if master.startswith("sc:") else "")
        )
    if match["hosts"] is None:
        return []
    hosts: list[tuple[str, int]] = []
    for address in match["hosts"].split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or int(port) >= 1 << 16:
            raise MasterError(f"{name} {quoted(master)}: expected spark://HOST:PORT")
        hosts.append((host, int(port)))
    return hosts


def unreachable(host: str, port: int) -> str:
    """Why no one answers there; empty if somebody does. Spark itself would try for a minute."""
    try:
        socket.create_connection((host, port), _CONNECT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _settings_beyond_loopback(hosts: Sequence[tuple[str, int]]) -> dict[str, str]:
    """Workers on other machines call the driver back, at the address from which it reaches their master."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(hosts[0])  # sends nothing
        own = str(probe.getsockname()[0])
    os.environ.setdefault("SPARK_LOCAL_IP", own)
    return {"spark.driver.host": own}
