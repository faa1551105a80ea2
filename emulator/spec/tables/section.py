"""Typed access to the tables of a scenario file; every mistake becomes one line with its key."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from emulator.spec.tables.mistakes import Reading, SpecError, UnknownKeyError
from faults.words import MS_ROUNDING
from nodes.fields import TIME_MAX_MS, FieldError, Rule, key_of, quoted, rule_of, shown, whole_rule
from nodes.secret import without_secrets

T = TypeVar("T", bound=attrs.AttrsInstance)
_Made = TypeVar("_Made")
_Otherwise = TypeVar("_Otherwise")


@attrs.frozen
class Section:
    """One table of a scenario file, read key by key."""

    path: str
    """Position in the file, for instance `broker[1]`."""
    values: Mapping[str, Any]
    reading: Reading | None = attrs.field(default=None, eq=False)
    """Collects the mistakes, and what is wrong counts as not written; None: the first mistake is raised."""

    @classmethod
    def of(cls, path: str, values: object, known: Sequence[str], reading: Reading | None = None) -> "Section":
        """Wrap a table, which may have only the known keys.

        Raises:
            SpecError: the value is not a table, or it has an unknown key.
        """
        if not isinstance(values, Mapping):
            raise SpecError(path, f"expected a table, not {quoted(values)}")
        section = cls(path, {key: value for key, value in values.items() if key in known}, reading)
        for key in values:
            if key not in known:
                mistake = UnknownKeyError(section.at(key), "key", key, known)
                section.add(mistake)
                if reading is not None and mistake.meant is not None and mistake.meant not in values:
                    stem = mistake.meant.removesuffix("_ms")
                    reading.suppress(section.at(mistake.meant), section.at(f"{stem}_s"))
        return section

    def at(self, key: str) -> str:
        """The path of a key of this table."""
        return f"{self.path}.{shown(key)}" if self.path else shown(key)

    def add(self, mistake: SpecError) -> None:
        """Collect a mistake.

        Raises:
            SpecError: the mistake, if no one collects.
        """
        if self.reading is None:
            raise mistake
        self.reading.add(mistake)

    def attempt(self, make: Callable[[], _Made], otherwise: _Otherwise) -> "_Made | _Otherwise":
        """What `make` makes; if it is refused and mistakes are collected, `otherwise`."""
        try:
            return make()
        except SpecError as error:
            self.add(error)
            return otherwise

    def get(self, key: str, rule: Rule, default: Any = attrs.NOTHING) -> Any:
        """The value of a key, checked by a rule; a key without default is required."""
        if key not in self.values and default is attrs.NOTHING:
            raise SpecError(self.at(key), f"missing; expected {rule.expected}")
        value = self.values.get(key, default)
        taken = tuple(value) if isinstance(value, list) else value
        if key in self.values and not rule.holds(taken):
            mistake = SpecError(self.at(key), rule.problem(value))
            if default is attrs.NOTHING:
                raise mistake
            self.add(mistake)
            return default
        return taken

    def build(self, kind: type[T], **given: Any) -> T:
        """Build an attrs value; the metadata of its fields name the keys of this table.

        Args:
            kind: class of the value.
            given: fields that do not come from this table.

        Raises:
            SpecError: a key is missing, or its value is invalid.
        """
        return self._built(kind, {**self.fields(kind, given), **given})

    def fields(self, kind: type[T], given: Container[str] = ()) -> dict[str, Any]:
        """The fields of a class that stand in this table: mapping field -> value.

        Args:
            kind: the class.
            given: fields that do not come from this table.

        Raises:
            SpecError: a key is missing, or its value is invalid.
        """
        values: dict[str, Any] = {}
        lacking: list[SpecError] = []
        for field in attrs.fields(kind):
            if field.name in given or "rule" not in field.metadata:
                continue
            try:
                values[field.name] = self._field(field)
            except SpecError as error:
                if field.default is attrs.NOTHING:
                    lacking.append(error)
                else:
                    self.add(error)
        if lacking:
            raise SpecError.of(lacking)
        return values

    def _built(self, kind: type[T], values: dict[str, Any]) -> T:
        try:
            return kind(**values)
        except FieldError as error:
            mistake = SpecError(self.at(error.field), error.problem)
            field = next((item for item in attrs.fields(kind) if key_of(item) == error.field), None)
            if field is None or field.name not in values or field.default is attrs.NOTHING:
                raise mistake from None
            self.add(mistake)
            return self._built(kind, {name: value for name, value in values.items() if name != field.name})

    def _field(self, field: "attrs.Attribute[Any]") -> Any:
        if not field.metadata.get("span"):
            return self.get(key_of(field), rule_of(field), field.default)
        stem = key_of(field).removesuffix("_ms")
        span_ms = self.needed_span_ms(stem) if field.default is attrs.NOTHING else self.span_ms(stem)
        if span_ms is not None and not rule_of(field).holds(span_ms):
            raise SpecError(self.at(key_of(field)), rule_of(field).problem(span_ms))
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
        if value > _SECONDS_MAX:
            raise SpecError(self.at(seconds), f"expected {_SECONDS_MAX} seconds at most, not {quoted(value)}")
        span_ms = round(value * 1_000)
        if abs(value * 1_000 - span_ms) > MS_ROUNDING:
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
        return self.attempt(
            lambda: Section.of(self.at(key), self.values.get(key, {}), known, self.reading),
            Section(self.at(key), {}, self.reading),
        )

    def tables(self, key: str, known: Sequence[str]) -> list["Section"]:
        """The tables of an array `[[key]]`, in order; none if it is missing."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self.lose(self.at(key))
            self.add(SpecError(self.at(key), f"expected tables written [[{key}]]"))
            return []
        sections = []
        for index, item in enumerate(value):
            path = f"{self.at(key)}[{index}]"
            try:
                sections.append(Section.of(path, item, known, self.reading))
            except SpecError as mistake:
                self.lose(path)
                self.add(mistake)
        return sections

    def parts(self, tables: Iterable["Section"], make: Callable[["Section"], _Made]) -> Iterator[_Made]:
        """What `make` makes of each table, in order.

        If mistakes are collected, a table of which nothing can be made is lost, and the others are read.
        """
        for table in tables:
            try:
                made = make(table)
            except SpecError as mistake:
                self.lose(table.path)
                self.add(mistake)
            else:
                yield made

    def lose(self, path: str) -> None:
        """Note that nothing can be made of a table, if mistakes are collected: the names that it gives are unknown."""
        if self.reading is not None:
            self.reading.lost[path] = None

    def retained(self, key: str) -> tuple[str, ...]:
        """Paths of the tables of an array `[[key]]` that are not lost, in order."""
        lost = {} if self.reading is None else self.reading.lost
        value = self.values.get(key)
        paths = (f"{self.at(key)}[{index}]" for index in range(len(value) if isinstance(value, list) else 0))
        return tuple(path for path in paths if path not in lost and self.at(key) not in lost)


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
    return {key_of(field): _plain(item) for field, item in held if item or item != field.default}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else without_secrets(value)


_SECONDS_MAX = TIME_MAX_MS // 1_000
