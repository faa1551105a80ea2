"""Quoted outputs in pages: where they stand, whether they are true, and how they are written again.

A page quotes an output as a block whose lines are indented by four spaces: below a line `$ COMMAND` of the block, or as
a whole block below a line that the table names. The lines of a quote stand in the output in the same order, one after
the other; a line `...` stands for lines that are left out, and `...` at the end of a line for the rest of it.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import attrs

INDENT = "    "
LEFT_OUT = "..."
_COMMAND = f"{INDENT}$ "
_ALIKE_MIN = 0.5
"""How alike two lines are, but for their digits, if one is the other's renewal."""


class QuoteError(Exception):
    """A page has no such block; the text says which one is missing."""


@attrs.frozen
class Place:
    """Lines of a page."""

    first: int
    """Index of the first line."""
    end: int
    """Index behind the last line."""


def commands(page: str) -> list[str]:
    """The commands that a page quotes, without `$ `."""
    return [line.removeprefix(_COMMAND) for line in page.splitlines() if line.startswith(_COMMAND)]


def below_command(page: str, command: str) -> Place:
    """Where the output of a quoted command stands.

    Raises:
        QuoteError: the page does not quote it, or quotes it twice.
    """
    lines = page.splitlines()
    found = [number for number, line in enumerate(lines) if line == f"{_COMMAND}{command}"]
    if len(found) != 1:
        raise QuoteError(f"{len(found)} lines `$ {command}`, expected one")
    return _block(lines, found[0] + 1)


def below_text(page: str, text: str) -> Place:
    """Where the first block below a line of prose stands.

    Args:
        page: content of the page.
        text: a part of that line, which no other line has.

    Raises:
        QuoteError: there is no such line or block, or several lines have the text.
    """
    lines = page.splitlines()
    found = [number for number, line in enumerate(lines) if text in line and not line.startswith(INDENT)]
    if len(found) != 1:
        raise QuoteError(f"{len(found)} lines with {text!r}, expected one")
    first = next((number for number in range(found[0] + 1, len(lines)) if lines[number].startswith(INDENT)), None)
    if first is None:
        raise QuoteError(f"no block below {text!r}")
    return _block(lines, first + lines[first].startswith(_COMMAND))


def _block(lines: Sequence[str], first: int) -> Place:
    end = first
    for number in range(first, len(lines)):
        if lines[number].startswith(_COMMAND) or (lines[number] and not lines[number].startswith(INDENT)):
            break
        if lines[number]:
            end = number + 1
    return Place(first, end)


def quoted(page: str, place: Place) -> list[str]:
    """The lines of a quote, without their indentation."""
    return [line.removeprefix(INDENT) for line in page.splitlines()[place.first : place.end]]


def with_quote(page: str, place: Place, lines: Sequence[str]) -> str:
    """The page with other lines at a place."""
    every = page.splitlines()
    every[place.first : place.end] = [f"{INDENT}{line}".rstrip() for line in lines]
    return "\n".join(every) + "\n"


# --- comparing ----------------------------------------------------------------------------


def untrue_line(quote: Sequence[str], output: Sequence[str]) -> str | None:
    """The first line of a quote that is not in the output where it should be; None: the quote is true.

    Args:
        quote: its lines.
        output: all lines that the command printed, without spaces at their ends.
    """
    places: list[int] | range = range(len(output))
    """Where the next line may be: the first one anywhere, another one behind that before it."""
    for line in quote:
        if line.strip() == LEFT_OUT:
            places = range(min(places, default=len(output)), len(output))
            continue
        found = [place for place in places if place < len(output) and _shows(line, output[place])]
        if not found:
            return line
        places = [place + 1 for place in found]
    return None


def _shows(line: str, true: str) -> bool:
    if line.endswith(LEFT_OUT):
        return true.startswith(line.removesuffix(LEFT_OUT).rstrip())
    return line == true


# --- writing again ------------------------------------------------------------------------


def renewed(quote: Sequence[str], output: Sequence[str]) -> list[str]:
    """A quote with the lines of the output that are most like its own, and `...` where others are left out.

    Args:
        quote: its lines.
        output: all lines that the command printed, without spaces at their ends.
    """
    if untrue_line(quote, output) is None:
        return list(quote)
    return list(_renewed(quote, output))


def _renewed(quote: Sequence[str], output: Sequence[str]) -> Iterator[str]:
    place, gap, is_first = 0, False, True
    for line in quote:
        found = None if line.strip() == LEFT_OUT else _most_alike(line, output, place)
        if found is None or (not line and found != place):
            gap = True
            continue
        if (gap or found != place) and not (is_first and not gap):
            yield LEFT_OUT
        yield _cut_like(line, output[found])
        place, gap, is_first = found + 1, False, False
    if gap:
        yield LEFT_OUT


def _most_alike(line: str, output: Sequence[str], begin: int) -> int | None:
    """Index of the line from `begin` on that is most like this one, the nearest of several; None: none is like it."""
    wanted = _stable(line)
    ratios = [(_ratio(wanted, _stable(true)), -place) for place, true in enumerate(output[begin:], begin)]
    best, place = max(ratios, default=(0.0, 0))
    return -place if best >= _ALIKE_MIN else None


def _ratio(wanted: str, found: str) -> float:
    if wanted == found:
        return 1.0
    shorter = found[: len(wanted)] if wanted else found
    return SequenceMatcher(None, wanted, shorter, autojunk=False).ratio()


def _stable(line: str) -> str:
    """What stays of a line when figures change."""
    return re.sub(r"\d[\d,.]*", "0", line.removesuffix(LEFT_OUT)).strip()


def _cut_like(line: str, true: str) -> str:
    """The true line, as short as the one in the page if that leaves its rest out."""
    if not line.endswith(LEFT_OUT):
        return true
    words = len(line.removesuffix(LEFT_OUT).split())
    parts = re.findall(r"\s*\S+", true)
    return f"{''.join(parts[:words])} {LEFT_OUT}" if len(parts) > words else true
