"""Read a run directory back: whether it is one, and what its manifest says."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from emulator.trace.schema import SCHEMA_VERSION

MANIFEST_KEYS = ("run_id", "schema_version", "digest", "seed", "mode", "rows", "virtual_s", "wall_s", "scenario")


class NotARunError(Exception):
    """A directory is not a run that this version can read; says why in one line."""


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
        """Emulated instant at which the run ended."""
        return round(float(self.manifest["virtual_s"]) * 1e9)


def open_run(path: Path | str) -> RunDirectory:
    """Read the manifest of a run.

    Args:
        path: the run directory, `runs/<run-id>`.

    Raises:
        NotARunError: no manifest, an unreadable one, or one of another schema version.
    """
    directory = Path(path).resolve()
    try:
        manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
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
