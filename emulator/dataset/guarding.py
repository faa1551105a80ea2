"""What keeps other users of this machine out of a session of Spark.

| listens | would for anybody | is closed by |
|---|---|---|
| RPC and blocks of drivers and executors | read objects of Java, end executors | a secret of the session |
| Python's accumulators, daemons of workers | wait for who comes first, fork | sockets in a folder of this user |
| pages of `local-cluster` | show logs, kill applications | a signature that no one makes |
| pages of the UI, if it is on | kill jobs | no such buttons: they only show |
| py4j, Connect | run anything | tokens that both ask for |

Nothing is encrypted: all of it is on loopback and in folders of this user, where root alone reads, who reads the memory
of processes as well. `spark.io.encryption` costs less than what two sessions differ by, and with `spark.network.crypto`
the warm server stalls.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SECRET_VARIABLE = "_SPARK_AUTH_SECRET"  # noqa: S105 - the name of a variable
"""Where a JVM of Spark looks for its secret first."""
_ADDRESS_VARIABLE = "SPARK_LOCAL_IP"
_SECRET = "spark.authenticate.secret"  # noqa: S105 - the name of a setting
_SOCKETS = "spark.python.unix.domain.socket"
_SIGNATURES = "org.apache.spark.ui.JWSFilter"


def guarding_settings(master: str, folder: Path, *, ui: bool = False) -> dict[str, str]:
    """Settings that close the ports of a session; those of `secret_settings` and `guarded` belong to them.

    Args:
        master: a cluster elsewhere has a secret of its own, or none.
        folder: that only this user can enter, for sockets.
        ui: whether the session has Spark's UI, which a browser could not open if its pages asked for signatures.
    """
    settings = {f"{_SOCKETS}.enabled": "true", "spark.ui.killEnabled": "false"}
    if not _is_here(master):
        return settings
    settings |= {"spark.authenticate": "true", "spark.master.ui.decommission.allow.mode": "DENY"}
    settings[f"{_SOCKETS}.dir"] = str(folder)
    if not ui:
        settings["spark.ui.filters"] = _SIGNATURES
    return settings


def secret_settings(master: str, environment: dict[str, str]) -> dict[str, str]:
    """Settings that other users must not read, so that they must not become arguments of a JVM.

    Args:
        master: of the session.
        environment: from `guarded`.
    """
    if not _is_here(master):
        return {}
    return {_SECRET: environment[_SECRET_VARIABLE], f"spark.{_SIGNATURES}.param.secretKey": secrets.token_urlsafe(32)}


def guarded(master: str) -> dict[str, str]:
    """Variables of the environment of a JVM that is started: its secret, and that it listens on loopback alone."""
    if not _is_here(master):
        return {}
    return {_SECRET_VARIABLE: secrets.token_hex(32), _ADDRESS_VARIABLE: "127.0.0.1"}


@contextmanager
def guarded_environment(master: str) -> Iterator[dict[str, str]]:
    """The variables of `guarded` are those of this process inside the `with` block; what the user has set stays."""
    ours = {name: value for name, value in guarded(master).items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield dict(os.environ)
    finally:
        for name in ours:
            del os.environ[name]


def _is_here(master: str) -> bool:
    return master.startswith("local")
