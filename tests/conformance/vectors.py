"""Reading known answers: files of cases, of which those that release 5.3.3 gave count."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import attrs

RELEASE = "5.3.3"
OTHER_RELEASES = "differs_"
"""What a folder is called in which the answers of another release lie."""
OPENERS: dict[str, Callable[..., TextIO]] = {
    ".jsonl": open,
    ".jsonl.gz": gzip.open,
    ".jsonl.xz": lzma.open,
    ".jsonl.bz2": bz2.open,
}


@attrs.frozen
class Case:
    """One sequence of steps that was run through a real class."""

    family: str
    name: str
    config: dict[str, Any] = attrs.field(repr=False)
    steps: list[dict[str, Any]] = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.family}-{self.name}"


@attrs.frozen
class Question:
    """One question that a real class was asked, and its whole answer."""

    family: str
    name: str
    requested: dict[str, Any] = attrs.field(repr=False)
    out: dict[str, Any] = attrs.field(repr=False)

    def __str__(self) -> str:
        return f"{self.family}-{self.name}"


def files_of_families(folder: Path) -> dict[str, list[Path]]:
    """Mapping family -> the files below a folder that hold its cases, both in the order of the files' paths."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        suffix = _suffix(path)
        if suffix is not None and not any(part.startswith(OTHER_RELEASES) for part in path.relative_to(folder).parts):
            found.setdefault(path.name.removesuffix(suffix), []).append(path)
    return found


def read_cases(path: Path) -> list[Case | Question]:
    """The cases of 5.3.3 in a file, in the order of its lines."""
    suffix = _suffix(path)
    assert suffix is not None
    family = path.name.removesuffix(suffix)
    with OPENERS[suffix](path, "rt", encoding="utf-8") as lines:
        return [_case(family, place, entry) for place, entry in _entries(path, lines)]


def _suffix(path: Path) -> str | None:
    return next((suffix for suffix in OPENERS if path.name.endswith(suffix)), None)


def _entries(path: Path, lines: TextIO) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(lines, 1):
        place = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
        if RELEASE in entry.get("releases", [RELEASE]):
            yield place, entry


def _case(family: str, place: str, entry: dict[str, Any]) -> Case | Question:
    if {"case", "config", "steps"} <= entry.keys():
        return Case(family, entry["case"], entry["config"], entry["steps"])
    if {"case", "in", "out"} <= entry.keys():
        return Question(family, entry["case"], entry["in"], entry["out"])
    raise ValueError(f"{place}: neither a sequence (case, config, steps) nor a question (case, in, out)")
