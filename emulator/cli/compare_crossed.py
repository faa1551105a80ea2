"""`rmqemu compare` of a campaign with conditions: a table and a picture of all variants in all conditions."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from emulator.analysis.rendering.canvas import element
from emulator.analysis.rendering.palette import STYLE, colour_of
from emulator.base.amounts import Amounts, heading_with_unit
from emulator.base.rich_texts import Console, Text, TextTable
from emulator.campaign.compared import HEADINGS
from emulator.campaign.crossed import Crossed, CrossedCell, CrossedMeasure
from emulator.statistics import SEEDS_MIN, PairVerdict
from emulator.trace.files import RunFiles, put_in_place

_STYLES = {PairVerdict.BETTER: "green", PairVerdict.WORSE: "red"}
_AT_END, _CENTRED = {"text-anchor": "end"}, {"text-anchor": "middle"}
_WHISKER = "svg .whisker { stroke-width: 2; opacity: 0.6; }"
_LINE_PX, _LABEL_PX, _PLOT_PX, _PANEL_GAP_PX = 14, 170, 300, 40


def print_crossed(found: Crossed, console: Console) -> None:
    """Print a table for each measure: the first variant per run, the others as difference from it."""
    first, *others = found.variants
    lead = f"{found.seeds:,} seeds; {first} per run, the others as difference from it, paired by seed{_sure(found)}"
    console.print(lead, style="bold", highlight=False, soft_wrap=True)
    for measure in found.measures:
        table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column(heading_with_unit(HEADINGS[measure.measure], measure.measure), overflow="fold")
        for variant in found.variants:
            table.add_column(variant, justify="right", overflow="fold")
        for condition in found.conditions:
            cells = [measure.cells.get((variant, condition)) for variant in (first, *others)]
            table.add_row(condition, *(_reported(measure.measure, cell) for cell in cells))
        console.print()
        console.print(table)


def _sure(found: Crossed) -> str:
    return ", with 95 % intervals" if found.seeds >= SEEDS_MIN else f"; {SEEDS_MIN} are needed for intervals"


def _reported(measure: str, cell: CrossedCell | None) -> Text:
    if cell is None:
        return Text()
    figure = cell.mean if cell.against is None else cell.against.difference
    amounts = Amounts(measure, (figure.value,) if not figure.is_known else (figure.value, figure.low, figure.high))
    sign = "+" if cell.against is not None and figure.value > 0 else ""
    between = f" ({amounts.plain(figure.low)} to {amounts.plain(figure.high)})" if figure.is_known else ""
    text = f"{sign}{amounts.plain(figure.value)}{between}"
    style = _STYLES.get(cell.against.verdict, "") if cell.against is not None else ""
    return Text(text, style)


def draw_crossed(found: Crossed, path: Path, title: str) -> Path:
    """Draw all measures: a point for each variant in each condition, with its interval; returns the path."""
    put_in_place(RunFiles(), path, _page(found, title).encode())
    return path


def _page(found: Crossed, title: str) -> str:
    height = len(found.conditions) * (len(found.variants) + 1) * _LINE_PX + 60
    columns = 3
    panels = [
        element(
            "g",
            _panel(found, measure),
            transform=f"translate({place % columns * (_LABEL_PX + _PLOT_PX + _PANEL_GAP_PX)},"
            f"{place // columns * height + 40})",
        )
        for place, measure in enumerate(found.measures)
    ]
    width = columns * (_LABEL_PX + _PLOT_PX + _PANEL_GAP_PX)
    whole = height * -(-len(found.measures) // columns) + 50
    legend = "".join(_legend(found))
    drawing = element("svg", legend + "".join(panels), viewBox=f"0 0 {width} {whole}", class_="chart")
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}{_WHISKER}</style>'
    return (
        f'<!doctype html><html lang="en">{head}'
        f"<h1>{escape(title)}</h1><p>Mean per run over {found.seeds:,} seeds{_sure(found)}.</p>{drawing}</html>"
    )


def _legend(found: Crossed) -> Iterator[str]:
    x = 0
    for variant, colour in colour_of(found.variants).items():
        yield element("circle", cx=x + 6, cy=12, r=4, fill=colour)
        yield element("text", escape(variant), x=x + 14, y=16)
        x += 30 + 7 * len(variant)


def _panel(found: Crossed, measure: CrossedMeasure) -> str:
    figures = [cell.mean for cell in measure.cells.values()]
    largest = max((figure.high if figure.is_known else figure.value for figure in figures), default=0.0)
    scale = _PLOT_PX / largest if largest > 0 else 0.0
    amounts = Amounts(measure.measure, (largest,))
    heading = heading_with_unit(HEADINGS[measure.measure], measure.measure)
    parts = [element("text", escape(heading), x=0, y=0, class_="head")]
    y = 18
    for condition in found.conditions:
        label = escape(condition)
        parts.append(element("text", label, x=_LABEL_PX - 8, y=y + 10, **_AT_END))
        for variant, colour in colour_of(found.variants).items():
            cell = measure.cells.get((variant, condition))
            if cell is not None:
                parts.append(_point(cell, y + 6, scale, colour, amounts))
            y += _LINE_PX
        y += _LINE_PX
    bottom = y - _LINE_PX // 2
    parts.append(element("line", x1=_LABEL_PX, x2=_LABEL_PX, y1=12, y2=bottom, class_="grid"))
    parts.append(element("text", "0", x=_LABEL_PX, y=bottom + 14, **_CENTRED))
    end = _LABEL_PX + _PLOT_PX
    parts.append(element("text", amounts.full(largest), x=end, y=bottom + 14, **_AT_END))
    return "".join(parts)


def _point(cell: CrossedCell, y: int, scale: float, colour: str, amounts: Amounts) -> str:
    figure = cell.mean
    text = f"{cell.variant}, {cell.condition}: {amounts.full(figure.value)}"
    x = _LABEL_PX + figure.value * scale
    whisker = ""
    if figure.is_known:
        text += f" ({amounts.plain(figure.low)} to {amounts.plain(figure.high)})"
        left, right = (_LABEL_PX + bound * scale for bound in (figure.low, figure.high))
        whisker = element("line", x1=round(left, 1), x2=round(right, 1), y1=y, y2=y, stroke=colour, class_="whisker")
    dot = element("circle", element("title", escape(text)), cx=round(x, 1), cy=y, r=4, fill=colour)
    return whisker + dot
