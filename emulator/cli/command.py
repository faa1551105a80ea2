"""The command `rmqemu`: loads the command line, which may fail before any of its errors can be caught.

Python would end with status 1 then, which says that an oracle was violated. Signals end a command as Ctrl-C does.
"""

import atexit
import gc
import os
import signal
import traceback
from types import FrameType
from typing import NoReturn

from emulator.base.process_wide import look_for_garbage_rarely

_BAD_INPUT, _INTERRUPTED = 2, 130
_ENDING = (signal.SIGTERM, signal.SIGHUP)
"""They end a command as Ctrl-C does: what it has made for itself is removed."""
_OUT_OF_MEMORY = b"rmqemu: out of memory while it was loaded; nothing was done\n"


def main() -> None:
    """Run the command line."""
    look_for_garbage_rarely()
    # The last thing that is done: at its end Python would look twice through all that was imported. With the threshold
    # this is a third of the CPU time of a command that is as brief as `rmqemu check`.
    atexit.register(gc.freeze)
    try:
        from emulator.cli.main import app
        from emulator.cli.terminal import NAME
    except KeyboardInterrupt:
        _end(b"", _INTERRUPTED)
    except (MemoryError, SystemError):  # SystemError: memory ran out where Python's own code does not expect it
        _end(_OUT_OF_MEMORY)
    except Exception:  # noqa: BLE001 - a package that is missing or broken, or a module that had no memory
        try:
            _end(traceback.format_exc().encode())
        except MemoryError:
            _end(_OUT_OF_MEMORY)
    _end_on_signals()
    app(prog_name=NAME)


def _end(text: bytes, status: int = _BAD_INPUT) -> NoReturn:
    """End at once: there may be no memory to end in good order."""
    os.write(2, text)
    os._exit(status)


def _end_on_signals() -> None:
    """Have the first of them do what Ctrl-C does, whatever that is then, and the second end the process at once.

    A signal that is ignored stays so, as with `nohup`.
    """
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    for number in _ENDING:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)
    of_ctrl_c = signal.getsignal(signal.SIGINT)
    if not callable(of_ctrl_c):  # ignored, as in a job that a script has in the background
        raise KeyboardInterrupt
    of_ctrl_c(signal.SIGINT, frame)
