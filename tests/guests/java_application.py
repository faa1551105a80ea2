"""An application in a JVM of its own (`java/Application.java`) next to a cluster, and what it reports line by line."""

import signal
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_SOURCE = Path(__file__).parent / "java" / "Application.java"


class JavaApplication:
    """Runs until its block is left.

    Args:
        words: `produce NAMESRV TOPIC PER_SECOND ROUTE_MS` or `consume NAMESRV TOPIC HEARTBEAT_MS`.
        key: `ACCESS:SECRET` of the account with which it signs; empty: it does not sign.
    """

    def __init__(self, class_path: str, *words: object, key: str = "") -> None:
        self._command = ["java", f"-Dkey={key}", "-cp", class_path, str(_SOURCE), *map(str, words)]
        self.lines: list[tuple[float, str]] = []
        """(seconds of `time.monotonic`, what was reported)."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def freeze(self) -> None:
        """SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def reported(self, begin: str, since_s: float = 0) -> list[str]:
        """What was reported since an instant, of lines that begin so."""
        return [line for at_s, line in list(self.lines) if at_s >= since_s and line.startswith(begin)]

    def wait_for(self, begin: str, *, count: int = 1, since_s: float = 0, within_s: float = 60) -> list[str]:
        """The first lines that begin so; fails with what was reported where they do not come."""
        deadline_s = time.monotonic() + within_s
        while len(found := self.reported(begin, since_s)) < count:
            lines = [line for _, line in self.lines[:30]]
            assert time.monotonic() < deadline_s, f"no {count} x {begin!r} in {within_s} s: {lines}"
            time.sleep(0.05)
        return found[:count]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append((time.monotonic(), line.rstrip()))
