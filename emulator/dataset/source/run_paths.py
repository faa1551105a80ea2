"""Which runs a path names: a run directory, a folder of runs, a campaign, or several of them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from emulator.base.errors import UserError
from emulator.trace.index import INDEX
from emulator.trace.segments import FOLDER
from nodes.fields import shown

_RUNS = "runs"
"""Folder of the traces of a campaign."""
_DATASET = "dataset.json"
_FILE = "file:"


class SourceError(UserError):
    """What a query asks the source for is not there; the text says what, where and what was expected."""


def named_paths(options: Mapping[str, str], folder: Path | None) -> tuple[Path, ...]:
    """The paths that a query names.

    Args:
        options: of the query; Spark puts what `load` gets into `path`, or as a JSON array into `paths`.
        folder: where relative paths begin; None: they are refused.

    Raises:
        SourceError: there is none, or nothing is there.
    """
    texts = json.loads(options["paths"]) if "paths" in options else list(_parts(options.get("path", ""), folder))
    if not texts:
        raise SourceError("load() needs a path: a run directory, a folder of runs, or a campaign")
    paths = tuple(_local(text, folder) for text in texts)
    for path in paths:
        if not path.is_dir():
            raise SourceError(f"{path}: expected a run directory, a folder of runs, or a campaign")
        if (path / _DATASET).is_file():
            raise SourceError(f"{path} is a dataset: read it with spark.read.parquet, not with this format")
    return paths


def _parts(text: str, folder: Path | None) -> Iterator[str]:
    """A path, or several with commas between them; a path that is there may have commas itself."""
    if text and _local(text, folder).exists():
        yield text
        return
    yield from (part.strip() for part in text.split(",") if part.strip())


def _local(text: str, folder: Path | None) -> Path:
    if "://" in text and not text.startswith(_FILE):
        raise SourceError(f"{shown(text)}: expected a path of a local or mounted file system")
    path = Path(unquote(urlsplit(text).path) if text.startswith(_FILE) else text)
    if path.is_absolute():
        return path
    if folder is None:
        raise SourceError(f"{shown(text)}: expected an absolute path, or the format registered with register(spark)")
    return folder / path


def runs_of(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Mapping name of a run -> its directory, ordered by name; empty: there is none.

    Raises:
        SourceError: two runs have one name.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for run in _runs_in(path):
            if found.setdefault(run.name, run) != run:
                raise SourceError(f"{found[run.name]} and {run} have one name: expected runs with different names")
    return dict(sorted(found.items()))


def _runs_in(path: Path) -> Iterator[Path]:
    if is_run(path):
        yield path
        return
    below = [item for item in path.iterdir() if not item.name.startswith(".") and is_run(item)]
    if not below and (path / _RUNS).is_dir():
        below = [item for item in (path / _RUNS).iterdir() if not item.name.startswith(".") and is_run(item)]
    yield from below


def is_run(path: Path) -> bool:
    """Whether a run has begun in a directory."""
    return (path / FOLDER / INDEX).is_file()
