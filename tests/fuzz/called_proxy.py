"""`python -m fuzz.called_proxy`: a node that answers calls, in a live world of its own.

It prints its address, goes on until its standard input ends, and then prints one line of JSON: what went wrong.
"""

import json
import resource
import sys
from pathlib import Path
from typing import Any

import trio

from emulator.testing.trace import Trace
from emulator.testing.worlds import run_traced
from emulator.time.mode import TimeMode
from emulator.trace.schema import RPC, TraceTable
from support.dialed_proxy import DialedProxy
from support.limited import limit

_LIMITS = {"unsent_bytes": 2_000_000, "all_unsent_bytes": 8_000_000, "unfinished_bytes": 4_000_000, "silent_ms": 5_000}
_EVENT = RPC.index("event")


class _MalformedRows(Trace):
    """The rows of bytes that could not be read; all others would fill the memory."""

    def note(self, table: TraceTable, row: tuple[int | str, ...]) -> None:
        if table is RPC and row[_EVENT] == "malformed":
            super().note(table, row)


class _Errors:
    """A logger that retains errors."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def bind(self, **_fields: object) -> "_Errors":
        return self

    def info(self, event: str, **fields: object) -> None:
        """Not retained."""

    warning = info

    def error(self, event: str, **fields: object) -> None:
        self.lines.append(f"{event}: {fields}")


def _memory_bytes_max() -> int:
    """The most that this program has used: `ru_maxrss` begins with what the process that started it had."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    """Serve until standard input ends."""
    errors, rows = _Errors(), _MalformedRows()

    async def scene(world: Any) -> dict[str, Any]:
        stage: Any = DialedProxy(world)  # type: ignore[no-untyped-call]
        limit(stage, **_LIMITS)  # type: ignore[no-untyped-call]
        stage.body = b"x" * 1_000
        print(stage.address, flush=True)  # noqa: T201 - for the process that started it
        await trio.to_thread.run_sync(sys.stdin.read)
        return {"is_well": await stage.all_is_well()}

    result = run_traced(scene, rows, mode=TimeMode.LIVE, make_log=lambda _stamp: errors)
    used = resource.getrusage(resource.RUSAGE_SELF)
    result |= {"memory_bytes_max": _memory_bytes_max(), "cpu_s": used.ru_utime + used.ru_stime}
    malformed = [row["detail"].partition(": ")[2] for row in rows.select("rpc", event="malformed")]
    print(json.dumps({**result, "errors": errors.lines[:5], "malformed": malformed}))  # noqa: T201 - as above


if __name__ == "__main__":
    main()
