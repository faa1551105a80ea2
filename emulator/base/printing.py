"""Printing on standard output and standard error; nothing else of the emulator does, apart from `rich_texts`."""

import sys
import traceback
from pathlib import Path

from nodes.visible import visible


def print_line(line: str | Path = "", *, err: bool = False) -> None:
    """Print one line, at once; whatever texts are in it, it stays one line and commands no terminal."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{visible(str(line))}\n")
    stream.flush()


def print_cells(*cells: str) -> None:
    """Print one line of cells, with tabs between them."""
    sys.stdout.write("\t".join(map(visible, cells)) + "\n")


def print_json(text: str) -> None:
    """Print a JSON document; its line breaks are between values, for those within a text are escaped."""
    for line in text.split("\n"):
        print_line(line)


def print_traceback() -> None:
    """Print the traceback of the exception that is handled, on stderr; each line is indented: it may be of a guest."""
    for line in traceback.format_exc().rstrip("\n").split("\n"):
        print_line(f"  {line}", err=True)
