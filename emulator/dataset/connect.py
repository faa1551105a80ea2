"""Connect sessions: the driver is a server, and this process sends it plans."""

import atexit
import os
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec

import pyspark
from pyspark.sql import SparkSession

from emulator.base.errors import UserError
from emulator.base.extra import INSTALL
from emulator.dataset.masters import MasterError, unreachable
from emulator.dataset.spark import running_session
from emulator.dataset.spark_location import address_of, without_parameters

_PACKAGES = {
    "grpcio": "grpc",
    "grpcio-status": "grpc_status",
    "googleapis-common-protos": "google.rpc",
    "protobuf": "google.protobuf",
    "zstandard": "zstandard",
}
"""Mapping package -> module. They are those of `pyspark[connect]` which Spark itself does not need."""
_READY_S = 10.0
_HERE = ("localhost", "127.0.0.1", "::1")
_RETRIES_HERE, _RETRIES_BEYOND = 4, 8
"""About 5 and 40 s: a server of this machine answers, or has gone."""
_BACKOFF_MAX_MS = 8_000
_DETAILS = re.compile(r'details = "([^"]*)')


class NoConnectError(UserError):
    """Connect cannot be used in this process; the text says why in one line."""


def require_connect() -> None:
    """Refuse Connect where its packages are not installed; nothing is imported.

    Raises:
        NoConnectError: a package is missing.
    """
    missing = [package for package, module in _PACKAGES.items() if not _is_installed(module)]
    if missing:
        raise NoConnectError(f"Spark Connect needs {', '.join(missing)}: {INSTALL}")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # of the package around it
        return False


def connect_session(remote: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of a Connect server; it ends with this process.

    Args:
        remote: URL of the server, `sc://HOST:PORT`, with its parameters.
        settings: of the new session.

    Raises:
        NoConnectError: packages are missing, or a classic session runs in this process.
        MasterError: no Connect server of this version of Spark answers there.
    """
    require_connect()
    if running_session() is not None:
        raise NoConnectError("a Spark session with its own JVM runs in this process: stop it, or restart Python")
    url = without_parameters(remote)
    host, port = address_of(remote)
    problem = unreachable(host, port)
    if problem:
        raise MasterError(f"{url} cannot be reached: {problem}")
    _require_grpc(remote)
    # What it warns of is raised as well.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)
    session = SparkSession.builder.remote(remote).create()
    _retry_briefly(session, host)
    _require_this_version(session, url)
    for key, value in settings.items():
        session.conf.set(key, value)
    atexit.register(_end, session)
    return session


def _require_grpc(remote: str) -> None:
    """Spark would wait for minutes for an answer."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it logs what is raised anyway
    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(_READY_S)
    except grpc.FutureTimeoutError:
        raise MasterError(
            f"{without_parameters(remote)} does not answer as a Spark Connect server within {_READY_S:g} s"
        ) from None
    finally:
        channel.close()


def _retry_briefly(session: SparkSession, host: str) -> None:
    """Spark would send requests to a server that has gone for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    retries = _RETRIES_HERE if host in _HERE else _RETRIES_BEYOND
    session.client.set_retry_policies([DefaultPolicy(max_retries=retries, max_backoff=_BACKOFF_MAX_MS)])


def _require_this_version(session: SparkSession, url: str) -> None:
    from pyspark.errors.exceptions.connect import SparkConnectException, SparkConnectGrpcException

    try:
        version = session.version
    except SparkConnectGrpcException as error:
        reason = _DETAILS.search(str(error))
        raise MasterError(f"{url} refuses this session: {reason[1] if reason else error}") from None
    except SparkConnectException as error:
        raise MasterError(f"{url} is no Spark Connect server: {error}") from None
    if version.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise MasterError(f"{url} runs Spark {version}, and pyspark here is {pyspark.__version__}: install the same")


def is_connect(session: SparkSession) -> bool:
    """Whether a session is one of Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def address(session: SparkSession) -> str:
    """The URL of the server of a Connect session, without its parameters."""
    return f"sc://{session.client.host}:{session.client._builder.endpoint.rpartition(':')[2]}"  # type: ignore[attr-defined]  # noqa: SLF001


def _end(session: SparkSession) -> None:
    """Release the session, which ends what the server still computes for it."""
    with suppress(Exception):  # the server may be gone
        session.stop()
