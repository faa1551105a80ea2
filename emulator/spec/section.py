"""Typed access to the tables of a scenario file; every mistake becomes one line with its key."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from emulator.base.errors import UserError
from emulator.base.text import alike, listed
from nodes.fields import TIME_MOST_MS, FieldError, Rule, key_of, quoted, rule_of, shown, whole_rule

T = TypeVar("T", bound=attrs.AttrsInstance)


class SpecError(UserError, ValueError):
    """A scenario is invalid.

    The text is one line: file, path of the key (positions count from 0), what is
    wrong there and what was expected.
    """

    def __init__(self, key: str, problem: str, source: str = "") -> None:
        super().__init__(f"{source}: {key}: {problem}" if source else f"{key}: {problem}")
        self.key = key
        """For instance `broker[1].options.brokerHeartbeatInterval`."""
        self.problem = problem
        self.source = source
        """The file or another origin of the scenario; empty for a scenario built in Python."""

    def __reduce__(self) -> tuple[type["SpecError"], tuple[str, str, str]]:
        """Errors cross processes: a campaign's, and Spark's."""
        return SpecError, (self.key, self.problem, self.source)

    def within(self, source: str) -> "SpecError":
        """The same error with the name of its file."""
        return SpecError(self.key, self.problem, source)


def suggestion(wrong: str, known: Sequence[str]) -> str:
    """The nearest known name, or the list of all: `did you mean "count"?`."""
    near = alike(wrong, known, 1)
    if near:
        return f'did you mean "{near[0]}"?'
    return f"known are {listed(known)}" if known else "none is known"


def expect_known(key: str, what: str, name: str, known: Sequence[str]) -> None:
    """Refuse an unknown name.

    Raises:
        SpecError: at `key`: unknown `what` "name", with the nearest known one.
    """
    if name not in known:
        raise SpecError(key, f'unknown {what} "{shown(name)}"; {suggestion(name, known)}')


@attrs.frozen
class Section:
    """One table of a scenario file, read key by key."""

    path: str
    """Position in the file, for instance `broker[1]`."""
    values: Mapping[str, Any]

    @classmethod
    def of(cls, path: str, values: object, known: Sequence[str]) -> "Section":
        """Wrap a table, which may have only the known keys.

        Raises:
            SpecError: the value is not a table, or it has an unknown key.
        """
        if not isinstance(values, Mapping):
            raise SpecError(path, f"expected a table, not {quoted(values)}")
        section = cls(path, values)
        for key in values:
            if key not in known:
                raise SpecError(section.at(key), f"unknown key; {suggestion(key, known)}")
        return section

    def at(self, key: str) -> str:
        """The path of a key of this table."""
        return f"{self.path}.{shown(key)}" if self.path else shown(key)

    def get(self, key: str, rule: Rule, default: Any = attrs.NOTHING) -> Any:
        """The value of a key, checked by a rule; a key without default is required."""
        if key not in self.values and default is attrs.NOTHING:
            raise SpecError(self.at(key), f"missing; expected {rule.expected}")
        value = self.values.get(key, default)
        taken = tuple(value) if isinstance(value, list) else value
        if key in self.values and not rule.holds(taken):
            raise SpecError(self.at(key), rule.problem(value))
        return taken

    def build(self, kind: type[T], **given: Any) -> T:
        """Build an attrs value; the metadata of its fields name the keys of this table.

        Args:
            kind: class of the value.
            given: fields that do not come from this table.

        Raises:
            SpecError: a key is missing, or its value is invalid.
        """
        fields = (field for field in attrs.fields(kind) if field.name not in given and "rule" in field.metadata)
        values = {field.name: self._field(field) for field in fields}
        try:
            return kind(**values, **given)
        except FieldError as error:
            raise SpecError(self.at(error.field), error.problem) from None

    def _field(self, field: "attrs.Attribute[Any]") -> Any:
        if not field.metadata.get("span"):
            return self.get(key_of(field), rule_of(field), field.default)
        stem = key_of(field).removesuffix("_ms")
        span_ms = self.needed_span_ms(stem) if field.default is attrs.NOTHING else self.span_ms(stem)
        return field.default if span_ms is None else span_ms

    def span_ms(self, stem: str) -> int | None:
        """A duration in ms, given as `stem_s` in seconds or as `stem_ms` in milliseconds; None if both are missing."""
        seconds, millis = f"{stem}_s", f"{stem}_ms"
        if seconds in self.values and millis in self.values:
            raise SpecError(self.at(millis), f"expected only one of {seconds} and {millis}")
        if millis in self.values:
            return int(self.get(millis, whole_rule("milliseconds", 0)))
        if seconds not in self.values:
            return None
        value = self.values[seconds]
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise SpecError(self.at(seconds), f"expected seconds >= 0, not {quoted(value)}")
        if value > _SECONDS_MOST:
            raise SpecError(self.at(seconds), f"expected {_SECONDS_MOST} seconds at most, not {quoted(value)}")
        span_ms = round(value * 1_000)
        if abs(value * 1_000 - span_ms) > _ROUNDING:
            raise SpecError(self.at(seconds), f"expected whole milliseconds, not {quoted(value)} s")
        return span_ms

    def needed_span_ms(self, stem: str) -> int:
        """As `span_ms`, for a required key."""
        span_ms = self.span_ms(stem)
        if span_ms is None:
            raise SpecError(self.at(f"{stem}_s"), "missing; expected seconds")
        return span_ms

    def table(self, key: str, known: Sequence[str]) -> "Section":
        """The table of a key; empty if it is missing."""
        return Section.of(self.at(key), self.values.get(key, {}), known)

    def tables(self, key: str, known: Sequence[str]) -> Iterator["Section"]:
        """The tables of an array `[[key]]`, in order; none if it is missing."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            raise SpecError(self.at(key), f"expected tables written [[{key}]]")
        for index, item in enumerate(value):
            yield Section.of(f"{self.at(key)}[{index}]", item, known)


def keys_of(kind: type) -> tuple[str, ...]:
    """The keys of a class's fields; durations have one key in seconds and one in milliseconds."""
    keys: list[str] = []
    for field in attrs.fields(kind):
        if "rule" in field.metadata:
            stem = key_of(field).removesuffix("_ms")
            keys += [f"{stem}_s", f"{stem}_ms"] if field.metadata.get("span") else [key_of(field)]
    return tuple(keys)


def written(value: Any) -> dict[str, Any]:
    """The keys and values from which `Section.build` builds an equal value; empty defaults are left out."""
    fields = [field for field in attrs.fields(type(value)) if "rule" in field.metadata]
    held = ((field, getattr(value, field.name)) for field in fields)
    return {key_of(field): _plain(it) for field, it in held if it or it != field.default}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


_SECONDS_MOST = TIME_MOST_MS // 1_000
_ROUNDING = 1e-6
"""In ms: tolerates that 0.1 s is not an exact float."""
