"""The README lists every verb as the registry says it."""

from pathlib import Path

from typer.testing import CliRunner

from emulator.cli.main import app
from emulator.console.verbs import VERBS
from faults.catalogue import WORDINGS

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_table_of_verbs_is_the_registry():
    rows = [line.replace("\\|", "|") for line in README.splitlines() if line.startswith("| `")]
    for verb in VERBS.values():
        if verb.name not in WORDINGS:
            assert f"| `{verb.line()}` | {verb.summary} |" in rows


def test_every_verb_that_breaks_something_has_an_example():
    for name in WORDINGS:
        assert f"`{name} " in README


def test_the_command_lists_all_verbs():
    lines = CliRunner().invoke(app, ["verbs"]).stdout.splitlines()
    assert lines[::2] == [verb.line() for verb in VERBS.values()]
