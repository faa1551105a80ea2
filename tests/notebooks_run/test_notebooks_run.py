"""The notebooks run from top to bottom, without a screen, and give what is committed with them."""

import asyncio
import json
import re

import nbformat
import pytest

from notebooks_run.executing import NOTEBOOKS, execute


def reported(cell) -> dict[str, str]:
    """What a cell shows, by kind; stderr is left out, because how far a long call has come depends on the machine."""
    shown: dict[str, str] = {}
    for output in cell.get("outputs", ()):
        if output["output_type"] == "stream":
            if output["name"] == "stdout":
                shown["stdout"] = shown.get("stdout", "") + output["text"]
        elif output["output_type"] == "error":
            shown["error"] = output["evalue"]
        else:
            shown.update({kind: str(content) for kind, content in output["data"].items()})
    return shown


FIRST, *LONG = NOTEBOOKS
"""The others take half a minute each."""


@pytest.mark.parametrize(
    "path", [FIRST, *(pytest.param(path, marks=pytest.mark.slow) for path in LONG)], ids=lambda path: path.stem
)
def test_a_notebook_gives_the_outputs_that_are_committed(path, tmp_path, own_jupyter):
    fresh = asyncio.run(execute(path, tmp_path / path.stem))
    committed = nbformat.read(path, as_version=4)
    for number, (before, now) in enumerate(zip(committed.cells, fresh.cells, strict=True)):
        assert reported(now) == reported(before), (
            f"{path.name}, cell {number}: `make notebooks`, and commit its outputs"
        )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_committed_as_it_was_executed_in_one_go_and_names_no_place_of_a_machine(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    shown = json.dumps([reported(cell) for cell in cells])
    assert '"error"' not in shown
    assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users|opt|var)\b[^\s\"]*", shown) == []
    assert notebook.metadata.kernelspec.name == "python3"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_uses_public_names_only(path):
    code = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")
    assert re.findall(r"\.\s*_\w+|import\s+_\w+", code) == []
