"""The command `rmqemu`: loads the command line, which may fail before any of its errors can be caught.

Python would end with status 1 then, which says that an oracle was violated.
"""

import os
import traceback
from typing import NoReturn

_BAD_INPUT, _INTERRUPTED = 2, 130
_OUT_OF_MEMORY = b"rmqemu: out of memory while it was loaded; nothing was done\n"


def main() -> None:
    """Run the command line."""
    try:
        from emulator.cli.main import app
        from emulator.cli.signals import end_on_signals
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
    end_on_signals()
    app(prog_name=NAME)


def _end(text: bytes, status: int = _BAD_INPUT) -> NoReturn:
    """End at once: there may be no memory to end in good order."""
    os.write(2, text)
    os._exit(status)
