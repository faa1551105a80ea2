"""What a call tells: lines for any terminal, and HTML for a notebook."""

from collections.abc import Iterator
from html import escape
from typing import Any

import attrs

from emulator.verbs.verb import Lines


@attrs.frozen(repr=False)
class Told:
    """Lines that were told, and how a notebook shows them."""

    lines: Lines
    html: str = attrs.field(default="", eq=False)
    """Empty: the lines as they are."""

    def __str__(self) -> str:
        return "\n".join(self.lines)

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
