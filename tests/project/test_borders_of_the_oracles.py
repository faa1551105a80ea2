"""The contracts of pyproject.toml refuse an oracle that imports what is shown, or another oracle."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from emulator.analysis.oracles.catalogue import HARM_ORDER
from emulator.analysis.oracles.catalogue import ORACLES as ORACLES_BY_NUMBER

ROOT = Path(__file__).parents[2]
PACKAGES = ("emulator", "faults", "nodes")
ORACLES = "emulator/analysis/oracles"
LAYERS = "analysis: what is shown on top of what is judged, on top of what is read"
INDEPENDENT = "oracles do not know each other"
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, no_logo=True))"
NO_ORACLES = ("__init__", "catalogue", "divergence_oracle", "oracle")
"""Modules of the package with base classes and the list of all oracles."""
PLANTED = {
    "nothing": ("", ()),
    "rendering": ("from emulator.analysis.rendering.cells import ROWS_MAX", (LAYERS,)),
    "another oracle": ("from emulator.analysis.oracles.orphans import ORPHANS", (INDEPENDENT,)),
    "the list of all oracles": ("from emulator.analysis.oracles.catalogue import ORACLES", (INDEPENDENT,)),
    "another oracle, in a function": (
        "def later() -> object:\n    from emulator.analysis.oracles.orphans import ORPHANS\n    return ORPHANS",
        (INDEPENDENT,),
    ),
}
"""Mapping what is planted in an oracle -> (its lines, contracts that they break)."""


def test_each_oracle_has_its_place_in_the_order_of_harm():
    assert sorted(HARM_ORDER) == sorted(oracle.id for oracle in ORACLES_BY_NUMBER)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the packages and their contracts."""
    copy = tmp_path_factory.mktemp("packages")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def contracts():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {setting["name"]: setting for setting in settings["tool"]["importlinter"]["contracts"]}


def linted(copy):
    """(exit status, names of the contracts that are broken)."""
    env = {**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", LINT], cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=120
    )
    broken = [line.removesuffix("BROKEN").strip() for line in done.stdout.splitlines() if line.endswith("BROKEN")]
    return done.returncode, tuple(broken)


@pytest.mark.parametrize("planted", PLANTED)
def test_an_oracle_may_import_neither_rendering_nor_another_oracle(copied, planted):
    lines, broken = PLANTED[planted]
    oracle = copied / ORACLES / "stalls.py"
    text = oracle.read_text(encoding="utf-8")
    oracle.write_text(f"{text}\n\n{lines}\n", encoding="utf-8")
    try:
        assert linted(copied) == (bool(broken), broken)
    finally:
        oracle.write_text(text, encoding="utf-8")


def test_every_oracle_is_independent_of_all_others():
    there = sorted(path.stem for path in (ROOT / ORACLES).glob("*.py") if path.stem not in NO_ORACLES)
    assert contracts()[INDEPENDENT]["modules"] == [f"emulator.analysis.oracles.{name}" for name in there]
