"""Printing next to a live cluster: a terminal that is stopped, or a pipe that no one reads, must not stop the nodes."""

import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread

import typer

from nodes.visible import visible

LINES_MAX = 10_000
"""Lines that may wait; further ones are counted, and not printed."""
_STDOUT = 1
_CLOSE_S = 2.0


class LinePrinter:
    """Prints lines in their order, in a thread of its own; only mode `live` has it."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[str | None] = SimpleQueue()
        self._left_out = 0
        self._thread: Thread | None = None

    def print(self, line: str) -> None:
        """Print a line when the reader has time for it; whatever texts are in it, it stays one line."""
        self.print_drawn(visible(line))

    def print_drawn(self, text: str) -> None:
        """The same of lines with colours that the console of `rich_texts` has drawn."""
        if self._waiting.qsize() >= LINES_MAX:
            self._left_out += 1
            return
        if self._thread is None:
            self._thread = Thread(target=self._print_all, name="printer", daemon=True)
            self._thread.start()
        if self._left_out:
            self._waiting.put(f"... {self._left_out} lines are left out: no one read them in time")
            self._left_out = 0
        self._waiting.put(text)

    def close(self) -> None:
        """Print what waits; gives up soon if no one reads it."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(_CLOSE_S)

    def _print_all(self) -> None:
        while (line := self._waiting.get()) is not None:
            try:
                _print(line)
            except BrokenPipeError:
                # The reader has gone (`| head`): end the run like Ctrl-C.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                signal.raise_signal(signal.SIGINT)


def _print(line: str) -> None:
    if sys.stdout is not sys.__stdout__:  # the prompt has replaced it, to draw itself again below the line
        typer.echo(line)
        return
    # Not through a buffer: its lock would be held for as long as no one reads, also at the end of the process.
    raw = f"{line}\n".encode("utf-8", "replace")
    while raw:
        raw = raw[os.write(_STDOUT, raw) :]
