"""The output of a verb: lines of text, and HTML for a notebook."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import attrs

from emulator.analysis.rendering.palette import is_dark
from emulator.console.verb import Lines
from nodes.visible import visible


@attrs.frozen(repr=False)
class VerbOutput:
    """The output of a verb: lines, and how a notebook shows them."""

    lines: Lines
    html: str = attrs.field(default="", eq=False)
    """Empty: the lines are shown as text."""

    def __str__(self) -> str:
        return "\n".join(map(visible, self.lines))

    __repr__ = __str__

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, place: int) -> str:
        return self.lines[place]

    def _repr_html_(self) -> str:
        return self.html or f'<pre style="margin:0;background:transparent;color:inherit">{escape(str(self))}</pre>'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        bundle = {"text/plain": str(self)}
        return bundle | {"text/html": self.html} if self.html else bundle


ALARM = "#d0101c"
QUIET = "opacity:.6"
_FONT = "font:13px/1.45 system-ui,sans-serif;color:inherit"
_EDGE = "border:1px solid rgba(128,128,128,.35)"
_CELL = f"{_EDGE};padding:2px 8px;text-align:left;background:transparent;color:inherit"
_HEAD = f"{_CELL};font-weight:600;white-space:nowrap"


def text(content: str, style: str = "") -> str:
    """Escaped text with an optional style."""
    return f'<span style="{style}">{escape(content)}</span>' if style else escape(content)


def chip(content: str, colour: str, about: str = "") -> str:
    """Text on a coloured background, with a tooltip."""
    ink = "#ffffff" if is_dark(colour) else "#101418"
    return (
        f'<span title="{escape(about)}" style="display:inline-block;background:{colour};color:{ink};'
        f'padding:0 7px;border-radius:4px;margin:1px 2px">{escape(content)}</span>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the head is text, the cells are HTML."""
    top = "".join(f'<th style="{_HEAD}">{escape(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>" for row in rows)
    return f'<table style="border-collapse:collapse;{_FONT}"><tr>{top}</tr>{body}</table>'


def block(*parts: str) -> str:
    """Parts of HTML below each other."""
    return "".join(f'<div style="{_FONT};margin:3px 0">{part}</div>' for part in parts if part)
