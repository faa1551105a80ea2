"""The seeds of a campaign, as people write them: `1-100`, `1-10, 50`, or a list of numbers."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from emulator.base.text import listed
from emulator.spec.tables.mistakes import SpecError
from nodes.fields import LONG_MAX, quoted, shown

SEEDS_MAX = 1_000_000
_EXPECTED = 'seeds such as "1-100", "1-10, 50" or [1, 2, 5]'


def read_seeds(key: str, value: Any) -> tuple[int, ...]:
    """The seeds in a value of a campaign file, or of an option, in ascending order.

    Args:
        key: where the value stands, for messages.
        value: a text of numbers and ranges, which include both their ends, or a list of numbers.

    Raises:
        SpecError: it names no seeds, one of them twice, or too many.
    """
    seeds: list[int] = []
    for first, last in _ranges(key, value):
        if last - first + len(seeds) >= SEEDS_MAX:
            raise SpecError(key, f"expected {SEEDS_MAX:,} seeds at most")
        seeds += range(first, last + 1)
    if not seeds:
        raise SpecError(key, f"expected at least one seed: {_EXPECTED}")
    seeds.sort()
    twice = [str(item) for item, other in pairwise(seeds) if item == other]
    if twice:
        raise SpecError(key, f"expected each seed once, but there twice: {listed(twice)}")
    return tuple(seeds)


def seeds_text(seeds: Sequence[int]) -> str:
    """Ascending seeds as `read_seeds` reads them: `1-10, 50`."""
    ranges: list[list[int]] = []
    for seed in seeds:
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)


def _ranges(key: str, value: Any) -> Iterator[tuple[int, int]]:
    if isinstance(value, str):
        for piece in value.split(",") if value.strip() else ():
            yield _range(key, piece.strip())
    elif isinstance(value, list):
        for seed in value:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LONG_MAX:
                raise SpecError(key, f"expected seeds from 0 to {LONG_MAX}, not {quoted(seed)}")
            yield seed, seed
    else:
        raise SpecError(key, f"expected {_EXPECTED}, not {quoted(value)}")


def _range(key: str, piece: str) -> tuple[int, int]:
    first, dash, last = (part.strip() for part in piece.partition("-"))
    low, high = _number(key, piece, first), _number(key, piece, last if dash else first)
    if high < low:
        raise SpecError(key, f"expected a range that goes up, not {shown(piece)}; write {high}-{low}")
    return low, high


def _number(key: str, piece: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(LONG_MAX)) or int(text) > LONG_MAX:
        raise SpecError(key, f'expected {_EXPECTED}, not "{shown(piece)}"; a seed is at most {LONG_MAX}')
    return int(text)
