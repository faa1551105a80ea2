"""The colours of pictures, and their style sheet for light and dark mode."""

from collections.abc import Iterable

# Wong's colours without vermillion, then Tol's: distinct for colour-blind people, none near the red of an orphan.
OWNER_COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#f0e442",
    "#5b4bb3",
    "#999933",
    "#7fd1c7",
    "#8a8a8a",
    "#a6761d",
    "#b7d48a",
)

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2127; --faint: #66707a; --line: #d5dae0; --lane: #f3f5f7;
  --fault: #8a94a6; --nobody: #d0101c; --differ: #3b4351; --load: #5f7f9f; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e8ebee; --faint: #9aa4ae; --line: #333b44; --lane: #1d232a;
    --fault: #7d8798; --nobody: #ff3b45; --differ: #c3ccd8; --load: #86a5c4; }
}
body { margin: 0; padding: 20px 24px; background: var(--paper); color: var(--ink);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 19px; margin: 0 0 2px; }
h2 { font-size: 16px; margin: 18px 0 2px; }
p { margin: 2px 0; color: var(--faint); }
p b { color: var(--ink); }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 6px 16px; padding: 0; margin: 12px 0 8px; }
ul.legend li { display: flex; align-items: center; gap: 6px; cursor: default; }
ul.legend svg { width: 26px; height: 14px; }
.verdict { font-size: 13px; font-weight: 600; padding: 1px 9px; border-radius: 9px; margin-left: 8px; color: #fff; }
.valid, .calm { background: #16794c; } .invalid, .paging { background: #c01622; }
.unknown, .degraded { background: #8a6100; }
svg.chart { width: 100%; min-width: 900px; height: auto; display: block; }
svg text { fill: var(--ink); font-size: 11px; }
svg .head { font-size: 12px; font-weight: 600; }
svg .small { font-size: 10px; font-weight: 400; fill: var(--faint); }
svg .lane { fill: var(--lane); }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .band { fill: var(--fault); fill-opacity: .16; }
svg .edge { stroke: var(--fault); stroke-width: 1; stroke-dasharray: 3 3; }
svg .span { fill: var(--fault); }
svg .both { stroke: var(--ink); stroke-width: .8; }
svg .sleep { stroke: var(--paper); stroke-width: 5; stroke-opacity: .75; }
svg .away { stroke: var(--paper); stroke-width: 1.6; fill: none; }
svg .read-only { stroke: var(--paper); stroke-width: 1.6; }
svg .differ { fill: var(--differ); }
svg .nobody { fill: var(--nobody); }
svg .load { fill: var(--load); }
svg .storm { fill: var(--nobody); fill-opacity: .45; }
svg .own:hover, svg .both:hover, svg .nobody:hover { stroke: var(--ink); stroke-width: 1.5; }
svg .inside { fill: #101418; font-size: 10px; pointer-events: none; }
svg .inside.pale { fill: #ffffff; }
"""


def colour_of(names: Iterable[str]) -> dict[str, str]:
    """Mapping name -> colour, in the order of the names; colours repeat after the last one."""
    return {name: OWNER_COLOURS[number % len(OWNER_COLOURS)] for number, name in enumerate(names)}


def is_dark(colour: str) -> bool:
    """Whether white text is more readable on a colour than black text."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return 299 * red + 587 * green + 114 * blue < 128_000


def highlight_rules(classes: Iterable[str]) -> str:
    """CSS rules that dim all other owners while the pointer is on one in the legend."""
    return "".join(
        f"body:has(.legend .{name}:hover) svg.chart .own:not(.{name}) {{ fill-opacity: .12; }}\n" for name in classes
    )
