"""The table that `make bench` prints."""

from rich.table import Table
from rich.text import Text

from emulator.bench.catalogue import Benchmark
from emulator.bench.figures import Row


def render(measured: list[tuple[Benchmark, Row]]) -> Table:
    """One line per figure, with a tick or a cross at its floor."""
    table = Table(title="Benchmarks: medians; spread is from the smallest to the largest run")
    for heading in ("name", "value", "unit", "spread", "ratio", "ratio 2", "floor", "run beside"):
        right = heading in ("value", "spread", "ratio", "ratio 2")
        table.add_column(heading, justify="right" if right else "left", overflow="fold" if not right else "ellipsis")
    for benchmark, row in measured:
        table.add_row(
            row.name,
            _number(row.value),
            row.unit,
            f"{row.spread_pct:.0f} %",
            _number(row.ratio),
            _number(row.ratio_2),
            _verdict(benchmark, row),
            row.reference if row.reference_2 is None else f"{row.reference}; 2: {row.reference_2}",
        )
    return table


def _number(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if figure >= 1_000 else f"{figure:.3g}"


def _verdict(benchmark: Benchmark, row: Row) -> Text:
    floor = benchmark.floor
    if floor is None:
        return Text("")
    met = floor.is_met(row)
    return Text(f"{'✓' if met else '✗'} {floor}", style="green" if met else "red")
