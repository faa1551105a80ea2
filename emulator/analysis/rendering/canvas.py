"""SVG elements for pictures over time."""

from collections.abc import Iterable, Sequence
from html import escape

import attrs

from nodes.units import NS_PER_S

TICKS_MAX = 13
CHARACTER_PX = 6.7
"""Width of a character of a label, rather too much: the font of a reader is unknown, and labels must not collide."""
BAR_PX_MIN = 1.0
"""Minimum width of a bar, so that short intervals are visible."""


Label = tuple[int, int, str, str]
"""start_ns, end_ns, text, when."""


@attrs.frozen
class Axis:
    """The time axis, from left to right."""

    left: int
    right: int
    end_ns: int

    def x(self, t_ns: int) -> float:
        """The x coordinate of an instant."""
        share = t_ns / self.end_ns if self.end_ns else 0.0
        return round(self.left + (self.right - self.left) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """(x, label) of ticks at round seconds."""
        step_s = next(
            size * 10**power
            for power in range(-3, 9)
            for size in (1, 2, 5)
            if self.end_ns <= size * 10**power * 1e9 * TICKS_MAX
        )
        count = int(self.end_ns / 1e9 / step_s + 1e-9)
        return [(self.x(round(n * step_s * 1e9)), f"{n * step_s:g} s") for n in range(count + 1)]

    def label_at(self, t_ns: int, label: str) -> tuple[float, str]:
        """(x, text-anchor) of the label of an instant: to its right, or to its left near the right edge."""
        x = self.x(t_ns)
        if x + len(label) * CHARACTER_PX > self.right:
            return self.right, "end"
        return x, "start"


def label_lanes(axis: Axis, labels: Iterable[Label]) -> list[tuple[int, Label]]:
    """Assign labels to as few lanes as possible without overlap.

    Args:
        axis: of the picture.
        labels: in order of their start.

    Returns:
        Each label with its lane, from 0.
    """
    lanes: list[float] = []
    placed = []
    for label in labels:
        start_ns, end_ns, words, _ = label
        width = len(words) * CHARACTER_PX
        x, anchor = axis.label_at(start_ns, words)
        left = min(axis.x(start_ns), x - width) if anchor == "end" else x
        right = max(axis.x(end_ns), x if anchor == "end" else x + width)
        lane = next((number for number, taken in enumerate(lanes) if taken <= left), len(lanes))
        if lane == len(lanes):
            lanes.append(0.0)
        lanes[lane] = right + 8
        placed.append((lane, label))
    return placed


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An SVG element; a trailing underscore of an attribute's name is removed, and its value is escaped."""
    written = "".join(f' {key.rstrip("_")}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, words: str, *, anchor: str = "start", class_: str = "label") -> str:
    """A line of text."""
    return element("text", escape(words), x=x, y=y, class_=class_, **{"text-anchor": anchor})


def band(
    axis: Axis,
    start_ns: int,
    end_ns: int,
    top: float,
    bottom: float,
    class_: str,
    *,
    width_min: float = BAR_PX_MIN,
    **attributes: object,
) -> str:
    """A rectangle from one instant to another."""
    x = axis.x(start_ns)
    width = max(round(axis.x(end_ns) - x, 1), width_min)
    return element("rect", x=x, y=top, width=width, height=bottom - top, class_=class_, **attributes)


def area(axis: Axis, per_s: Sequence[int], top: float, bottom: float, class_: str) -> str:
    """An area over time, as high as its highest second; where several seconds share a pixel, the highest counts.

    Args:
        axis: of the picture.
        per_s: one number for each second from the begin of the run.
        top: y coordinate of the highest second.
        bottom: y coordinate of 0.
        class_: of the path.
    """
    maximum = max(per_s, default=0) or 1
    columns: dict[float, int] = {}
    for second, number in enumerate(per_s):
        x = round(axis.x(second * NS_PER_S))
        columns[x] = max(number, columns.get(x, 0))
    ends = [*list(columns)[1:], axis.x(len(per_s) * NS_PER_S)]
    steps = "".join(
        f"V{round(bottom - (bottom - top) * number / maximum, 1)}H{end}"
        for number, end in zip(columns.values(), ends, strict=True)
    )
    return element("path", d=f"M{next(iter(columns), axis.left)} {bottom}{steps}V{bottom}Z", class_=class_)


def titled(content: str, title: str, requested: Sequence[str] = ()) -> str:
    """Content with a tooltip; `requested` are the words of the question that explains it."""
    why = {"data-why": " ".join(requested)} if requested else {}
    return element("g", f"<title>{escape(title)}</title>{content}", **why)
