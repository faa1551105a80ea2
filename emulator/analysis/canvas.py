"""The few SVG pieces a picture over time is made of."""

from collections.abc import Iterable
from html import escape

import attrs

TICKS_MAX = 13
CHARACTER_PX = 6.2
"""Width of a character of a label, about."""
BAR_PX_MIN = 1.0
"""What lasted a moment is still seen."""

Label = tuple[int, int, str, str]
"""start_ns, end_ns, text, when."""


@attrs.frozen
class Axis:
    """Time from left to right."""

    left: int
    right: int
    end_ns: int

    def x(self, t_ns: int) -> float:
        """Where an instant is."""
        share = t_ns / self.end_ns if self.end_ns else 0.0
        return round(self.left + (self.right - self.left) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of round seconds."""
        step_s = next(
            size * 10**power
            for power in range(-3, 9)
            for size in (1, 2, 5)
            if self.end_ns <= size * 10**power * 1e9 * TICKS_MAX
        )
        count = int(self.end_ns / 1e9 / step_s + 1e-9)
        return [(self.x(round(n * step_s * 1e9)), f"{n * step_s:g} s") for n in range(count + 1)]

    def label_at(self, t_ns: int, label: str) -> tuple[float, str]:
        """Where a label that belongs to an instant goes: behind it, or before it near the right edge."""
        x = self.x(t_ns)
        if x + len(label) * CHARACTER_PX > self.right:
            return self.right, "end"
        return x, "start"


def label_lanes(axis: Axis, labels: Iterable[Label]) -> list[tuple[int, Label]]:
    """Spread labels over as few lanes as keep them apart.

    Args:
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
    """One element; a trailing underscore of an attribute's name is dropped, its value escaped."""
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


def titled(content: str, title: str) -> str:
    """Something that says what it is while the pointer rests on it."""
    return f"<g><title>{escape(title)}</title>{content}</g>"
