"""Numbers with their units, in words."""

import math
from collections.abc import Sequence

_UNITS = ("s", "ms", "bytes")
_NS_PER_S = 1e9
_WHOLE_FROM = 100


def name_of(measure: str) -> str:
    """`overlap_total_s`: overlap total."""
    stem, _, unit = measure.rpartition("_")
    return (stem if stem and unit in (*_UNITS, "ns", "count") else measure).replace("_", " ")


def unit_of(measure: str) -> str:
    """The unit at the end of a column's name, with a space before it; ns are reported in s. Empty: a plain number."""
    unit = measure.rpartition("_")[2] if "_" in measure else ""
    return " s" if unit == "ns" else f" {unit}" if unit in _UNITS else ""


def heading_with_unit(heading: str, measure: str) -> str:
    """The heading of a measure with its unit, unless it ends with that."""
    unit = unit_of(measure)
    return heading if heading.endswith(unit) else f"{heading}{unit}"


class Amounts:
    """Writes amounts of one measure, all with as many decimals as the largest needs.

    Args:
        measure: name of the column, with the unit last.
        largest: numbers that will be written.
    """

    def __init__(self, measure: str, largest: Sequence[float]) -> None:
        self._unit = unit_of(measure)
        self._scale = _NS_PER_S if measure.endswith("_ns") else 1.0
        finite = [abs(number) / self._scale for number in largest if math.isfinite(number)]
        self._decimals = _decimals(max(finite, default=0.0))

    def plain(self, number: float) -> str:
        """`12.3`; `not yet` where it is infinite, `unknown` where it is NaN."""
        if math.isnan(number):
            return "unknown"
        if math.isinf(number):
            return "not yet"
        return f"{number / self._scale:,.{self._decimals}f}"

    def full(self, number: float) -> str:
        """`12.3 s`."""
        answer = self.plain(number)
        return f"{answer}{self._unit}" if math.isfinite(number) else answer


def _decimals(largest: float) -> int:
    if largest >= _WHOLE_FROM or largest == 0:
        return 0
    return 1 if largest >= 1 else 1 - math.floor(math.log10(largest))


def percent(part: float) -> str:
    """`34 %`, `3.6 %`, `0.5 %`."""
    return f"{100 * part:.1f} %" if 0 < part < 0.1 else f"{100 * part:.0f} %"


def counted(number: int, noun: str) -> str:
    """`1 seed`, `12 seeds`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
