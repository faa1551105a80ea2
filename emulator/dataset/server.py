"""The warm server: Spark Connect as a background process of this user on this machine, for commands and notebooks.

It holds a lock for as long as it lives, so a state file whose lock is free is that of a server that has gone. A token
in the state file, which only its user can read, keeps other users of the machine out.
"""

import fcntl
import json
import os
import platform
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import attrs
import pyspark

from emulator.base.errors import UserError
from emulator.dataset.archive import archive_options
from emulator.dataset.connect import require_connect
from emulator.dataset.guarding import guarded, guarding_settings, secret_settings
from emulator.dataset.java import ensure_java, java_version
from emulator.dataset.masters import require_master, unreachable
from emulator.dataset.settings import (
    PACKAGE_PARENT,
    QUIET,
    cache_folder,
    java_options,
    places,
    remove_scratch,
    require_room,
    sockets_folder,
    temporary_folder,
)
from emulator.trace.run_directory import versions
from nodes.fields import quoted

START_MAX_S, STOP_MAX_S = 120.0, 20.0
_LOOK_EVERY_S = 0.1
_MEMORY = re.compile(r"[1-9]\d{0,8}[kmgt]", re.IGNORECASE)
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_PACKAGE = "rocketmq-emulator"
_STATE, _LOCK, _LOG, _SCRATCH = "server.json", "server.lock", "server.log", "scratch"


class ServerError(UserError):
    """The warm server cannot be started, stopped or used; the text says why in one line."""


@attrs.frozen
class Server:
    """A warm server, as its state file has it."""

    pid: int
    port: int
    token: str = attrs.field(repr=False)
    master: str
    memory: str
    emulator: str
    """Version of this package that its Python workers import."""
    path: str
    """Where they import it from."""
    python: str
    pyspark: str
    java: str
    began_s: int
    """Unix time."""
    ui: str | None = None
    """URL of its Spark UI."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"sc://localhost:{self.port}"

    @property
    def remote(self) -> str:
        """Its address with the token."""
        return f"{self.url}/;token={self.token}"

    def differs(self) -> str:
        """In what it differs from this process, so that it cannot be used; empty if in nothing."""
        own = _own()
        found = [
            f"{name} {value}, here {own[name]}"
            for name in ("emulator", "pyspark", "python", "path")
            if (value := getattr(self, name)) != own[name]
        ]
        return "; ".join(found)


def _own() -> dict[str, str]:
    return {
        "emulator": versions()[_PACKAGE],
        "pyspark": pyspark.__version__,
        "python": f"{platform.python_version()} of {sys.prefix}",
        "path": str(PACKAGE_PARENT),
    }


def server_folder() -> Path:
    """The folder of the warm server of this user on this machine; it need not exist."""
    return cache_folder() / f"server@{socket.gethostname()}"


def find_server() -> Server | None:
    """The warm server that runs; None: none runs, or it is just being started or stopped."""
    folder = server_folder()
    return _state(folder) if _is_locked(folder) else None


def is_starting() -> bool:
    """Whether a server is just being started."""
    return _is_locked(server_folder()) and find_server() is None


def _state(folder: Path) -> Server | None:
    try:
        return Server(**json.loads((folder / _STATE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def _is_locked(folder: Path) -> bool:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def start_server(master: str, memory: str, *, ui: bool = False) -> Server:
    """Start the warm server and wait until it answers.

    Args:
        master: where it runs its tasks, such as `local[4]`.
        memory: of its JVM, such as `2g`.
        ui: whether it has Spark's UI, on loopback.

    Raises:
        ServerError: one runs already, or Spark does not start.
        UserError: Java, packages or room are missing.
        OSError: its folder cannot be written.
    """
    require_master("--master", master)
    if not _MEMORY.fullmatch(memory):
        raise ServerError(f"--memory {quoted(memory)}: expected a number and a unit, such as 512m or 4g")
    require_connect()
    java = ensure_java()
    folder = server_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    require_room(folder)
    with (folder / _LOCK).open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerError("a server runs already, or is just being started: rmqemu spark status") from None
        _remove(folder)
        port, ui_port = _free_port(), _free_port()
        server = Server(
            pid=0,
            port=port,
            token=secrets.token_urlsafe(24),
            master=master,
            memory=memory,
            java=f"{java_version(java / 'bin' / 'java')} of {java}",
            began_s=int(time.time()),
            ui=f"http://127.0.0.1:{ui_port}" if ui else None,
            **_own(),
        )
        scratch = folder / _SCRATCH
        scratch.mkdir(mode=0o700)
        options = java_options(scratch, archive_options(java), level="error", optimises=True)
        process = _launch(scratch, server, options, ui_port, lock)
        try:
            _await(process, server, folder)
        except BaseException:
            _kill(process)
            remove_scratch(scratch)  # the log stays, which may say more
            raise
        server = attrs.evolve(server, pid=process.pid)
        _write(folder / _STATE, server)
        return server


def _write(path: Path, server: Server) -> None:
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps(attrs.asdict(server), indent=1))
    new.replace(path)


def _launch(scratch: Path, server: Server, java: str, ui_port: int, lock: IO[bytes]) -> "subprocess.Popen[bytes]":
    guards = guarded(server.master)
    settings = {
        **QUIET,
        **places(scratch),
        **guarding_settings(server.master, sockets_folder(scratch), ui=server.ui is not None),
        **secret_settings(server.master, guards),
        "spark.ui.enabled": str(server.ui is not None).lower(),
        "spark.ui.port": str(ui_port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(server.port),
        "spark.driver.memory": server.memory,
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": temporary_folder(scratch),
        "spark.executorEnv.PYTHONPATH": str(PACKAGE_PARENT),
    }
    properties = scratch / "spark.properties"
    properties.touch(mode=0o600)
    properties.write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    spark = Path(pyspark.__file__).parent
    command = [str(spark / "bin" / "spark-submit"), "--master", server.master]
    command += ["--properties-file", str(properties)]
    command += ["--class", _CLASS, "--name", "rmqemu", "spark-internal"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_REMOTE", "PYSPARK_SUB"))
    }
    environment |= {
        "SPARK_HOME": str(spark),
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": server.token,
        **guards,
        # Workers of a Connect server have its environment.
        "PYTHONPATH": str(PACKAGE_PARENT),
    }
    with (scratch.parent / _LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[lock.fileno()],  # the lock is held until the server ends, however it does
        )


def _await(process: "subprocess.Popen[bytes]", server: Server, folder: Path) -> None:
    give_up_s = time.monotonic() + START_MAX_S
    while unreachable("127.0.0.1", server.port):
        if process.poll() is not None:
            raise ServerError(f"Spark has ended while it started: {_last_error(folder)}; all of it: {folder / _LOG}")
        if time.monotonic() > give_up_s:
            raise ServerError(f"Spark does not answer after {START_MAX_S:g} s: {folder / _LOG}")
        time.sleep(_LOOK_EVERY_S)


def _last_error(folder: Path) -> str:
    lines = (folder / _LOG).read_text(errors="replace").splitlines()
    errors = [line for line in lines if line.strip() and not line.startswith(("\t", " ", "WARNING"))]
    return errors[-1] if errors else "it has printed nothing"


def stop_server() -> Server | None:
    """Stop the warm server and remove its files.

    Returns:
        The server that ran; None: none did, and what one had left is removed.

    Raises:
        ServerError: it does not end.
    """
    folder = server_folder()
    server = find_server()
    if server is None:
        if _is_locked(folder):
            raise ServerError("a server is just being started: try again when it runs")
        _remove(folder)
        return None
    for number, patience_s in ((signal.SIGTERM, STOP_MAX_S), (signal.SIGKILL, STOP_MAX_S)):
        with suppress(ProcessLookupError):
            os.kill(server.pid, number)
        give_up_s = time.monotonic() + patience_s
        while _is_locked(folder) and time.monotonic() < give_up_s:
            time.sleep(_LOOK_EVERY_S)
        if not _is_locked(folder):
            _remove(folder)
            return server
    raise ServerError(f"the server, process {server.pid}, does not end")


def _kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


def _remove(folder: Path) -> None:
    remove_scratch(folder / _SCRATCH)
    for name in (_STATE, _LOG):
        (folder / name).unlink(missing_ok=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def memory_bytes(server: Server) -> int | None:
    """Resident bytes of the server's JVM; None: this system does not report them."""
    try:
        pages = int(Path(f"/proc/{server.pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def brief(server: Server, now_s: float) -> dict[str, Any]:
    """What `rmqemu spark status --json` prints of a server; the token is left out."""
    state = attrs.asdict(server)
    del state["token"]
    return {"url": server.url, **state, "up_s": int(now_s - server.began_s), "memory_bytes": memory_bytes(server)}
