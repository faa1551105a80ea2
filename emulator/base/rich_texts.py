"""Texts, tables and the console of rich for texts of others: no markup, and one line where one line is meant."""

from collections.abc import Iterable, Sequence
from typing import Any

import rich.console
import rich.table
import rich.text
from rich.containers import Lines
from rich.segment import Segment

from nodes.visible import visible

_INDENT = 2
_WIDTH_MIN = 8
"""Narrower columns have no room for an indent."""


class Text(rich.text.Text):
    """A text of one line; `in_lines` makes several.

    Where it is too long for the terminal, what follows the first line is indented: else a text could choose the words
    with which a line begins.
    """

    def __init__(self, text: str = "", style: Any = "", **options: Any) -> None:
        super().__init__(visible(text), style, **options)
        self.indents = True
        """Whether lines are indented; not behind the first column of a table, where no line begins."""

    def append(self, text: rich.text.Text | str, style: Any = None) -> "Text":
        """Append a text, which stays in the line."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self

    def wrap(self, console: rich.console.Console, width: int, **options: Any) -> Lines:
        """The lines in which it is written."""
        whole = super().wrap(console, width, **options)
        if not self.indents or len(whole) < 2 or width < _WIDTH_MIN or options.get("justify") == "right":
            return whole
        lines = Lines()
        for line in self.split(allow_blank=True):
            first, *others = rich.text.Text.wrap(line, console, width, **options)
            lines.append(first)
            if others:
                taken = len(first.plain.rstrip())  # in a column it is padded to its width
                rest = line[taken + len(line.plain[taken:]) - len(line.plain[taken:].lstrip()) :]
                for other in rich.text.Text.wrap(rest, console, width - _INDENT, **options):
                    other.pad_left(_INDENT)
                    lines.append(other)
        return lines


def in_lines(texts: Iterable[rich.text.Text | str]) -> Text:
    """A text for each line."""
    whole = Text()
    for number, text in enumerate(texts):
        if number:
            rich.text.Text.append(whole, "\n")
        whole.append_text(Text(text) if isinstance(text, str) else text)
    return whole


class TextTable(rich.table.Table):
    """A table whose cells are texts of one line, or sequences of lines."""

    def __init__(self, *, title: str | None = None, title_style: str = "table.title", **options: Any) -> None:
        super().__init__(title=None if title is None else Text(title, title_style), **options)

    def add_column(self, header: Any = "", *arguments: Any, **options: Any) -> None:
        """Add a column with a heading of one line."""
        super().add_column(Text(header) if isinstance(header, str) else header, *arguments, **options)

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row of texts, sequences of lines, and what rich renders."""
        texts = [_text(cell) for cell in cells]
        for text in texts[1:]:
            if isinstance(text, Text):
                text.indents = False
        super().add_row(*texts, **options)


def _text(cell: Any) -> Any:
    if isinstance(cell, str):
        return Text(cell)
    return in_lines(cell) if isinstance(cell, Sequence) else cell


class Console(rich.console.Console):
    """A console that takes texts as they are: without markup and emoji codes, each printed text in one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        """A text that was given as a string."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """What is written; if a text has come past the classes above, only its line breaks are left."""
        for segment in super().render(renderable, options):
            text = segment.text
            if segment.control or text == "\n" or text.isprintable():
                yield segment
            else:
                yield Segment("\n".join(map(visible, text.split("\n"))), segment.style)
