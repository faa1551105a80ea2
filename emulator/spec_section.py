"""Reading the tables of a scenario file so that every mistake is told in one line, with its place."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import attrs


class SpecError(ValueError):
    """A scenario cannot be as it was asked for.

    Its text is one line: where (file, then the key with its path; positions
    count from 0), what is wrong there and what was expected.
    """

    def __init__(self, key: str, problem: str, source: str = "") -> None:
        super().__init__(f"{source}: {key}: {problem}" if source else f"{key}: {problem}")
        self.key = key
        """For instance `broker[1].options.brokerHeartbeatInterval`."""
        self.problem = problem
        self.source = source
        """The file, or whatever else the scenario came from; empty for one built in Python."""

    def within(self, source: str) -> "SpecError":
        """The same mistake, now with the name of the file it is in."""
        return SpecError(self.key, self.problem, source)


def suggestion(wrong: str, known: Sequence[str]) -> str:
    """The nearest of the known names, or all of them: `did you mean "count"?`."""
    near = get_close_matches(wrong, known, n=1)
    if near:
        return f'did you mean "{near[0]}"?'
    return f"known are {', '.join(known)}" if known else "none is known"


def expect_known(key: str, what: str, name: str, known: Sequence[str]) -> None:
    """Refuse a name that is not among the known ones.

    Raises:
        SpecError: at `key`: unknown `what` "name", with the nearest known one.
    """
    if name not in known:
        raise SpecError(key, f'unknown {what} "{name}"; {suggestion(name, known)}')


@attrs.frozen
class Section:
    """One table of a scenario file, read key by key."""

    path: str
    """Where it stands, for instance `broker[1]`."""
    values: Mapping[str, Any]

    @classmethod
    def of(cls, path: str, values: object, known: Sequence[str]) -> "Section":
        """Take a table that may have the known keys and no other.

        Raises:
            SpecError: this is no table, or it has an unknown key.
        """
        if not isinstance(values, Mapping):
            raise SpecError(path, f"expected a table, not {values!r}")
        section = cls(path, values)
        for key in values:
            if key not in known:
                raise SpecError(section.at(key), f"unknown key; {suggestion(key, known)}")
        return section

    def at(self, key: str) -> str:
        """The path of one of its keys."""
        return f"{self.path}.{key}" if self.path else key

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; without a default it must be there."""
        value = self._get(key, default, "a text")
        if not isinstance(value, str) or not value:
            raise SpecError(self.at(key), f"expected a text, not {value!r}")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts; without a default it must be there and not be empty."""
        value = self._get(key, default, "a list of texts")
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):
            raise SpecError(self.at(key), f"expected a list of texts, not {value!r}")
        if not value and default is None:
            raise SpecError(self.at(key), "expected at least one")
        return tuple(value)

    def text_map(self, key: str) -> Mapping[str, str]:
        """A table of texts, which may be empty ones; empty where there is none."""
        value = self._get(key, {}, "a table of texts")
        if not isinstance(value, Mapping) or not all(isinstance(item, str) for item in value.values()):
            raise SpecError(self.at(key), f"expected a table of texts, not {value!r}")
        return dict(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._get(key, default, "true or false")
        if not isinstance(value, bool):
            raise SpecError(self.at(key), f"expected true or false, not {value!r}")
        return value

    def number(self, key: str, default: int | None = None, *, least: int = 0, most: int | None = None) -> int:
        """A whole number within bounds; without a default it must be there."""
        bounds = f">= {least}" if most is None else f"from {least} to {most}"
        value = self._get(key, default, f"a whole number {bounds}")
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            raise SpecError(self.at(key), f"expected a whole number {bounds}, not {value!r}")
        return int(value)

    def span_ms(self, stem: str) -> int | None:
        """A time given as `stem_s` in seconds or as `stem_ms` in milliseconds; None where neither is there."""
        seconds, millis = f"{stem}_s", f"{stem}_ms"
        if seconds in self.values and millis in self.values:
            raise SpecError(self.at(millis), f"expected only one of {seconds} and {millis}")
        if millis in self.values:
            return self.number(millis)
        if seconds not in self.values:
            return None
        value = self.values[seconds]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _SECONDS_MOST:
            raise SpecError(self.at(seconds), f"expected seconds >= 0, not {value!r}")
        span_ms = round(value * 1_000)
        if abs(value * 1_000 - span_ms) > _ROUNDING:
            raise SpecError(self.at(seconds), f"expected whole milliseconds, not {value!r} s")
        return span_ms

    def needed_span_ms(self, stem: str) -> int:
        """The same, where it must be there."""
        span_ms = self.span_ms(stem)
        if span_ms is None:
            raise SpecError(self.at(f"{stem}_s"), "missing; expected seconds")
        return span_ms

    def table(self, key: str, known: Sequence[str]) -> "Section":
        """The table under a key; empty where there is none."""
        return Section.of(self.at(key), self.values.get(key, {}), known)

    def tables(self, key: str, known: Sequence[str]) -> Iterator["Section"]:
        """The tables of an array `[[key]]`, in order; none where there is no array."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise SpecError(self.at(key), f"expected tables written [[{key}]]")
        for index, item in enumerate(value):
            yield Section.of(f"{self.at(key)}[{index}]", item, known)

    def _get(self, key: str, default: object, expected: str) -> Any:
        if key not in self.values and default is None:
            raise SpecError(self.at(key), f"missing; expected {expected}")
        return self.values.get(key, default)


_SECONDS_MOST = 10_000_000_000
_ROUNDING = 1e-6
"""A tenth of a second is no exact float; a thousandth of a millisecond is no mistake of rounding."""
