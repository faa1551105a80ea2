"""The legend of a picture, and the patterns that are laid over the colours of owners."""

from collections.abc import Iterable
from html import escape

from emulator.analysis.measures.broker_states import BrokerState
from emulator.analysis.rendering.canvas import element

ASLEEP, AWAY, READ_ONLY = "asleep", "away", "read-only"
"""Names of patterns."""
PATTERN_OF = {BrokerState.AWAY: AWAY, BrokerState.READ_ONLY: READ_ONLY}
_MEANS = {
    ASLEEP: "its owner is suspended",
    AWAY: "its broker is dead, suspended or not listed",
    READ_ONLY: "its broker is read only",
}


def legend(colours: dict[str, str], css: dict[str, str]) -> str:
    """All marks of a picture, in words.

    Args:
        colours: mapping owner -> its colour.
        css: mapping owner -> its CSS class.
    """

    def item(swatch: str, label: str, name: str = "") -> str:
        return f'<li class="{name}"><svg viewBox="0 0 26 14" aria-hidden="true">{swatch}</svg>{escape(label)}</li>'

    def box(**attributes: object) -> str:
        return element("rect", width=26, height=14, rx=2, **attributes)

    owners = [item(box(fill=colour), name, css[name]) for name, colour in colours.items()]
    stripes = hatch("legend-both", list(colours.values())[:2] or ["#888888"])
    return (
        f'<ul class="legend">{"".join(owners)}'
        + item(
            f"<defs>{stripes}</defs>" + box(fill="url(#legend-both)"), "two or more own it (stripes in their colours)"
        )
        + item(box(style="fill:var(--nobody)"), "no consumer owns it")
        + "".join(
            item(f"<defs>{drawn}</defs>" + box(fill="#888888") + box(fill=f"url(#legend-{name})"), _MEANS[name])
            for name, drawn in _drawn("legend-").items()
        )
        + item(element("path", d="M0 14V9H8V3H17V7H26V14Z", class_="load"), "requests without messages, lag")
        + item(box(class_="storm"), "request storm")
        + item(element("rect", y=5, width=26, height=4, style="fill:var(--differ)"), "views differ")
        + item(box(style="fill:var(--fault);fill-opacity:.35"), "fault")
        + "</ul>"
    )


def hatch(name: str, colours: Iterable[str]) -> str:
    """A pattern of stripes; owners of one colour have stripes of the paper between them, else none would be seen.

    Args:
        name: id of the pattern.
        colours: of the owners.
    """
    distinct = list(dict.fromkeys(colours))
    stripes = [*distinct, "var(--paper)"] if len(distinct) == 1 else distinct
    size = 5
    rects = "".join(
        element("rect", x=number * size, width=size, height=size * len(stripes), style=f"fill:{colour}")
        for number, colour in enumerate(stripes)
    )
    width = size * len(stripes)
    return element(
        "pattern",
        rects,
        id=name,
        width=width,
        height=width,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )


def _drawn(prefix: str) -> dict[str, str]:
    """The patterns that are laid over owners, by name."""
    stripe = element("path", d="M0 0V6", class_="sleep")
    cross = element("path", d="M0 3H6M3 0V6", class_="away")
    line = element("path", d="M0 0H6", class_="read-only")
    turned = {"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    return {
        name: element("pattern", content, id=f"{prefix}{name}", width=6, height=6, **turned)
        for name, content in ((ASLEEP, stripe), (AWAY, cross), (READ_ONLY, line))
    }


def patterns(prefix: str) -> str:
    """The patterns that say why nothing is consumed although a queue has an owner."""
    return "".join(_drawn(prefix).values())
