"""SIGTERM and SIGHUP end a command as Ctrl-C does: what it has made for itself is removed."""

import signal
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def end_on_signals() -> None:
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
