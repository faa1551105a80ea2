"""What is landed: run directories, one by one or in folders, in parts of bounded size."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from emulator.base.errors import UserError
from emulator.base.files import resolved
from emulator.trace.index import INDEX
from emulator.trace.run_directory import MANIFEST
from emulator.trace.segments import FOLDER

SNAPSHOT = "dataset.json"
"""Name of the file that makes a directory a dataset."""
RUNS_PER_PART = 200
BYTES_PER_PART = 256 * 1024 * 1024
"""Of run directories; a larger run is a part of its own."""


@attrs.frozen
class RunSource:
    """A run directory to land, and what the campaign knows of its run."""

    path: Path
    campaign: str = ""
    """Empty: the run belongs to none."""
    variant: str = ""
    condition: str = ""

    @property
    def run(self) -> str:
        """Name of the run in the dataset: that of its directory."""
        return self.path.name


def parts_of(sources: Sequence[RunSource]) -> Iterator[tuple[RunSource, ...]]:
    """Runs in parts of bounded size, in the order of their names."""
    part: list[RunSource] = []
    size = 0
    for source in sorted(sources, key=lambda item: item.run):
        own = sum(path.stat().st_size for path in source.path.glob("trace/**/*") if path.is_file())
        if part and (len(part) == RUNS_PER_PART or size + own > BYTES_PER_PART):
            yield tuple(part)
            part, size = [], 0
        part.append(source)
        size += own
    if part:
        yield tuple(part)


def sources_of(paths: Iterable[Path | str | RunSource]) -> tuple[RunSource, ...]:
    """The runs that paths name: run directories, and folders of run directories.

    Raises:
        UserError: a path is none of both.
    """
    found: dict[Path, RunSource] = {}
    for path in paths:
        every = [path] if isinstance(path, RunSource) else [RunSource(item) for item in _runs_at(Path(path))]
        for source in every:
            found.setdefault(resolved(source.path), source)
    return tuple(found.values())


def is_dataset(path: object) -> bool:
    """Whether a path or a URI names a dataset; of a URI only its form is looked at."""
    return isinstance(path, str | Path) and ("://" in str(path) or (Path(path) / SNAPSHOT).is_file())


def is_run(path: Path) -> bool:
    """Whether a directory looks like a run."""
    return (path / MANIFEST).exists() or (path / FOLDER / INDEX).exists()


def _runs_at(path: Path) -> list[Path]:
    absolute = resolved(path)
    if is_run(absolute):
        return [absolute]
    if not absolute.is_dir():
        problem = "" if absolute.exists() else " does not exist"
        raise UserError(f"{path}{problem}: expected a run directory, a folder of runs, or a campaign")
    runs = [item for item in sorted(absolute.iterdir()) if not item.name.startswith(".") and is_run(item)]
    if not runs:
        raise UserError(f"{path}: expected a run directory, a folder of runs, or a campaign; it has none")
    return runs
