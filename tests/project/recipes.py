"""Runs the code of *I analyse data* and of its recipes, and writes what it prints: `python -m project.recipes`.

Each block of Python is followed by a block `text` with its output, if it has one.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PAGES = (NOTEBOOKS / "ANALYSE_DATA.md", NOTEBOOKS / "RECIPES.md")
CAMPAIGN = "half-seen-consumer"
DATASET = "datasets/half-seen"
_BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n.*?```\n)?", re.DOTALL)


def recipes(page: str) -> list[str]:
    """The blocks of Python, from top to bottom."""
    return [found.group(1) for found in _BLOCK.finditer(page)]


def outputs(codes: list[str], names: dict[str, Any] | None = None) -> Iterator[str]:
    """Run blocks one after the other, as cells of one notebook.

    Args:
        codes: the blocks.
        names: what earlier blocks have left, and these leave.

    Returns:
        What each prints, without spaces at the ends of lines.
    """
    names = {} if names is None else names
    names["__name__"] = "recipes"
    for code in codes:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "a recipe", "exec"), names)
        yield "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def with_outputs(page: str, printed: list[str]) -> str:
    """The page with other outputs."""
    rest = iter(printed)

    def block(found: re.Match[str]) -> str:
        text = next(rest)
        return f"```python\n{found.group(1)}```\n" + (f"\n```text\n{text}\n```\n" if text else "")

    return _BLOCK.sub(block, page)


def execute_campaign(campaign: str) -> None:
    """Run a campaign in the current folder, and land it where the recipes expect it.

    Args:
        campaign: its file or name.
    """
    command = (sys.executable, "-m", "emulator.cli", "campaign", campaign, "--to", DATASET)
    # Its exit status is 1, since runs of it break invariants.
    subprocess.run(command, env={**os.environ, "RMQEMU_ENGINE": "local"}, check=False, capture_output=True)


def main() -> None:
    """Write the pages with new outputs."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        execute_campaign(CAMPAIGN)
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            page.write_text(with_outputs(text, list(outputs(recipes(text)))), encoding="utf-8")


if __name__ == "__main__":
    main()
