"""What happened to users whose lists of nameservers changed: each example shows it, and its fix silences that."""

from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run

EXAMPLES = Path(__file__).parents[2] / "examples" / "nameservers"
LOOKS_UP = 'namesrvAddr = "nameservers.example:9876", fetchNameSrvAddrByDnsLookup = true'
STOPPED = '\n[[fault]]\nat_s = 200\ndo = "stop ns-1"\n'

INCIDENTS: dict[str, tuple[set[str], Callable[[str], str]]] = {
    "removed_nameserver": ({"V2", "V8"}, lambda text: text.replace("leavesRemovedNameserver = false, ", "")),
    "hot_update": ({"V2", "V6"}, lambda text: text + STOPPED),
    "partial_list": (
        {"V2", "V8"},
        lambda text: text.replace('namesrvAddr = "ns-1"', LOOKS_UP).replace('namesrvAddr = "ns-2"', LOOKS_UP),
    ),
}
"""Example -> the rules that are broken, and what the file says of its fix."""


def rules(folder: Path, text: str) -> set[str]:
    return set(broken(judge_run(open_run(run_scenario(loads(text, "example.toml"), runs=folder).path))))


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_incident_breaks_rules_and_its_fix_none(name, tmp_path):
    # Who has which list decides, and not how many messages are sent.
    text = (EXAMPLES / f"{name}.toml").read_text("utf-8").replace("rate_per_s = 20", "rate_per_s = 2")
    expected, fix = INCIDENTS[name]
    assert rules(tmp_path, text) == expected
    assert fix(text) != text
    assert rules(tmp_path, fix(text)) == set()
