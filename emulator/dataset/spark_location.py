"""Where Spark runs: in a JVM of this process, on a cluster, or behind a Connect server."""

import re
from collections.abc import Mapping
from enum import Enum, auto

import attrs

from emulator.dataset.masters import MasterError, require_master
from nodes.fields import quoted

WHERE = "RMQEMU_SPARK"
"""Environment variable: a master URL, or that of a Connect server."""
SPARKS_REMOTE = "SPARK_REMOTE"
"""Spark's own variable, with the URL of a Connect server."""
LOCAL = "local[2]"
REMOTE_PORT = 15002
_REMOTE = re.compile(r"sc://(?P<host>\[[0-9a-fA-F:.]+\]|[^:/\[\]]+)(:(?P<port>[0-9]{1,5}))?(/(?P<parameters>;.*)?)?")


class Origin(Enum):
    """Why Spark runs there."""

    OPTION = auto()
    ENVIRONMENT = auto()
    SERVER = auto()
    """A warm server runs on this machine."""
    DEFAULT = auto()


@attrs.frozen
class Where:
    """Where Spark runs: exactly one of master and remote."""

    origin: Origin
    master: str | None = None
    remote: str | None = attrs.field(default=None, repr=False)
    """URL of a Connect server; it may hold a token."""

    @property
    def is_local(self) -> bool:
        """Whether the driver and all workers are on this machine, with this package."""
        return self.origin is Origin.SERVER or (
            self.master is not None and re.match(r"local(\[|$)", self.master) is not None
        )

    @property
    def words(self) -> str:
        """The URL without token, and why if no option has it."""
        url = self.master or without_parameters(str(self.remote))
        return f"{url} (rmqemu spark start)" if self.origin is Origin.SERVER else url


def where_to_run(
    master: str | None, remote: str | None, environment: Mapping[str, str], warm: str | None = None
) -> Where:
    """Where Spark runs: the option decides, else the environment, else the warm server, else this process.

    Args:
        master: of option `--master`.
        remote: of option `--remote`.
        environment: of this process.
        warm: URL of the warm server, with its token, if one runs that fits.

    Raises:
        MasterError: a URL is none, or both options were given.
    """
    if master is not None and remote is not None:
        raise MasterError("expected only one of --master and --remote")
    if remote is not None:
        return Where(Origin.OPTION, remote=require_remote("--remote", remote))
    if master is not None:
        return Where(Origin.OPTION, master=require_master("--master", master))
    for name in (WHERE, SPARKS_REMOTE):
        configured = environment.get(name, "")
        if configured.startswith("sc:") or (configured and name == SPARKS_REMOTE):
            return Where(Origin.ENVIRONMENT, remote=require_remote(name, configured))
        if configured:
            return Where(Origin.ENVIRONMENT, master=require_master(name, configured))
    if warm is not None:
        return Where(Origin.SERVER, remote=warm)
    return Where(Origin.DEFAULT, master=LOCAL)


def require_remote(name: str, url: str) -> str:
    """The URL of a Connect server.

    Args:
        name: of the option or the variable.
        url: its value.

    Raises:
        MasterError: it is none.
    """
    address_of(url, f"{name} {quoted(without_parameters(url))}")
    return url


def address_of(url: str, shown: str | None = None) -> tuple[str, int]:
    """Host and port of a Connect server.

    Raises:
        MasterError: the URL is none.
    """
    match = _REMOTE.fullmatch(url)
    port = int(match["port"] or REMOTE_PORT) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise MasterError(f"{shown or quoted(without_parameters(url))}: expected sc://HOST:PORT")
    return match["host"].strip("[]"), port


def without_parameters(url: str) -> str:
    """The URL without what follows the address, such as a token."""
    return url.partition("/;")[0].partition(";")[0]
