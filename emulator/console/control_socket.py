"""The control socket: other terminals and programs send verbs to a running cluster.

A Unix socket in the run directory, for its owner only. Each message is a length of
four bytes, big-endian, and a msgpack map:

    request: {"line": "cut consumer-1 broker-a"}
    answer:  {"ok": true, "lines": ["cut-1: cut consumer-1 <-> broker-a"]}

Requests of one connection are answered in order. A request that cannot be parsed gets
`"ok": false` and one line that says why; if its length is invalid, the connection is
closed after that. No client can make the cluster wait: a client that does not read
is disconnected, and so are clients beyond `CLIENTS_MAX`.

Verbs that come over the socket read and write files below the run directory only, relative
to it; `emulator.console.control_client` gives users the files of their own terminal.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import trio

from emulator.base.errors import UserError
from emulator.console.session import Session
from emulator.console.verb import Lines, VerbError
from nodes.fields import shown
from nodes.secret import masked

SOCKET_FILE = "ctl.sock"
REQUEST_BYTES_MAX = 64 * 1024
ANSWER_BYTES_MAX = 64 * 1024 * 1024
CLIENTS_MAX = 16
_LENGTH_BYTES = 4
_BACKLOG = 256
_READS_WITHIN_S = 5
_CONNECTS_WITHIN_S = 10
_ADDRESS_BYTES_MAX = 100
"""A little less than the limit of any system."""
_OPEN_FILES = Path("/proc/self/fd")


class ControlError(UserError):
    """The control socket cannot be reached or created; the text says why in one line."""


async def serve_control(session: Session) -> None:
    """Serve verbs on a socket in the run directory; a session task of `run_scenario`.

    Raises:
        ControlError: the socket cannot be created.
    """
    path = session.run_directory / SOCKET_FILE
    listener = _listen(path)
    clients = _Clients(session.confined())
    try:
        async with trio.open_nursery() as nursery:
            while True:
                stream, _ = await listener.accept()
                nursery.start_soon(clients.serve, trio.SocketStream(stream))
    finally:
        listener.close()
        _remove(path)


@contextmanager
def _short(path: Path) -> Iterator[str]:
    """A path of the socket that is short enough for a socket address, for any directory."""
    if len(os.fsencode(path)) < _ADDRESS_BYTES_MAX or not _OPEN_FILES.exists():
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(_OPEN_FILES / str(directory) / path.name)
    finally:
        os.close(directory)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _listen(path: Path) -> trio.socket.SocketType:
    """A listening socket to which only its owner could connect at any time."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with _short(path) as name:
            made.bind(name)
    except OSError as error:
        made.close()
        raise ControlError(f"{path}: no control socket can be made: {error.strerror or error}") from None
    finally:
        os.umask(mask)
    made.listen(_BACKLOG)
    return trio.socket.from_stdlib_socket(made)


class _Clients:
    """The connected clients."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._count = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of one client until it disconnects."""
        self._count += 1
        try:
            async with stream:
                if self._count > CLIENTS_MAX:
                    await _answer(stream, ok=False, lines=(f"{CLIENTS_MAX} clients are connected already",))
                    return
                while await self._serve_one(stream):
                    pass
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass
        finally:
            self._count -= 1

    async def _serve_one(self, stream: trio.SocketStream) -> bool:
        """Answer one request; returns whether another may follow."""
        head = await _receive(stream, _LENGTH_BYTES)
        if head is None:
            return False
        length = int.from_bytes(head, "big")
        if not 0 < length <= REQUEST_BYTES_MAX:
            await _answer(stream, ok=False, lines=(f"a request has 1 to {REQUEST_BYTES_MAX} bytes, not {length}",))
            return False
        content = await _receive(stream, length)
        if content is None:
            return False
        try:
            lines = await self._session.say(_line(content))
        except VerbError as error:
            await _answer(stream, ok=False, lines=(str(error),))
        else:
            await _answer(stream, ok=True, lines=lines)
        return True


def _line(content: bytes) -> str:
    try:
        request = msgpack.unpackb(content)
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
        raise VerbError('expected a msgpack map {"line": "VERB ..."}') from None
    line = request.get("line") if isinstance(request, dict) else None
    if not isinstance(line, str):
        raise VerbError('expected a msgpack map {"line": "VERB ..."}')
    return line


async def _receive(stream: trio.SocketStream, size: int) -> bytes | None:
    """Receive `size` bytes; None if the client disconnects before."""
    content = b""
    while len(content) < size:
        part = await stream.receive_some(size - len(content))
        if not part:
            return None
        content += part
    return content


async def _answer(stream: trio.SocketStream, *, ok: bool, lines: Lines) -> None:
    with trio.fail_after(_READS_WITHIN_S):
        await stream.send_all(_framed({"ok": ok, "lines": list(lines)}))


def _framed(content: dict[str, Any]) -> bytes:
    packed: bytes = msgpack.packb(content)
    return len(packed).to_bytes(_LENGTH_BYTES, "big") + packed


def newest_socket(runs: Path) -> Path:
    """The control socket of the newest run.

    Args:
        runs: directory of all runs.

    Raises:
        ControlError: no run has one.
    """
    found = sorted(runs.glob(f"*/{SOCKET_FILE}"), key=lambda path: path.stat().st_ctime_ns)
    if not found:
        raise ControlError(f"{runs}: no cluster runs there; `rmqemu up SCENARIO` starts one")
    return found[-1]


def ask(path: Path, line: str, timeout_s: float | None = None) -> tuple[bool, Lines]:
    """Send a verb over a control socket and wait for its output.

    Args:
        path: of the socket.
        line: the verb and its words.
        timeout_s: for the answer; None: no limit, since some verbs let time pass.

    Returns:
        Whether the verb succeeded, and the lines of its output.

    Raises:
        ControlError: no cluster listens on the socket, or it does not answer.
    """
    try:
        request = _framed({"line": line})
    except UnicodeEncodeError:
        raise ControlError(f"{shown(masked(line))}: expected words in UTF-8") from None
    if len(request) - _LENGTH_BYTES > REQUEST_BYTES_MAX:
        raise ControlError(f"{shown(masked(line))}: expected {REQUEST_BYTES_MAX} bytes at most in one request")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_CONNECTS_WITHIN_S)
        try:
            with _short(path) as name:
                connection.connect(name)
            connection.settimeout(timeout_s)
            connection.sendall(request)
            return _received(connection)
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL
            why = getattr(error, "strerror", None) or error
            raise ControlError(f"{path}: {why}; does the cluster run?") from None


def _received(connection: socket.socket) -> tuple[bool, Lines]:
    """Whether a verb succeeded, and its lines; another program may listen there.

    Raises:
        ValueError: it is no answer of a cluster.
    """
    length = int.from_bytes(_read(connection, _LENGTH_BYTES), "big")
    if length > ANSWER_BYTES_MAX:
        raise ValueError(f"expected an answer of at most {ANSWER_BYTES_MAX} bytes")
    content = _read(connection, length)
    try:
        answer = msgpack.unpackb(content)
        return bool(answer["ok"]), tuple(str(line) for line in answer["lines"])
    except (ValueError, KeyError, TypeError, msgpack.UnpackException):
        raise ValueError("expected the answer of a cluster") from None


def _read(connection: socket.socket, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise OSError("the cluster closed the connection")
        content += part
    return bytes(content)
