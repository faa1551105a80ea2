"""`emulator.traces`: one run, many runs or a campaign as named pandas frames, and statistics over them.

Every frame begins with the columns run, variant and seed. Times are emulated
nanoseconds since the run began (`_ns`), durations also seconds (`duration_s`);
an interval that had not ended with its run ends there, and is censored. Nodes
have their names in place of addresses. Frames of findings
(`emulator.analysis.arrow_tables.TABLES`) exist for every run, frames of rows (`lag`,
`sends`, `rates`, `beliefs`, `log`) for those whose traces are there.
`notebooks/TABLES.md` says what each column means.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from emulator.analysis.arrow_tables import TABLES
from emulator.analysis.rendering.shown_report import ShownReport
from emulator.analysis.rendering.shown_report import shown as shown_report
from emulator.analysis.report import RulesVerdict
from emulator.analysis.run_measures import MEASURES
from emulator.base.text import listed, nearest
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import is_campaign
from emulator.campaign.landing import sources_at
from emulator.campaign.results import Outcome
from emulator.dataset.engine import EngineName
from emulator.lake.filesystems import located
from emulator.lake.snapshot import Snapshot, open_dataset, read_snapshot
from emulator.lake.sources import is_dataset
from emulator.notebook import raw_frames
from emulator.notebook.html import VerbOutput
from emulator.notebook.raw_frames import TracesError
from emulator.notebook.sharing import per_phase, shared
from emulator.notebook.sources import NO_PATH, OfCampaign, OfLanded, OfRuns, Source, place_of, run_directories
from emulator.statistics import Comparison, StatisticsError, compare, estimate, survival, table, with_durations
from emulator.statistics.frames import require_columns
from emulator.trace.run_directory import RunDirectory, open_run
from emulator.trace.schema import BELIEFS, MESSAGES, OWNERSHIP, TraceTable
from emulator.why.answer import answer_of_run
from nodes.beliefs import BeliefKind

if TYPE_CHECKING:
    from emulator.dataset.landed_runs import LandedRuns, Session


@overload
def traces(*paths: Path | str, engine: EngineName | str = EngineName.LOCAL) -> "Traces": ...


@overload
def traces(spark: "Session", /, *paths: Path | str) -> "LandedRuns": ...


def traces(*paths: Any, engine: EngineName | str = EngineName.LOCAL) -> "Traces | LandedRuns":
    """Open runs, a campaign or a dataset.

    With a session of Spark as first argument, all tables are Spark's DataFrames; without one they are frames of pandas.

    Args:
        paths: one campaign; one dataset, a path or a URI; or run directories, or folders of them, whose variant is the
            name of their scenario.
        engine: what judges runs: `local`, or `spark` for very many; a campaign has been judged already.

    Raises:
        TracesError: no run is there, two have one name, or one of them cannot be read.
        CampaignError: the campaign cannot be read.
        DatasetError: the dataset cannot be read.
    """
    if paths and hasattr(paths[0], "readStream"):
        return _landed(paths[0], paths[1:])
    if len(paths) == 1 and is_dataset(paths[0]):
        return Traces(OfLanded(_opened(paths[0])))
    places = [place_of(path) for path in paths]
    if engine not in list(EngineName):
        raise TracesError(nearest("engine", str(engine), [name.value for name in EngineName]))
    campaigns = [place for place in places if is_campaign(place)]
    if campaigns and len(places) > 1:
        raise TracesError(f"{campaigns[0]} is a campaign; expected it alone, or run directories")
    if campaigns:
        return Traces(OfCampaign(CampaignResults(campaigns[0])))
    return Traces(OfRuns(list(run_directories(places)), EngineName(engine)))


def _landed(spark: "Session", paths: Sequence[Path | str]) -> "LandedRuns":
    """The tables of a dataset, also of that of a campaign; runs are landed first, for as long as this process runs."""
    from emulator.dataset.landed_runs import land_for_now, open_landed  # noqa: PLC0415 - Spark takes seconds to import

    if len(paths) == 1 and is_dataset(paths[0]):
        return open_landed(spark, paths[0])
    if len(paths) == 1 and (uri := _dataset_of(place_of(paths[0]))) is not None:
        return open_landed(spark, uri)
    places = [place_of(path) for path in paths]
    if not places:
        raise TracesError(NO_PATH)
    sources = [source for place in places for source in sources_at(place)]
    landed = land_for_now(spark, sources)
    if landed is None:
        raise TracesError("expected a run that can be read, a folder of runs, a campaign or a dataset")
    return landed


def _dataset_of(place: Path) -> str | None:
    """The dataset in which a campaign has landed all runs that have come to their end; None: there is none."""
    campaign = CampaignResults(place) if is_campaign(place) else None
    uri = None if campaign is None else campaign.directory.dataset_uri
    if campaign is None or uri is None:
        return None
    landed = (read_snapshot(located(uri)) or Snapshot()).runs
    return uri if landed and all(item.case.name in landed for item in campaign.recorded() if item.ended) else None


def _opened(uri: Path | str) -> "LandedRuns":
    """A dataset in a session where the environment, the warm server or this process has one."""
    from emulator.dataset.landed_runs import open_landed  # noqa: PLC0415 - Spark takes seconds to import
    from emulator.dataset.sessions import open_session  # noqa: PLC0415 - as above

    dataset = open_dataset(uri)
    return open_landed(open_session(rows=dataset.rows, uri=dataset.uri), uri)


class Traces:
    """Frames of one run or of many; see the module.

    Args:
        source: of the findings.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    # --- findings --------------------------------------------------------------------

    @cached_property
    def _runs(self) -> pd.DataFrame:
        return self._source.runs()

    def runs(self) -> pd.DataFrame:
        """One row per run: what was run, both verdicts, the reasons, and a column per measure (`measures()`).

        `verdict` is the verdict of the rules (valid, invalid, unknown), `service` that of the service (calm, degraded,
        paging).
        """
        return self._runs.copy()

    def measures(self) -> pd.DataFrame:
        """The measures by which runs are compared: name and meaning; smaller is better."""
        return pd.DataFrame([(measure.name, measure.doc) for measure in MEASURES], columns=["measure", "meaning"])

    def tables(self) -> tuple[str, ...]:
        """Names for `findings`."""
        return tuple(TABLES)

    def findings(self, name: str) -> pd.DataFrame:
        """All findings of one kind; intervals have the column duration_s.

        Args:
            name: of `tables()`.

        Raises:
            TracesError: there is no such table, or no run of the campaign has been judged yet.
        """
        if name not in TABLES:
            raise TracesError(nearest("table", name, list(TABLES)))
        frame = self._source.findings(name)
        return with_durations(frame) if {"start_ns", "end_ns"} <= set(frame.columns) else frame

    def holds(self) -> pd.DataFrame:
        """Who owned which queue, and when."""
        return self.findings("holds")

    def overlaps(self) -> pd.DataFrame:
        """Queues with two owners or more."""
        return self.findings("overlaps")

    def orphans(self) -> pd.DataFrame:
        """Readable queues without an owner."""
        return self.findings("orphans")

    def views(self) -> pd.DataFrame:
        """Consumers that allocated from different views."""
        frame = self.findings("views")
        return frame[frame["kind"] == BeliefKind.VIEW]

    def hand_overs(self) -> pd.DataFrame:
        """Queues that changed hands: how long no consumer consumed them (`pause_s`), and what it cost."""
        frame = self.findings("hand_overs")
        return frame.assign(pause_s=frame["pause_ns"] / 1e9)

    def rebalances(self) -> pd.DataFrame:
        """What each change of a group's members did to its queues, and what it cost."""
        return self.findings("rebalances")

    def stalls(self) -> pd.DataFrame:
        """Queues that stood still with a backlog."""
        return self.findings("stalls")

    def phases(self) -> pd.DataFrame:
        """The parts of each run between its disturbances, with the queue time of harm in each.

        The column `phase` numbers them from 0 in each run; `what` is the disturbance as text, `start` for the first.
        """
        frame = self.findings("phases").sort_values(["run", "start_ns"], kind="stable")
        return frame.assign(phase=frame.groupby("run").cumcount(), what=_as_text(frame["what"]))

    def faults(self) -> pd.DataFrame:
        """The faults, from begin to end."""
        return self.findings("faults")

    def agreement(self) -> pd.DataFrame:
        """Time until all agreed after each disturbance (`agreement_s`), per layer: views, ownership."""
        frame = self.findings("agreement")
        return frame.assign(agreement_s=frame["took_ns"] / 1e9, what=_as_text(frame["what"]))

    def shared(self) -> pd.DataFrame:
        """When each consumer held a queue that somebody else held, too.

        One row per consumer, queue and interval, with the columns of `holds()`; so each second in which two
        consumers held a queue is there twice, once for each of them.
        """
        return with_durations(shared(self.holds()))

    def per_phase(self, intervals: pd.DataFrame) -> pd.DataFrame:
        """Intervals cut at the begins of phases, with the columns `phase` and `what` of `phases()`.

        Amounts of whole intervals (`active_ns`, `duplicates`, ...) are left out; `phases()` has some of them.

        Args:
            intervals: any frame with run, start_ns and end_ns, such as `overlaps()` or `shared()`.

        Raises:
            StatisticsError: it lacks one of these columns.
        """
        require_columns(intervals, ("run", "start_ns", "end_ns"))
        return with_durations(per_phase(intervals, self.phases()))

    # --- rows of traces that are there -------------------------------------------------

    def _of_rows(
        self, read: Callable[[RunDirectory], pd.DataFrame], run: str | None, *tables: TraceTable
    ) -> pd.DataFrame:
        """One frame of the rows of these tables, which the traces must have."""
        frames = []
        for (name, variant, seed), path in self._retained(run).items():
            opened = open_run(path)
            lacks = [table.name for table in tables if table not in opened.level.whole]
            if lacks:
                raise TracesError(f"{name}: its trace has level {opened.level}, so it has no {listed(lacks)}")
            frame = read(opened)
            for place, (column, value) in enumerate((("run", name), ("variant", variant), ("seed", seed))):
                frame.insert(place, column, value)
            frames.append(frame)
        # Frames without rows have no types, and would take those of the others away.
        return pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)

    def _retained(self, run: str | None) -> Mapping[tuple[str, str, int], Path]:
        retained = self._source.retained()
        if run is None:
            if not retained:
                raise TracesError('no trace was retained; repeat a run with its command in runs(), or keep = "all"')
            return retained
        chosen = {key: path for key, path in retained.items() if key[0] == run}
        if not chosen:
            known = self._runs.set_index("run")
            if run not in known.index:
                raise TracesError(nearest("run", str(run), list(known.index)))
            raise TracesError(f"no trace of {run} was retained; run it again: {known.loc[run, 'command']}")
        return chosen

    def beliefs(self, kind: str | None = None, run: str | None = None) -> pd.DataFrame:
        """Every change of what a node held to be true: t_ns, seq, node, role, kind, subject, value (JSON), reported_by.

        A belief that is confirmed has no row: a node that reports the same once more is not seen here.

        Args:
            kind: `nodes.beliefs.BeliefKind`, such as `view` or `consumer_ids`; None: all.
            run: name of one run; None: all whose traces are there.

        Raises:
            TracesError: there is no such kind, no such run, or no trace of it.
        """
        kinds = [known.value for known in BeliefKind]
        if kind is not None and kind not in kinds:
            raise TracesError(nearest("kind of belief", str(kind), kinds))
        wanted = None if kind is None else BeliefKind(kind)
        return self._of_rows(lambda opened: raw_frames.beliefs(opened, wanted), run, BELIEFS)

    def lag(self, every_s: float = 1.0, run: str | None = None) -> pd.DataFrame:
        """Messages that each group had not consumed yet, per queue, at regular instants.

        Columns: t_ns, group, node (the consumer, in a group that broadcasts; else empty), topic, broker_name,
        queue_id, lag. What the group has passed, by a commit or by a start above it, is no lag.

        Args:
            every_s: time between two instants, at least 0.001.
            run: name of one run; None: all whose traces are there.

        Raises:
            TracesError: `every_s` is no such time, there is no such run, or no trace of it.
        """
        period_ns = raw_frames.period_ns(every_s)
        return self._of_rows(lambda opened: raw_frames.lag(opened, period_ns), run, MESSAGES, OWNERSHIP)

    def sends(self, every_s: float = 1.0, run: str | None = None) -> pd.DataFrame:
        """Messages stored per queue in each period: t_ns (its begin), topic, broker_name, queue_id, stored.

        A period in which a queue stored nothing has no row.

        Args:
            every_s: length of a period, at least 0.001.
            run: name of one run; None: all whose traces are there.

        Raises:
            TracesError: as of `lag`.
        """
        period_ns = raw_frames.period_ns(every_s)
        return self._of_rows(lambda opened: raw_frames.sends(opened, period_ns), run, MESSAGES)

    def rates(self, every_s: float = 1.0, run: str | None = None) -> pd.DataFrame:
        """Frames in each period: t_ns (its begin), src, dst, kind, code, request (its name), event (fate), frames.

        A frame counts where its fate was known. A period without such frames has no row.

        Args:
            every_s: length of a period, at least 0.001.
            run: name of one run; None: all whose traces are there.

        Raises:
            TracesError: as of `lag`.
        """
        period_ns = raw_frames.period_ns(every_s)

        return self._of_rows(lambda opened: raw_frames.rates(opened, period_ns), run)

    def log(self, run: str | None = None) -> pd.DataFrame:
        """What nodes logged: t_s, seq (of the last row of the trace before it), level, event, node, and further keys.

        Args:
            run: name of one run; None: all whose traces are there.

        Raises:
            TracesError: there is no such run, or no trace of it.
        """
        return self._of_rows(raw_frames.log, run)

    def report(self, run: str | None = None) -> ShownReport:
        """The judged report of a run; a notebook shows its picture and its tables.

        Args:
            run: name of the run; None: the only one whose trace is there.

        Raises:
            TracesError: there is no such run, no trace of it, or None and several.
        """
        return shown_report(self._opened(run))

    def why(self, question: str, run: str | None = None) -> VerbOutput:
        """The chain of causes of something in a run, as of `rmqemu why`.

        Args:
            question: `queue TOPIC/BROKER/ID`, `KIND SUBJECT` of a belief or `node NODE`; then `of NODE`, `at 200s`.
            run: name of the run; None: the only one whose trace is there.

        Raises:
            TracesError: as of `report`.
            WhyError: the question cannot be understood, or nothing is known of its subject.
        """
        return VerbOutput(answer_of_run(question.split(), self._opened(run)))

    def _opened(self, run: str | None) -> RunDirectory:
        retained = self._retained(run)
        if len(retained) > 1:
            raise TracesError(f"expected the name of one run; there are {listed([key[0] for key in retained])}")
        (path,) = retained.values()
        return open_run(path)

    # --- statistics ---------------------------------------------------------------------

    def estimate(self, measure: str) -> pd.DataFrame:
        """A measure per variant: mean, median and share of runs above 0, each with its confidence interval.

        Args:
            measure: of `measures()`.

        Raises:
            StatisticsError: there is no such measure, or no run has been judged.
        """
        return table(estimate(self._judged(measure), measure))

    def compare(self, measure: str, a: str, b: str) -> Comparison:
        """What variant b changes against variant a, seed by seed; `sentence()` puts it in words.

        Args:
            measure: of `measures()`.
            a: a variant.
            b: another one.

        Raises:
            StatisticsError: there is no such measure or variant, or no run has been judged.
        """
        return compare(self._judged(measure), measure, a, b)

    def survival(self, name: str = "hand_overs") -> pd.DataFrame:
        """How long pauses of queues or disagreements last, those that had not ended included (Kaplan-Meier).

        An infinite figure means: not yet. `emulator.statistics.survival` gives the curves.

        Args:
            name: `hand_overs` or `agreement`.

        Raises:
            TracesError: durations of another table are asked for.
            StatisticsError: there are none.
        """
        durations = {"hand_overs": (self.hand_overs, "pause_s"), "agreement": (self.agreement, "agreement_s")}
        if name not in durations:
            raise TracesError(nearest("table of durations", str(name), list(durations)))
        read, duration = durations[name]
        return table(survival(read(), duration, "censored"))

    def _judged(self, measure: str) -> pd.DataFrame:
        """The runs, without the values of those that have no verdict: they ended early, or show nothing."""
        names = [known.name for known in MEASURES]
        if measure not in names:
            raise StatisticsError(nearest("measure", str(measure), names))
        runs = self._runs
        if measure not in runs or (runs["verdict"] == RulesVerdict.UNKNOWN).all():
            raise StatisticsError(f"no run has a verdict, so none has a value of {measure}")
        return runs.assign(**{measure: runs[measure].where(runs["verdict"] != RulesVerdict.UNKNOWN)})

    def __repr__(self) -> str:
        runs = self._runs
        words = runs["verdict"]
        if "outcome" in runs:
            words = words.where(runs["outcome"] == Outcome.COMPLETE, runs["outcome"])
        rules, services = (
            ", ".join(f"{count} {word}" for word, count in of.value_counts().items()) for of in (words, runs["service"])
        )
        both = f"{rules}; service {services}" if services else rules
        variants = ", ".join(map(str, dict.fromkeys(runs["variant"])))
        return f"{len(runs)} {'run' if len(runs) == 1 else 'runs'} of {variants}: {both}"


def _as_text(disturbances: pd.Series) -> pd.Series:
    """Lists of disturbances as texts; the first phase begins with none."""
    return disturbances.map(lambda subject: ", ".join(subject) or "start").astype(object)
