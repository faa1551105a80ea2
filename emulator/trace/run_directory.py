"""A run directory: its rows and its manifest, which is written last: a directory without one is not a run."""

import json
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.trace.schema import SCHEMA_VERSION, Table
from emulator.trace.segments import segment_paths

MANIFEST = "manifest.json"
_PACKAGES = ("rocketmq-emulator", "trio", "msgpack", "pyarrow")
MANIFEST_KEYS = ("run_id", "schema_version", "digest", "seed", "mode", "rows", "virtual_s", "wall_s", "scenario")


class NotARunError(UserError):
    """The directory is not a run that this version can read; the text says why in one line."""


@attrs.frozen
class RunDirectory:
    """One run on disk."""

    path: Path
    manifest: Mapping[str, Any]

    @property
    def run(self) -> str:
        """The run's id in analyses: the name of its directory."""
        return self.path.name

    @property
    def end_ns(self) -> int:
        """End of the run, in ns since it began."""
        return round(float(self.manifest["virtual_s"]) * 1e9)


def open_run(path: Path | str) -> RunDirectory:
    """Read the manifest of a run.

    Args:
        path: the run directory, `runs/<run-id>`.

    Raises:
        NotARunError: the manifest is missing, unreadable, or of another schema version.
    """
    directory = Path(path).resolve()
    try:
        manifest = json.loads((directory / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        raise NotARunError(f"{path} is not a run: it has no manifest.json") from None
    except (OSError, ValueError) as error:
        raise NotARunError(f"{path} is not a readable run: manifest.json: {error}") from None
    if not isinstance(manifest, dict):
        raise NotARunError(f"{path} is not a readable run: manifest.json is not a mapping")
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        raise NotARunError(f"{path} has trace schema version {version}, this program reads {SCHEMA_VERSION}")
    missing = [key for key in MANIFEST_KEYS if key not in manifest]
    if missing:
        raise NotARunError(f"{path} is not a complete run: manifest.json lacks {', '.join(missing)}")
    return RunDirectory(directory, manifest)


def table_rows(
    run: Path, table: Table, columns: tuple[str, ...] | None = None, *filters: tuple[str, str, object]
) -> Iterator[dict[str, Any]]:
    """The rows of a table in order, each a mapping column -> value.

    Args:
        run: the run directory.
        table: of the schema.
        columns: to read; None: all.
        filters: (column, operator, value), as pyarrow takes them.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - opening a run must not wait for Arrow

    wanted = None if columns is None else list(columns)
    for segment in segment_paths(run, table):
        yield from pq.read_table(segment, columns=wanted, filters=list(filters) or None).to_pylist()


def versions() -> dict[str, str]:
    """Versions of the packages on which a trace depends, besides seed and scenario."""
    return {package: _version(package) for package in _PACKAGES}


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest and rename it into place, so that readers see all of it or none."""
    hidden = directory / f".{MANIFEST}.tmp"
    hidden.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", "utf-8")
    hidden.replace(directory / MANIFEST)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
