"""The manifest: what a run was, written last, so that a directory without one is no run."""

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
_PACKAGES = ("rocketmq-emulator", "trio", "msgpack", "pyarrow")


def versions() -> dict[str, str]:
    """What a run depends on beside its seed and scenario."""
    return {package: _version(package) for package in _PACKAGES}


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Put the manifest in place at once."""
    hidden = directory / f".{MANIFEST}.tmp"
    hidden.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", "utf-8")
    hidden.replace(directory / MANIFEST)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
