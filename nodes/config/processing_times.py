"""How long a thread of a node is busy with a request: a grammar for people, and draws."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS, NS_PER_S
from nodes.values import frozen

OTHERS = "others"
"""Stands for all requests that are not named."""
_NAMES = frozenset((*RequestCode.__members__, OTHERS))
_NS_PER_UNIT: Mapping[str, int] = {"us": 1_000, "ms": NS_PER_MS, "s": NS_PER_S}
_TIME = r"(\d{1,6}(?:\.\d{1,3})?)(us|ms|s)"
_ENTRY = re.compile(rf"(\w+) +(?:(exponential) +)?{_TIME}(?:\.\.{_TIME})?")
_NAME, _SHAPE, _FIRST, _LAST = 1, 2, 3, 5
"""Groups of the pattern; the unit of a time follows its number."""
_TAIL_MAX = 1 - 2**-53
"""Largest draw of an exponential time, which would else have no end."""


class Distribution(StrEnum):
    """How processing times are distributed."""

    CONSTANT = "constant"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


@frozen
class ProcessingTime:
    """The processing time of a kind of request."""

    distribution: Distribution
    first_ns: int
    """The time, the shortest one, or the mean."""
    last_ns: int = 0
    """The longest one, of a uniform time."""

    @property
    def mean_ns(self) -> int:
        """The mean time."""
        return (self.first_ns + self.last_ns) // 2 if self.distribution is Distribution.UNIFORM else self.first_ns

    def draw_ns(self, draw: Callable[[], float]) -> int:
        """The time of one request, in ns; `draw` gives a number of 0 to below 1."""
        match self.distribution:
            case Distribution.CONSTANT:
                return self.first_ns
            case Distribution.UNIFORM:
                return self.first_ns + int(draw() * (self.last_ns - self.first_ns))
            case Distribution.EXPONENTIAL:
                return int(-math.log(1 - min(draw(), _TAIL_MAX)) * self.first_ns)


NO_TIME = ProcessingTime(Distribution.CONSTANT, 0)


@frozen
class ProcessingTimes:
    """Processing times by the names that people gave: of a request code, of a pool, or `others`."""

    by_name: Mapping[str, ProcessingTime]

    def of(self, code: int, pool: str) -> ProcessingTime:
        """The time of a request; its code goes before its pool, and that before `others`."""
        found = self.by_name
        return found.get(_name(code)) or found.get(pool) or found.get(OTHERS) or NO_TIME


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return ""


def are_processing_times(value: object, pools: Iterable[str]) -> bool:
    """Whether the value of an option can be read as processing times of a node with these pools."""
    if not isinstance(value, str):
        return False
    try:
        parse_processing_times(value, frozenset(pools))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=64)
def parse_processing_times(text: str, pools: frozenset[str]) -> ProcessingTimes:
    """Read processing times of a node with these pools.

    Raises:
        ValueError: the text has another form, or a name is unknown or stands in it twice.
    """
    entries = list(_entries(text, _NAMES | pools))
    by_name = dict(entries)
    if len(by_name) < len(entries):
        raise ValueError("a name stands in it twice")
    return ProcessingTimes(by_name)


def _entries(text: str, names: frozenset[str]) -> Iterator[tuple[str, ProcessingTime]]:
    for part in filter(None, map(str.strip, text.split(","))):
        match = _ENTRY.fullmatch(part)
        if match is None or match[_NAME] not in names:
            raise ValueError(f"{part} is no processing time")
        yield match[_NAME], _time(match)


def _time(match: "re.Match[str]") -> ProcessingTime:
    first_ns = _ns(match, _FIRST)
    if match[_LAST] is None:
        return ProcessingTime(Distribution.EXPONENTIAL if match[_SHAPE] else Distribution.CONSTANT, first_ns)
    last_ns = _ns(match, _LAST)
    if match[_SHAPE] or last_ns < first_ns:
        raise ValueError(f"{match[0]} is no processing time")
    return ProcessingTime(Distribution.UNIFORM, first_ns, last_ns)


def _ns(match: "re.Match[str]", group: int) -> int:
    return round(float(match[group]) * _NS_PER_UNIT[match[group + 1]])
