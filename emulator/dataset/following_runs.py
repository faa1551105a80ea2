"""Following several runs at once: the query `differences`, whose changes are handed on in order.

The watchers are in Spark's state, a share of a run each, so several tasks run them and a restart goes on. Spark repeats
a batch that was killed before its commit. The changes of a share are numbered, and the last number of each share is
written down after its changes were handed on, so changes that come once more are skipped.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.live.changes import DifferenceChange, WatchedDifference
from emulator.analysis.live.checkpoint import CheckpointError
from emulator.analysis.live.following import recorded_names
from emulator.base.errors import UserError
from emulator.base.files import read_bytes, require_own_tree
from emulator.dataset.differences import PROVIDER, ROCKS_DB, differences
from emulator.dataset.source.columns import ROWS
from emulator.dataset.source.data_source import FORMAT, reason, register
from emulator.dataset.source.run_paths import runs_of
from emulator.spec import from_dict
from emulator.spec.model.addresses import owners
from emulator.spec.model.scenario import Scenario
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.run_directory import open_run
from emulator.trace.seals import BrokenSealError, sealed, unsealed

REACHED = "reached.json"
_SPARK = "spark"
_TRIGGER = "500 milliseconds"
_LOOK_EVERY_S, _STOP_S = 0.1, 10.0
_SHARES = 2
"""A notebook has a few cores, and each share costs some milliseconds per batch."""
_COLUMNS = tuple(field.name for field in attrs.fields(DifferenceChange))


@attrs.frozen
class ChangeOfRun:
    """A change, and the run in which it was seen."""

    run: str
    change: DifferenceChange


OnChanges = Callable[[Sequence[ChangeOfRun]], None]


class FollowingRuns:
    """Follows runs, until it is stopped; runs that begin later in a folder are followed, too.

    Args:
        paths: run directories, or folders of runs.
        checkpoint: folder that keeps how far the runs were followed.
        on_changes: called with changes, in order of their instants, from a thread of Spark's query.

    Raises:
        UserError: no run is there, one cannot be read, or two scenarios call brokers of several names the same.
        CheckpointError: the folder is no checkpoint of such a query.
    """

    def __init__(self, paths: Sequence[Path], checkpoint: Path, on_changes: OnChanges) -> None:
        self._paths = tuple(path.absolute() for path in paths)
        self._checkpoint = checkpoint.absolute()
        self._on_changes = on_changes
        self._broker_names = _merged_broker_names(self.runs)
        self._numbers: dict[str, int] = {}
        """Mapping `run/share` -> number of its last change that was handed on."""
        self._open: dict[tuple[str, WatchedDifference, str], ChangeOfRun] = {}
        self._read_reached()
        self._error: Exception | None = None
        self._query: StreamingQuery | None = None

    @property
    def runs(self) -> Mapping[str, Path]:
        """Mapping run -> its directory, as they are there now."""
        return runs_of(self._paths)

    @property
    def differences(self) -> tuple[ChangeOfRun, ...]:
        """What differs now, what changed last at the end."""
        return tuple(self._open.values())

    def names(self, run: str) -> Mapping[str, str]:
        """Mapping address, or client id of a guest -> node, of a run."""
        path = self.runs[run]
        return recorded_names(path) or owners(_scenario_of(path))

    def start(self, session: SparkSession) -> None:
        """Begin to read.

        Args:
            session: of Spark; its settings are not changed.
        """
        spark = session.newSession()
        spark.conf.set(PROVIDER, ROCKS_DB)
        spark.conf.set("spark.sql.shuffle.partitions", str(_SHARES))
        register(spark)
        paths = json.dumps([str(path) for path in self._paths])
        rows = spark.readStream.format(FORMAT).options(table=ROWS, endOfRun="true", paths=paths).load()
        changes = differences(rows, self._broker_names, shares=_SHARES)
        query = changes.writeStream.foreachBatch(self._take).trigger(processingTime=_TRIGGER)
        self._query = query.option("checkpointLocation", str(self._checkpoint / _SPARK)).start()

    def check(self) -> None:
        """Raise what has ended the query, if anything has.

        Raises:
            UserError: the rows cannot be read.
            OSError: what is handed on cannot be printed or written down.
        """
        if self._error is not None:
            raise self._error
        if self._query is not None and (failure := self._query.exception()) is not None:
            raise UserError(f"the runs cannot be followed: {reason(failure)}")

    def stop(self) -> None:
        """Stop reading when the batch that is under way has been handed on; the checkpoint can be used again."""
        query, self._query = self._query, None
        if query is not None:
            _stop_between_batches(query)

    # --- batches --------------------------------------------------------------------------

    def _take(self, batch: DataFrame, _number: int) -> None:
        """Hand on the changes of a batch; Spark's query calls it."""
        try:
            self._hand_on(batch.toArrow().to_pylist())
        except Exception as error:
            self._error = error
            raise

    def _hand_on(self, rows: Sequence[Mapping[str, Any]]) -> None:
        new = [row for row in rows if row["number"] > self._numbers.get(_share_of(row), 0)]
        new.sort(key=lambda row: (row["t_ns"], row["run"], row["share"], row["number"]))
        changes = [ChangeOfRun(row["run"], _change(row)) for row in new]
        for change in changes:
            key = (change.run, change.change.what, change.change.about)
            self._open.pop(key, None)
            if not change.change.ended:
                self._open[key] = change
        if changes:
            self._on_changes(changes)
            self._numbers |= {_share_of(row): row["number"] for row in new}
            self._write_reached()

    # --- the checkpoint -------------------------------------------------------------------

    def _write_reached(self) -> None:
        differing = [{"run": item.run, **attrs.asdict(item.change)} for item in self._open.values()]
        content = {"numbers": self._numbers, "open": differing}
        put_in_place(RunFiles(), self._checkpoint / REACHED, sealed(content).encode())

    def _read_reached(self) -> None:
        path = self._checkpoint / REACHED
        require_own_tree(self._checkpoint / _SPARK)
        try:
            reached = unsealed(read_bytes(path))
        except FileNotFoundError:
            if self._checkpoint.exists() and any(self._checkpoint.iterdir()):
                problem = f"{self._checkpoint} is no checkpoint of several runs: expected an empty folder, or a new one"
                raise CheckpointError(problem) from None
            self._checkpoint.mkdir(parents=True, exist_ok=True)
            self._write_reached()
            return
        except BrokenSealError as error:
            raise CheckpointError(f"{path} is damaged: {error}") from None
        try:
            self._numbers = {str(share): int(number) for share, number in reached["numbers"].items()}
            for row in reached["open"]:
                item = ChangeOfRun(str(row["run"]), _change(row))
                self._open[item.run, item.change.what, item.change.about] = item
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from None


def _share_of(row: Mapping[str, Any]) -> str:
    return f"{row['run']}/{row['share']}"


def _change(row: Mapping[str, Any]) -> DifferenceChange:
    values = {name: row[name] for name in _COLUMNS}
    return DifferenceChange(**{**values, "what": WatchedDifference(row["what"])})


def _scenario_of(run: Path) -> Scenario:
    return from_dict(open_run(run).manifest["scenario"], "the scenario of the run")


def _merged_broker_names(runs: Mapping[str, Path]) -> dict[str, str]:
    """Mapping node of a broker -> brokerName, of all runs."""
    if not runs:
        raise UserError("no run is there; expected run directories, or folders of runs")
    found: dict[str, str] = {}
    for name, path in runs.items():
        for node, broker_name in facts_of(_scenario_of(path), 0).broker_names.items():
            if found.setdefault(node, broker_name) != broker_name:
                raise UserError(f"{name}: {node} belongs to {broker_name}, in another run to {found[node]}")
    return found


def _stop_between_batches(query: StreamingQuery) -> None:
    """Stop a query when the batch that is under way is over, so that nothing of it comes once more."""
    give_up_s = time.monotonic() + _STOP_S
    while query.status["isTriggerActive"] and query.isActive and time.monotonic() < give_up_s:
        time.sleep(_LOOK_EVERY_S)
    query.stop()
