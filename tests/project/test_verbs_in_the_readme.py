"""The READMEs list every verb as the registry says it."""

from pathlib import Path

from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.console.verbs import VERBS
from faults.catalogue import WORDINGS

ROOT = Path(__file__).parents[2]
VERBS_TABLE = (ROOT / "emulator" / "console" / "README.md").read_text(encoding="utf-8")
FAULTS_TABLE = (ROOT / "faults" / "README.md").read_text(encoding="utf-8")


def test_the_table_of_verbs_is_the_registry():
    rows = [line.replace("\\|", "|") for line in VERBS_TABLE.splitlines() if line.startswith("| `")]
    for verb in VERBS.values():
        if verb.name not in WORDINGS:
            assert f"| `{verb.line()}` | {verb.summary} |" in rows


def test_every_verb_that_breaks_something_has_an_example():
    for name in WORDINGS:
        assert f"`{name} " in FAULTS_TABLE


def test_the_command_lists_all_verbs():
    lines = CliRunner().invoke(app, ["verbs"]).stdout.splitlines()
    assert lines[::2] == [verb.line() for verb in VERBS.values()]
