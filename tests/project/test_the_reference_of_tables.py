"""The reference of tables is generated from the code as it is, and says what every column means."""

import re
from inspect import isfunction

from emulator.analysis.arrow_tables import RUNS, TABLES, schema_of
from emulator.dataset.landed_runs import LandedRuns
from emulator.notebook.traces import Traces
from emulator.pipeline.typed import VALUE_TYPES
from emulator.trace.schema import TABLES as TRACE_TABLES
from nodes.beliefs import BeliefKind
from project.tables import PAGE, page


def test_the_page_is_generated_from_the_code_as_it_is():
    assert PAGE.read_text(encoding="utf-8") == page(), "make tables writes it again"


def test_every_column_of_every_table_is_named_with_its_meaning():
    sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", page(), re.MULTILINE | re.DOTALL))

    for name in (RUNS, *TABLES):
        columns = [column for column in schema_of(name).names if column not in ("run", "variant", "seed")]
        assert [column for column in columns if f"`{column}`" not in sections[name]] == [], name
    for table in TRACE_TABLES:
        text = sections[f"Rows of {table.name}"]
        assert [column.name for column in table.columns if f"`{column.name}`" not in text] == [], table.name


def test_every_kind_of_belief_says_who_holds_it_its_subject_and_its_value():
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page().partition("## Beliefs")[2], re.MULTILINE))

    for kind in BeliefKind:
        assert re.match(r"\w+(, \w+)*: .*Subject: .*[Vv]alue: ", rows[kind.value]), kind


def test_every_kind_of_belief_has_a_type_in_datasets_unless_its_values_have_several_forms():
    untyped = [kind for kind in BeliefKind if kind not in VALUE_TYPES]

    assert untyped == [BeliefKind.HA_STATE, BeliefKind.BUSY, BeliefKind.DENIED]


def test_every_frame_is_listed():
    listed = re.findall(r"^\| `(\w+)\(", page(), re.MULTILINE)

    assert listed == [*_methods(Traces), *_methods(LandedRuns)]


def _methods(of):
    return sorted(name for name, member in vars(of).items() if isfunction(member) and not name.startswith("_"))


def test_rows_of_tables_have_as_many_cells_as_their_heads():
    for table in re.findall(r"(?:^\|.*\n)+", page(), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, table
