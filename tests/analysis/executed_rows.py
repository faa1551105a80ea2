"""Clusters that were run in memory, as oracles read them."""

from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_rows
from emulator.history.rows.row_classes import ROWS


class ExecutedRows:
    """The rows of a trace that was retained in memory."""

    def __init__(self, trace):
        self._trace = trace

    def rows(self, table):
        row_class = ROWS[table]
        return [row_class(*(row[name] for name in row_class._fields)) for row in self._trace.rows[table.name]]

    def frames(self):
        return ()


def found_in_executed(trace):
    """What the oracles find in it."""
    return judge_rows(ExecutedRows(trace), RunFacts(round(trace.end_ms * 1e6)))
