"""The `[[admin]]` tables of a scenario file: reading and writing.

The keys of a table are the fields of the act's class, so a new act needs no code here.
"""

from typing import Any

import attrs

from emulator.acts.act import Act, TimedAct, keys_of_act
from emulator.acts.catalogue import ACTS, act_of
from emulator.spec.tables.mistakes import SpecError, require_known
from emulator.spec.tables.section import Section, keys_of, written
from faults.words import WordsError
from nodes.fields import TEXT, FieldError, Rule, checked, span, text

_LINE = Rule("a text", lambda value: isinstance(value, str) and bool(value))


@attrs.frozen
class ActKeys:
    """What an `[[admin]]` has first; the other keys are those of the kind."""

    kind: str | None = text(None)
    """The act; needed without `do`."""
    do: str | None = checked(_LINE, None)
    """The whole act as one types it at the console, `update-topic orders queues 8`, in place of `kind` and its keys."""
    id: str | None = text(None)
    """Its name in the trace; if none is given, its verb and its number in the file."""


@attrs.frozen
class ActTimes:
    """When an `[[admin]]` happens."""

    at_ms: int = span()
    """When it begins, since the run began; one that takes long delays those after it."""


_TIMES = keys_of(ActTimes)
_ALL_KEYS = tuple(
    dict.fromkeys((*keys_of(ActKeys), *_TIMES, *(key for act in ACTS.values() for key in keys_of_act(act))))
)


def read_acts(root: Section, first: int = 1) -> tuple[TimedAct, ...]:
    """All acts of a scenario file, in the order of the file.

    Args:
        root: the table that has the array `admin`.
        first: number of the first act in ids that are made up.

    Raises:
        SpecError: a table describes no act, or two acts have one id.
    """
    read = tuple(root.parts(root.tables("admin", _ALL_KEYS), lambda section: _read_timed(section, first)))
    taken: dict[str, None] = {}
    for timed, path in zip(read, root.retained("admin"), strict=True):
        if timed.id in taken:
            root.add(SpecError(f"{path}.id", f"expected an id of its own, {timed.id} is taken"))
        taken[timed.id] = None
    return read


def _read_timed(section: Section, first: int) -> TimedAct:
    at_ms = section.attempt(lambda: section.needed_span_ms("at"), 0)
    given = section.get("id", TEXT, "")
    act = _read_act(section)
    number = first + int(section.path.rpartition("[")[2].removesuffix("]"))
    try:
        return TimedAct(given or f"{act.wording.verb}-{number}", act, at_ms)
    except FieldError as error:
        raise SpecError(section.at(error.field), error.problem) from None


def _read_act(section: Section) -> Act:
    if "do" in section.values:
        words = Section.of(section.path, section.values, ("do", "id", *_TIMES), section.reading)
        try:
            return act_of(words.get("do", _LINE))
        except WordsError as error:
            raise SpecError(section.at("do"), str(error)) from None
    name = section.get("kind", TEXT)
    require_known(section.at("kind"), "act of administrators", name, list(ACTS))
    # Check the keys again, now that the act is known: `perm` is a mistake in one that deletes.
    known = ("kind", "id", *_TIMES, *keys_of_act(ACTS[name]))
    return Section.of(section.path, section.values, known, section.reading).build(ACTS[name])


def write_acts(acts: tuple[TimedAct, ...]) -> list[dict[str, Any]]:
    """The tables from which `read_acts` reads equal acts."""
    return [{"id": timed.id, "kind": timed.act.kind, **written(timed.act), "at_ms": timed.at_ms} for timed in acts]
