"""What a forked child says of its case: its line, why the disk cannot take it, or how it died."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emulator.base.errors import one_line
from emulator.campaign.campaign import Case
from emulator.campaign.case import DiskError
from emulator.campaign.forked import EndedChild
from emulator.campaign.results import CaseResult, Outcome, line_of, read_line
from emulator.trace.seals import BrokenSealError

OUTPUT = "output.txt"
"""What a process of a case printed, next to its trace: the traceback of a crash, or where it hung."""
_FRAME = re.compile(r'^  File "(?:.*[/\\])?(.+?)", line (\d+) in (.+)$', re.MULTILINE)


def answer_of(execute: Callable[[], CaseResult]) -> bytes:
    """The answer of a child that runs a case."""
    try:
        return line_of(execute()).encode()
    except (DiskError, OSError) as error:
        return json.dumps({"disk": str(error)}).encode()


def answered(ended: EndedChild[Any]) -> CaseResult:
    """The case of a child that answered.

    Raises:
        DiskError: the child could not write.
    """
    try:
        return read_line(ended.answer)
    except BrokenSealError:
        raise DiskError(json.loads(ended.answer)["disk"]) from None


def died(case: Case, ended: EndedChild[Any], output: str, timeout_ms: int) -> CaseResult:
    """The case of a child that died.

    Args:
        case: that it executed.
        ended: the child.
        output: what it printed.
        timeout_ms: how long it had.
    """
    outcome = Outcome.HUNG if ended.late else Outcome.CRASHED
    frame = _FRAME.search(output)
    where = f", in {frame[3]} ({frame[1]}:{frame[2]})" if frame else ""
    late = f"it had not ended after {timeout_ms / 1_000:g} s of wall time{where}"
    text = late if ended.late else _death(output, ended.exit_code, where)
    return CaseResult(case=case, outcome=outcome, reasons=(one_line(text),))


def printed_by(scratch: Path) -> str:
    """What the process of a case printed."""
    return (scratch / OUTPUT).read_text(encoding="utf-8", errors="replace")


def _death(output: str, exit_code: int, where: str) -> str:
    if exit_code == -signal.SIGKILL:
        return "its process was killed by SIGKILL, as the kernel does when memory runs out"
    if exit_code < 0:
        name = next((Signal.name for Signal in signal.Signals if Signal == -exit_code), f"signal {-exit_code}")
        return f"its process was killed by {name}{where}"
    last = (output.strip().splitlines() or ["without a word"])[-1]
    return f"its process ended with status {exit_code}: {last}"
