"""The tables of one run by name, for notebooks."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from emulator.analysis.frames import read_frames, segment_rows
from emulator.analysis.session import session_for, spark_session
from emulator.trace.reader import RunDirectory
from emulator.trace.schema import TABLES


class TraceFrames(Mapping[str, DataFrame]):
    """The tables of a run as it was when this was made: `trace.beliefs` or `trace["beliefs"]`.

    Args:
        run: the run.
        spark: session to use; one is started on this machine where there is none.
    """

    def __init__(self, run: RunDirectory, spark: SparkSession | None = None) -> None:
        self._rows = segment_rows(run)
        self._run = run.run
        frames = read_frames(session_for(spark or spark_session(), sum(self._rows.values())), [run])
        self._frames: dict[str, DataFrame] = {table.name: getattr(frames, table.name).drop("run") for table in TABLES}

    def __getitem__(self, table: str) -> DataFrame:
        return self._frames[table]

    def __getattr__(self, table: str) -> DataFrame:
        if table.startswith("_") or table not in self._frames:
            raise AttributeError(f"a trace has no table {table}; it has {', '.join(t.name for t in TABLES)}")
        return self._frames[table]

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._frames])

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __repr__(self) -> str:
        width = max(len(table.name) for table in TABLES)
        return "\n".join(f"{t.name:<{width}}  {self._rows[t.name]:>8,} rows  {t.doc}" for t in TABLES)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        rows = "".join(
            f"<tr><td style='text-align:left'><code>{escape(t.name)}</code></td><td>{self._rows[t.name]:,}</td>"
            f"<td style='text-align:left'>{escape(t.doc)}</td></tr>"
            for t in TABLES
        )
        head = "<tr><th style='text-align:left'>table</th><th>rows</th><th style='text-align:left'>what</th></tr>"
        return {"text/plain": repr(self), "text/html": f"<table>{head}{rows}</table>"}
