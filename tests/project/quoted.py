"""Writes the outputs that pages quote again: `python -m project.quoted`; `--list` prints which they are.

Each command of the table in `project.quoted_pages` is executed once, in a temporary folder. A block keeps its choice of
lines: each is replaced by the true line that is most like it. Figures in prose are compared, and changed by people.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from project.quote_blocks import QuoteError, quoted, renewed, untrue_line, with_quote
from project.quote_runs import Workshop
from project.quoted_pages import (
    COMPARES,
    COUNTED,
    FIGURES,
    GENERATED,
    MEASURED,
    QUOTES,
    RENEWS,
    ROOT,
    Figure,
    Quote,
)

_COUNT = " | count"


def read(page: str) -> str:
    """The content of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def output_of(entry: Quote | Figure, workshop: Workshop) -> list[str]:
    """What the command of an entry prints."""
    if entry.needs is not None:
        workshop.prepare(entry.needs)
    command = entry.command.removesuffix(_COUNT)
    output = workshop.output(command)
    return COUNTED[command](output) if entry.command.endswith(_COUNT) else output


def problem_of_quote(entry: Quote, page: str, output: list[str]) -> str | None:
    """What is not true of a quote, with the command that writes it again; None: it is true."""
    try:
        line = untrue_line(quoted(page, entry.place(page)), output)
    except QuoteError as error:
        return f"{entry.page}: {error}; the table is tests/project/quoted_pages.py"
    if line is None:
        return None
    return f"{entry.page}: `{entry.command}` does not print this line here: {line!r}; `{RENEWS}` writes the true ones"


def problem_of_figure(entry: Figure, page: str, output: list[str]) -> str | None:
    """What is not true of a figure; None: it is true."""
    written, printed = entry.in_page(page), entry.in_output(output)
    if not written or not printed:
        which = entry.page if not written else f"the output of `{entry.command}`"
        return f"{which} has nothing like {entry.written if not written else entry.printed!r}"
    if written != printed:
        return f"{entry.page} has {written}, `{entry.command}` prints {printed}: change the page"
    return None


def renew(workshop: Workshop) -> Iterator[str]:
    """Write each quote that is not true again.

    Yields:
        A line for each page block that was written, and for each figure that somebody has to change.
    """
    for entry in QUOTES:
        page = read(entry.page)
        place, output = entry.place(page), output_of(entry, workshop)
        lines = renewed(quoted(page, place), output)
        if lines != quoted(page, place):
            (ROOT / entry.page).write_text(with_quote(page, place, lines), encoding="utf-8")
            yield f"written: {entry.name}"
    for figure in FIGURES:
        problem = problem_of_figure(figure, read(figure.page), output_of(figure, workshop))
        if problem is not None:
            yield problem


def table() -> Iterator[str]:
    """All quoted outputs and figures, a line each: page, part, the command that renews it, what compares it."""
    for quote in QUOTES:
        yield f"{quote.page} | block of `{quote.command}` | {RENEWS} | {COMPARES}{' (proofs)' if quote.is_slow else ''}"
    for figure in FIGURES:
        yield f"{figure.page} | figures `{figure.written}` of `{figure.command}` | an edit | {COMPARES}"
    for part in GENERATED:
        yield f"{part.page} | {part.part} | {part.command} | {part.test}"
    for measured in MEASURED:
        yield f"{measured.page} | measured: {measured.text} | {measured.command} | -"


def main() -> None:
    """Write the pages, or print the table."""
    if "--list" in sys.argv[1:]:
        print("page | part | renewed by | compared by")  # noqa: T201 - what the option is for
        print(*table(), sep="\n")  # noqa: T201
        return
    with tempfile.TemporaryDirectory(prefix="rmqemu-quotes-") as folder:
        for line in renew(Workshop(Path(folder))):
            print(line)  # noqa: T201 - what was done


if __name__ == "__main__":
    main()
