"""The reference of scenario files is generated from the code as it is, and says what every key and option means."""

import re
from pathlib import Path

import pytest

from emulator.spec import from_dict
from emulator.spec.reading.file import SCENARIO_TABLES
from emulator.spec.reading.reference import ROLES, options_of
from nodes.config import options
from project.reference import PAGE, page
from project.sections import kinds_of_acts, kinds_of_faults, sections
from support.every_case import each_case

LISTED = {
    **sections(),
    **{kind: entries for kind, (_, entries) in kinds_of_faults().items()},
    **{f"act {kind}": entries for kind, (_, entries) in kinds_of_acts().items()},
    **{role: options_of(role) for role in ROLES},
}


def test_the_page_is_generated_from_the_code_as_it_is():
    assert PAGE.read_text(encoding="utf-8") == page(), "make reference writes it again"


@each_case("name", LISTED)
def test_every_key_has_a_type_a_default_and_a_meaning_in_one_line(name):
    for entry in LISTED[name]:
        assert all((entry.name, entry.type, entry.default, entry.meaning)), entry
        assert "\n" not in entry.meaning
        assert entry.meaning.endswith((".", ")")), entry


def test_every_table_of_a_scenario_file_has_a_section():
    listed = (re.sub(r"\W", "", name) for name in LISTED if "[" in name and "." not in name)

    assert list(dict.fromkeys(listed)) == list(SCENARIO_TABLES)


@each_case("role", [role for role in ROLES if not role.endswith("pull-consumer")])
def test_every_option_that_the_loader_reads_is_listed(role):
    listed = [entry.name for entry in options_of(role) if entry.name != "release"]

    assert sorted(listed) == sorted(options(ROLES[role]))


def test_every_key_that_is_listed_is_read():
    """A key that no table knows would be refused as unknown."""
    for name, entries in sections().items():
        section = re.sub(r"\W", "", name.removeprefix("[producer."))
        for key in (key for entry in entries for key in entry.name.split(", ")):
            table = {key: object()}
            tables = {section: [table] if name.startswith("[[") else table}
            if name.startswith("[producer."):
                tables = {"producer": [{section: table}]}
            with pytest.raises(ValueError, match=r".") as refused:
                from_dict(tables)
            assert not [line for line in refused.value.lines if "unknown key" in line], (name, key)


def test_a_key_is_required_if_the_loader_misses_it():
    for name, entries in sections().items():
        section = path = re.sub(r"\W", "", name.removeprefix("[producer."))
        tables = {"broker": [{"name": "b"}], section: [{}] if name.startswith("[[") else {}}
        if name.startswith("[producer."):
            path = f"producer[0].{section}"
            tables = {"producer": [{"group": "g", "topic": "t", section: {}}]}
        with pytest.raises(ValueError, match=r".") as refused:
            from_dict(tables)
        own = [key.rpartition(".")[2] for key in _missing(refused.value) if key.startswith(path)]
        required = [entry.name.partition(",")[0] for entry in entries if entry.default == "required"]
        if section in ("fault", "nemesis", "admin"):
            required.append("kind")  # or `do`
        assert sorted(own) == sorted(required), name


def _missing(error):
    return [item.key for item in error.all if item.problem.startswith("missing")]


def test_the_readmes_lead_to_the_page():
    root = Path(__file__).parents[2]
    for readme, link in (("README.md", "emulator/spec/REFERENCE.md"), ("emulator/README.md", "spec/REFERENCE.md")):
        assert f"]({link})" in (root / readme).read_text(encoding="utf-8")


def test_rows_have_as_many_cells_as_their_heads_and_links_lead_to_headings():
    for table in re.findall(r"(?:^\|.*\n)+", page(), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table
    titles = re.findall(r"^## (.*)$", page(), re.MULTILINE)
    headings = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
    assert [link for link in re.findall(r"\]\(#(.*?)\)", page()) if link not in headings] == []
