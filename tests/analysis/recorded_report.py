"""The report of the demonstration, as it was recorded."""

from pathlib import Path

import attrs
import cattrs

from emulator.analysis.report import TABLES_OF_REPORT, Report

RECORDED = Path(__file__).with_name("demonstration_report.json")
"""What `rmqemu analyze --json` printed of the demonstration's run."""


def read_report(content):
    """A report from its JSON."""
    head = {field.name: content[field.name] for field in attrs.fields(Report) if field.name != "rows"}
    found = content["findings"]
    rows = {table.name: cattrs.structure(found[table.name], tuple[table.row_class, ...]) for table in TABLES_OF_REPORT}
    return attrs.evolve(cattrs.structure({**head, "rows": {}}, Report), rows=rows)
