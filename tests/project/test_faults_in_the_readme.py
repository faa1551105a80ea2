"""What the README of the faults says can be said."""

import re
import tomllib
from pathlib import Path

from faults.catalogue import CHAOS_NAMES, FAULTS, fault_of

README = (Path(__file__).parents[2] / "faults" / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("\n## How to say a fault\n")[2].partition("\n## ")[0]


def test_the_table_names_every_kind_with_a_verb_that_says_it():
    rows = re.findall(r"^\| `(\w+)` \|.*\| `([^`]+)` \|$", SECTION, re.MULTILINE)

    assert [kind for kind, _ in rows] == list(FAULTS)
    assert [fault_of(line).kind for _, line in rows] == [kind for kind, _ in rows]


def test_the_example_says_faults():
    (example,) = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)
    tables = tomllib.loads(example)

    assert [fault_of(table["do"]).kind for table in (tables["fault"][0], *tables["nemesis"])] == [
        "kill",
        "suspend",
        "kill",
    ]


def test_the_names_of_openmessaging_chaos_are_all_there():
    answer = SECTION.partition("**OpenMessaging-Chaos**")[2]

    assert [
        name for name in CHAOS_NAMES if name.partition("-")[0] not in answer or name.rpartition("-")[2] not in answer
    ] == []
