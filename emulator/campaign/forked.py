"""Work in forked processes: each with a time limit, and none can harm the process that waits for it.

A child has what its parent had loaded, and only the memory in which it differs. Its end is an answer or a death of
any kind: an exception, a signal, the kernel that needs memory.
"""

import faulthandler
import os
import resource
import selectors
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar

import attrs

T = TypeVar("T")
_GRACE_S = 5.0
"""A child ends itself at its limit and says where it was; after this time, its parent kills it."""
_PIECE = 1 << 16
FAILED = 70
"""Exit status of a child whose work raised."""


@attrs.frozen
class EndedChild(Generic[T]):
    """A child that has ended."""

    item: T
    answer: bytes
    """What its work returned; empty, or cut off, if it did not return."""
    exit_code: int
    """0: it answered; below 0: the signal that killed it; as `os.waitstatus_to_exitcode`."""
    late: bool
    """Whether its time was up."""
    cpu_s: float
    wall_s: float


@attrs.define
class _Child(Generic[T]):
    item: T
    pid: int
    began_s: float
    pieces: list[bytes] = attrs.Factory(list)
    killed: bool = False


class Forked(Generic[T]):
    """Children that are at work; a context manager that kills those that are left.

    The process should have one thread only: a child has no other, whatever lock the others held.

    Args:
        work: called in a child with an item; returns the answer.
        output: the file for what the child prints, for an item.
        limit_s: wall time of a child.
    """

    def __init__(self, work: Callable[[T], bytes], output: Callable[[T], Path], limit_s: float) -> None:
        self._work = work
        self._output = output
        self._limit_s = limit_s
        self._children: dict[int, _Child[T]] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._children)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children.values():
            _kill(child)
        for reading_end, child in self._children.items():
            os.close(reading_end)
            os.waitpid(child.pid, 0)
        self._children.clear()
        self._selector.close()

    def start(self, item: T) -> None:
        """Begin to work on an item."""
        reading_end, writing_end = os.pipe()
        # Ctrl-C between the fork and its handling in the child would run this program twice.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            pid = os.fork()
            if pid == 0:
                self._be_child(item, writing_end)
            os.close(writing_end)
            self._children[reading_end] = _Child(item, pid, time.monotonic())
            self._selector.register(reading_end, selectors.EVENT_READ)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def wait(self, wait_s: float) -> list[EndedChild[T]]:
        """The children that have ended, after at most `wait_s`."""
        now_s = time.monotonic()
        for child in self._children.values():
            if now_s - child.began_s > self._limit_s + _GRACE_S:
                _kill(child)
        ended: list[EndedChild[T]] = []
        for key, _ in self._selector.select(wait_s):
            piece = os.read(key.fd, _PIECE)
            if piece:
                self._children[key.fd].pieces.append(piece)
            else:
                ended.append(self._reap(key.fd))
        return ended

    def _reap(self, reading_end: int) -> EndedChild[T]:
        child = self._children.pop(reading_end)
        self._selector.unregister(reading_end)
        os.close(reading_end)
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.monotonic() - child.began_s
        code = os.waitstatus_to_exitcode(status)
        late = code != 0 and (child.killed or wall_s >= self._limit_s)
        return EndedChild(child.item, b"".join(child.pieces), code, late, used.ru_utime + used.ru_stime, wall_s)

    def _be_child(self, item: T, writing_end: int) -> NoReturn:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            try:
                output = os.open(self._output(item), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError:
                # Who waits has removed the folder, as at Ctrl-C, or will find no output in it and say why.
                os._exit(FAILED)
            for stream in (1, 2):
                os.dup2(output, stream)
            faulthandler.enable(output)
            # Also the end of a child whose parent was killed.
            faulthandler.dump_traceback_later(self._limit_s, exit=True, file=output)
            answer = self._work(item)
            while answer:
                answer = answer[os.write(writing_end, answer) :]
            os._exit(0)
        except BaseException:  # noqa: BLE001 - nothing of the parent's may run on in the child
            with suppress(BaseException):
                os.write(2, traceback.format_exc().encode(errors="replace"))
        finally:
            os._exit(FAILED)


def _kill(child: _Child[T]) -> None:
    child.killed = True
    with suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
