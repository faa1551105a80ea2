"""Writes the commit into what is built, since seed, version and commit name a run: a build hook of Hatchling."""

import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MODULE = "emulator/base/commit.py"


class CommitHook(BuildHookInterface):
    """Puts `emulator/base/commit.txt` with the commit in the place of the file of the checkout."""

    _folder: Path

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file; an editable install asks git itself."""
        self._folder = Path(tempfile.mkdtemp(prefix="rmqemu-commit-"))
        if version == "editable":
            return
        module = runpy.run_path(str(Path(self.root) / _MODULE))
        file = self._folder / module["FILE"]
        file.write_text(f"{module['commit']()}\n", encoding="utf-8")
        build_data["force_include"][str(file)] = f"emulator/base/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - Hatchling's
        """Remove the file, which is in the artifact."""
        shutil.rmtree(self._folder)
