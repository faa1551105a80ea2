"""Landed runs as DataFrames: what `emulator.traces(spark, PATH)` returns.

All DataFrames are lazy. Those of bronze and silver are plain queries over Parquet, so filters on `run` reach the files;
those of gold run the sweep of the judge in tasks, or read what `judge().write()` has written.
"""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from emulator.analysis.arrow_tables import RUNS, TABLES
from emulator.analysis.inputs.holdings import ViewPart
from emulator.base.errors import UserError
from emulator.base.text import nearest
from emulator.dataset.workers import prepare
from emulator.lake.filesystems import located
from emulator.lake.gold import GOLD_TABLES, Gold, commit_gold, gold_of, gold_place, read_gold
from emulator.lake.landing import land
from emulator.lake.layout import STORED, FileEntry
from emulator.lake.snapshot import Dataset, open_dataset
from emulator.lake.sources import RunSource
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.cause_windows import cause_windows
from emulator.pipeline.consumption import broadcasting, consumptions
from emulator.pipeline.disagreements import disagreements, double_owners
from emulator.pipeline.gold import DIVERGENCES, gold
from emulator.pipeline.holdings import changes_of_values, holdings
from emulator.pipeline.lag_by_queue import lag_by_queue
from emulator.pipeline.missing_owners import missing_owners
from emulator.pipeline.offsets import offsets
from emulator.pipeline.processes import of_living, processes
from emulator.pipeline.queue_holds import queue_holds
from emulator.pipeline.rates import rates
from emulator.pipeline.sweep_tasks import findings, lag_series, rows_per_share, written
from emulator.pipeline.typed import VALUE_TYPES, typed
from emulator.trace.schema import ADMIN, BELIEFS, COUNTS, LIFECYCLE, MESSAGES, OWNERSHIP, PASSES, RPC
from emulator.trace.schema import TABLES as TRACED
from nodes.beliefs import BeliefKind
from nodes.fields import shown
from nodes.units import NS_PER_S

Session = SparkSession
"""A session, of Spark itself or of Spark Connect."""
SILVER = (
    *("processes", "holdings", "queue_holds", "disagreements", "double_owners", "missing_owners"),
    *("offsets", "consumptions", "cause_windows", "rates"),
)
"""Names of the silver tables."""
LAG = ("lag", "lag_by_queue")
"""Names of the tables of lag, which are computed for each query."""
_KINDS = (*(kind.value for kind in BeliefKind), *(part.kind for part in ViewPart))
"""Kinds of divergences."""
_ADDRESSES = {BELIEFS.name: "source", PASSES.name: "source", MESSAGES.name: "client_id", ADMIN.name: "client"}
"""Mapping table -> its column with an address of a node."""


def _node_of(address: Column) -> Column:
    """The node of an address or a client id, by the column `names`; an unknown one stays."""
    ip = F.substring_index(F.substring_index(address, "@", 1), ":", 1)
    return F.coalesce(F.col("names")[address], F.col("names")[ip], address)


_NAMED_VALUES: Mapping[BeliefKind, Callable[[Column], Column]] = {
    BeliefKind.VIEW: lambda value: value.withField("cids", F.transform(value["cids"], _node_of)),
    BeliefKind.CONSUMER_IDS: lambda value: F.transform(value, _node_of),
}
"""Mapping kind -> its values with names of nodes in place of client ids."""


def open_landed(spark: SparkSession, uri: str | Path) -> "LandedRuns":
    """Open a dataset.

    Args:
        spark: any session, also one of Spark Connect; it has to reach the files.
        uri: of the dataset.

    Raises:
        DatasetError: it is none, is damaged, or cannot be read.
    """
    return LandedRuns(spark, open_dataset(uri))


def land_for_now(spark: SparkSession, sources: Iterable[Path | str | RunSource]) -> "LandedRuns | None":
    """Land run directories in a folder that is removed when this process ends, and open it.

    Args:
        spark: a session whose tasks run on this machine.
        sources: run directories; those that cannot be read are left out.

    Returns:
        None: none could be read.

    Raises:
        DatasetError: the folder cannot be written.
    """
    landed = land(sources, folder := _folder())
    return LandedRuns(spark, open_dataset(folder)) if landed.runs else None


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rmqemu-dataset-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "dataset"


def _require_whole_seconds(every_s: object) -> None:
    if not isinstance(every_s, int) or isinstance(every_s, bool) or every_s < 1:
        raise UserError(f"every_s: expected a whole number of seconds >= 1, not {shown(repr(every_s))}")


def _interval(every_s: int) -> Column:
    """Where the interval of a second begins."""
    _require_whole_seconds(every_s)
    return (F.floor(F.col("second") / every_s) * every_s * NS_PER_S).alias("start_ns")


class LandedRuns:
    """The runs of a dataset.

    Args:
        spark: the session.
        dataset: of the runs.
    """

    def __init__(self, spark: SparkSession, dataset: Dataset) -> None:
        prepare(spark)
        self.spark = spark
        self.dataset = dataset

    def __repr__(self) -> str:
        runs = len(self.dataset.runs)
        return f"{self.dataset.uri}: {runs:,} run{'s' if runs != 1 else ''}, {self.dataset.rows:,} rows"

    # --- bronze ---------------------------------------------------------------------------

    @cached_property
    def bronze(self) -> Bronze:
        """The landed tables."""
        return Bronze(self._read(RUNS), {table.name: self._read(table.name) for table in TRACED})

    def table(self, name: str) -> DataFrame:
        """A table of the trace, or `runs`, with the names of nodes in place of their addresses.

        Raises:
            UserError: there is no such table.
        """
        if name not in STORED:
            raise UserError(nearest("table", name, list(STORED)))
        column = _ADDRESSES.get(name)
        if column is None:
            return self._read(name)
        return self._with_names(self._read(name)).withColumn(column, _node_of(F.col(column))).drop("names")

    def _with_names(self, rows: DataFrame) -> DataFrame:
        """Rows with the column `names` of their run."""
        return rows.join(F.broadcast(self.bronze.runs.select("run", "names")), "run")

    def beliefs(self, kind: str) -> DataFrame:
        """The beliefs of a kind, with `value` as a typed column in place of JSON.

        The members of `view` and `consumer_ids` are names of nodes; addresses in values of other kinds stay.

        Raises:
            UserError: there is no such kind, or its values have no type.
        """
        if kind not in VALUE_TYPES:
            raise UserError(nearest("kind", kind, [item.value for item in VALUE_TYPES]))
        found = typed(self.table(BELIEFS.name), BeliefKind(kind))
        named = _NAMED_VALUES.get(BeliefKind(kind))
        if named is None:
            return found
        return self._with_names(found).withColumn("value", named(F.col("value"))).drop("names")

    def _read(self, name: str) -> DataFrame:
        schema, files = from_arrow_schema(STORED[name].schema), self.dataset.files(name)
        if not files:
            return self.spark.createDataFrame([], schema)
        return self.spark.read.schema(schema).parquet(*files)

    # --- silver ---------------------------------------------------------------------------

    def silver(self, name: str) -> DataFrame:
        """A silver table.

        Raises:
            UserError: there is no such table.
        """
        if name not in SILVER:
            raise UserError(nearest("table", name, list(SILVER)))
        found: DataFrame = getattr(self, name)()
        return found

    def processes(self) -> DataFrame:
        """When each process began and ended, and when it was suspended."""
        return processes(self.bronze.table(LIFECYCLE))

    def holdings(self) -> DataFrame:
        """Which node held which value of a subject, from when to when."""
        return holdings(changes_of_values(self.bronze.table(BELIEFS), self.bronze.table(PASSES)), self._lives)

    def queue_holds(self) -> DataFrame:
        """Which consumer owned which queue, from when to when."""
        return queue_holds(self.bronze.table(OWNERSHIP), self._lives)

    def disagreements(self) -> DataFrame:
        """When nodes of one role held two or more values of a subject, by windows over `holdings`."""
        return disagreements(self._held, self.bronze.runs)

    def double_owners(self) -> DataFrame:
        """When a queue of a group had two or more owners, by windows over `queue_holds`."""
        groups = broadcasting(of_living(self.bronze.table(BELIEFS), self._lives))
        return double_owners(self.queue_holds(), groups, self.bronze.runs)

    def missing_owners(self) -> DataFrame:
        """When a queue that was owed an owner had none, by windows over silver."""
        return missing_owners(self.bronze, self._held, self._lives)

    @cached_property
    def _lives(self) -> DataFrame:
        """As `processes`, for further tables: to define a plan once more takes a tenth of a second."""
        return self.processes()

    @cached_property
    def _held(self) -> DataFrame:
        """As `holdings`, for further tables."""
        return self.holdings()

    def offsets(self) -> DataFrame:
        """Commits, resets and starts, with the last commit before."""
        return offsets(self.table(MESSAGES.name), self.bronze.table(OWNERSHIP))

    def consumptions(self) -> DataFrame:
        """Each consumption of a message, and when it was stored."""
        return consumptions(self.bronze.table(MESSAGES), broadcasting(self.bronze.table(BELIEFS)))

    def cause_windows(self) -> DataFrame:
        """What may make views and owners differ, and for how long it explains that, per group."""
        return cause_windows(self.bronze)

    def rates(self, every_s: int = 1) -> DataFrame:
        """Frames by what they were and what became of them, in each interval of so many seconds.

        Returns:
            run, start_ns, event, src, dst, kind, code, status, frames.

        Raises:
            UserError: the interval is not whole seconds.
        """
        start_ns = _interval(every_s)
        counted = rates(self.bronze.table(RPC), self.bronze.table(COUNTS))
        keys = [name for name in counted.columns if name not in ("second", "frames")]
        return counted.groupBy("run", start_ns, *keys[1:]).agg(F.sum("frames").alias("frames"))

    # --- gold -----------------------------------------------------------------------------

    def gold(self, name: str) -> DataFrame:
        """A gold table: findings of one kind, or `runs` with verdicts and measures; with the variant of each run.

        It is read of the runs for which `judge().write()` has written it; the others are judged now.

        Raises:
            UserError: there is no such table.
        """
        if name not in GOLD_TABLES:
            raise UserError(nearest("table", name, list(GOLD_TABLES)))
        return self._gold(name)

    def _gold(self, *names: str) -> DataFrame:
        """Gold tables with the same columns as one, with the variants of the runs."""
        judged, new = _judged_and_new(self._written, self.dataset)
        read = [read_gold_table(self.spark, self._written, name) for name in names if judged]
        if judged and len(judged) < len(self._written.runs):  # the dataset was opened before the newest runs had landed
            read = [rows.where(F.col("run").isin(*judged)) for rows in read]
        if new:
            bronze = _only(self.bronze, new, judged)
            read.append(gold(bronze, *names, rows_per_share=self._rows_per_share))
        found = functools.reduce(DataFrame.unionByName, read)
        return found.join(F.broadcast(self._variants), "run").select("run", "variant", *found.columns[1:])

    @cached_property
    def _variants(self) -> DataFrame:
        """The variant of each run; of one that belongs to no campaign it is the name of the scenario."""
        variant = F.when(F.col("variant") == "", F.col("scenario")).otherwise(F.col("variant"))
        return self.bronze.runs.select("run", variant.alias("variant"))

    def runs(self) -> DataFrame:
        """One row per run: variant, condition and campaign, both verdicts and all measures."""
        heads = self.bronze.runs.select("run", "campaign", "condition", "level", "release")
        return heads.join(self.gold(RUNS), "run")

    def divergence(self, kinds: Sequence[str] | None = None) -> DataFrame:
        """When nodes held several values of a subject, of some kinds of beliefs or of all.

        Raises:
            UserError: there is no such kind.
        """
        for kind in kinds or ():
            if kind not in _KINDS:
                raise UserError(nearest("kind", kind, list(_KINDS)))
        found = self._gold(*DIVERGENCES)
        return found if kinds is None else found.where(F.col("kind").isin(*kinds))

    def overlaps(self) -> DataFrame:
        """When queues had two or more owners."""
        return self.gold("overlaps")

    def orphans(self) -> DataFrame:
        """When readable queues had no owner although their group had a live member."""
        return self.gold("orphans")

    def lag(self, every_s: int = 1) -> DataFrame:
        """The most messages of a topic that waited for a group in each interval of so many seconds.

        Returns:
            run, variant, seed, group, topic, start_ns, waiting.

        Raises:
            UserError: the interval is not whole seconds.
        """
        start_ns = _interval(every_s)
        per_second = lag_series(self.bronze, rows_per_share=self._rows_per_share)
        found = per_second.groupBy("run", "group", "topic", start_ns).agg(F.max("waiting").alias("waiting"))
        return self._of_runs(found)

    def lag_by_queue(self, every_s: int = 1) -> DataFrame:
        """The messages of each queue that waited for a group in each interval of so many seconds.

        `waiting` is what waited in the queue when most messages of its topic did, so the queues of a topic add up to
        its `lag`; `waiting_max` is the most in the queue, which may have been at another instant.

        Returns:
            run, variant, seed, group, topic, broker_name, queue_id, node (the consumer, in a group that broadcasts;
            else empty), start_ns, waiting, waiting_max.

        Raises:
            UserError: the interval is not whole seconds.
        """
        _require_whole_seconds(every_s)
        return self._of_runs(lag_by_queue(self.bronze, every_s))

    def _of_runs(self, rows: DataFrame) -> DataFrame:
        """Rows with the variant and the seed of their run."""
        seeds = self.bronze.runs.select("run", "seed")
        whose = F.broadcast(self._variants.join(seeds, "run").select("run", "variant", "seed"))
        return whose.join(rows, "run")

    def judge(self) -> "JudgedRuns":
        """Judge all runs; nothing is computed before `write` or a table is asked for."""
        return JudgedRuns(self)

    def findings(self) -> DataFrame:
        """What is found in all runs, a row per run: commands make their reports of it.

        Returns:
            run, agreed_ns, and a column per table of a report, with all fields of its rows.
        """
        return findings(self.bronze, rows_per_share=self._rows_per_share)

    # --- SQL and plans --------------------------------------------------------------------

    def register(self, prefix: str = "rmq") -> list[str]:
        """Register a temporary view for every table, as `PREFIX_overlaps`.

        Tables of bronze whose name a gold table has are registered as `PREFIX_trace_NAME`, `runs` with its verdicts.

        Returns:
            Names of the views, sorted.
        """
        views = dict(self._views())
        for name, frame in views.items():
            frame.createOrReplaceTempView(f"{prefix}_{name}")
        return sorted(f"{prefix}_{name}" for name in views)

    def _views(self) -> Iterator[tuple[str, DataFrame]]:
        for table in TRACED:
            yield f"trace_{table.name}" if table.name in TABLES else table.name, self.table(table.name)
        for name in SILVER:
            yield name, self.silver(name)
        for name in TABLES:
            yield name, self.gold(name)
        yield RUNS, self.runs()
        for name in LAG:
            yield name, getattr(self, name)()

    def explain(self, name: str) -> None:
        """Print the plan of a table: of bronze, silver or gold.

        Raises:
            UserError: there is no such table.
        """
        self.frame(name).explain("formatted")

    def frame(self, name: str) -> DataFrame:
        """A table by its name: of silver, of gold, or of the trace.

        Raises:
            UserError: there is no such table.
        """
        if name in SILVER:
            return self.silver(name)
        if name in ("divergence", *LAG):
            found: DataFrame = getattr(self, name)()
            return found
        if name == RUNS:
            return self.runs()
        if name in TABLES:
            return self.gold(name)
        if name in STORED:
            return self.table(name)
        raise UserError(nearest("table", name, [*SILVER, "divergence", *LAG, RUNS, *TABLES, *STORED]))

    @cached_property
    def _written(self) -> Gold:
        """The gold of the dataset."""
        return gold_of(self.dataset.location)

    @cached_property
    def _rows_per_share(self) -> int | None:
        """None: no run has so many messages that it is worth to divide it."""
        return rows_per_share(self.dataset.table(RUNS))


class JudgedRuns:
    """The judgement of all runs of a dataset.

    Args:
        landed: the runs.
    """

    def __init__(self, landed: LandedRuns) -> None:
        self._landed = landed

    def table(self, name: str) -> DataFrame:
        """A gold table; see `LandedRuns.gold`."""
        return self._landed.gold(name)

    def write(self, uri: str | Path | None = None) -> Gold:
        """Judge the runs that gold does not have yet, in one job, and write all gold tables.

        Args:
            uri: where gold lies; None: in the dataset.

        Raises:
            DatasetError: it cannot be written, or is damaged.
        """
        landed = self._landed
        location = located(uri) if uri is not None else gold_place(landed.dataset.location)
        before = read_gold(location)
        judged, new = _judged_and_new(before, landed.dataset)
        if not new:
            return before
        bronze = _only(landed.bronze, new, judged)
        rows = written(bronze, location, rows_per_share=landed._rows_per_share).collect()  # noqa: SLF001 - its own
        entries = landed.dataset.snapshot.runs
        after = commit_gold(location, [FileEntry(**row.asDict()) for row in rows], [entries[run] for run in new])
        landed.__dict__.pop("_written", None)
        return after


def _judged_and_new(gold: Gold, dataset: Dataset) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runs of a dataset that gold has, and those that it lacks."""
    new = gold.lacks(dataset.snapshot.runs)
    lacking = dict.fromkeys(new)
    return tuple(run for run in dataset.runs if run not in lacking), new


def _only(bronze: Bronze, runs: Sequence[str], others: Sequence[str]) -> Bronze:
    """The tables with some runs; the condition names these, or the others if there are fewer of them."""
    if not others:
        return bronze
    wanted = F.col("run").isin(*runs) if len(runs) <= len(others) else ~F.col("run").isin(*others)
    return Bronze(bronze.runs.where(wanted), {name: rows.where(wanted) for name, rows in bronze.tables.items()})


def read_gold_table(spark: SparkSession, found: Gold, name: str) -> DataFrame:
    """A table of gold that has been written."""
    schema, files = from_arrow_schema(GOLD_TABLES[name].schema), found.uris(name)
    return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)
