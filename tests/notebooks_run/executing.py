"""Executes the notebooks from top to bottom, without a screen.

    PYTHONPATH=tests python -m notebooks_run.executing [NAME ...]

writes them, or those whose names begin so (`04`), with their new outputs, for whoever changed what they show.
"""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
_CELL_TIMEOUT_S = 240


async def execute(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook with fresh outputs; it runs in a folder that has the examples with it."""
    from nbclient import NotebookClient  # takes half a second, in each worker that only collects its tests

    notebook = nbformat.read(path, as_version=4)
    (folder / "notebooks").mkdir(parents=True)
    shutil.copytree(ROOT / "examples", folder / "examples")
    resources = {"metadata": {"path": str(folder / "notebooks")}}
    client = NotebookClient(
        notebook, timeout=_CELL_TIMEOUT_S, kernel_name="python3", record_timing=False, resources=resources
    )
    return await client.async_execute()


async def main(names: Sequence[str]) -> None:
    """Execute those with these names, or all, and write them; how far a long call had come is left out."""
    chosen = [path for path in NOTEBOOKS if not names or path.name.startswith(tuple(names))]
    if not chosen:
        raise SystemExit(f"no notebook has a name that begins so: {', '.join(names)}")
    with tempfile.TemporaryDirectory() as scratch:
        for path in chosen:
            fresh = await execute(path, Path(scratch) / path.stem)
            for cell in fresh.cells:
                if cell.cell_type == "code":
                    cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            fresh.metadata.language_info = {"name": "python"}  # more of it depends on the machine
            nbformat.write(fresh, path)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
