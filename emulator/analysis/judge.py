"""The judge: reads the rows of one run once, and finds which invariants of RocketMQ held."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import merge
from typing import Any

import attrs

from emulator.analysis.attribution.attribution import Attribution
from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.findings.table import Findings
from emulator.analysis.impacts.attributed import impacts_of
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.measures.lost_topics import FirstStored
from emulator.analysis.measures.measured import Measured
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.analysis.report import Report, RulesVerdict
from emulator.analysis.run_head import RunHead, head_of
from emulator.history.rows.feed import OrderedRows, Source, Watcher, watch
from emulator.history.rows.reader import StoredRows
from emulator.history.rows.row_classes import ROWS, MessageRow
from emulator.history.rows.shares import WHOLE, PartitionedBy, RunShare
from emulator.trace.run_directory import RunDirectory


def judge_run(run: RunDirectory) -> Report:
    """The findings about a run, also one that is still under way, and its verdicts."""
    head = head_of(run)
    return report_of(judge_rows(StoredRows(run), head.facts), head)


def report_of(found: Findings, head: RunHead) -> Report:
    """The report about a run: its findings, and the verdicts that follow from them.

    Args:
        found: in the rows of the run.
        head: of the run.
    """
    reasons = sentences(found)
    # A violation stays one, however much of the trace is missing; an interrupted run has no result at all.
    verdict = RulesVerdict.INVALID if reasons else RulesVerdict.UNKNOWN if head.unreliable else RulesVerdict.VALID
    if head.broken_off:
        verdict = RulesVerdict.UNKNOWN
    return Report(
        run_id=head.run,
        scenario=head.scenario,
        seed=head.seed,
        mode=head.mode,
        digest=head.digest,
        end_ns=head.facts.end_ns,
        bounds=head.facts.bounds,
        limits=head.limits,
        verdict=verdict,
        reasons=(*head.broken_off, *reasons, *head.unreliable),
        names=head.names,
        rows=found.rows,
        agreed_ns=found.agreed_ns,
    )


def judge_rows(source: Source, facts: RunFacts) -> Findings:
    """Everything that oracles and measures find in the rows of a run.

    Args:
        source: of the rows.
        facts: of the run.
    """
    inputs = SharedInputs(facts)
    attribution = Attribution(inputs)
    of_oracles = [(oracle, oracle.watch(inputs)) for oracle in ORACLES]
    measured = Measured(inputs, inputs.refused.hear(source.frames()))
    watched = (*inputs.watchers, *attribution.watchers, *(item for _, item in of_oracles), *measured.watchers)
    _read(source, watched, facts)
    inputs.on_read()
    rows = {oracle.table.name: oracle.findings(inputs, item, attribution) for oracle, item in of_oracles}
    return _findings(rows, measured, inputs, attribution)


def judge_tables(source: Source, facts: RunFacts, names: Collection[str]) -> Mapping[str, tuple[Any, ...]]:
    """What some oracles find in the rows of a run; no other oracle, and no measure, follows the rows.

    Args:
        source: of the rows.
        facts: of the run.
        names: of the tables of these oracles, see `ORACLE_TABLES`.

    Returns:
        Mapping name -> the rows of the table.
    """
    inputs = SharedInputs(facts)
    attribution = Attribution(inputs)
    of_oracles = [(oracle, oracle.watch(inputs)) for oracle in ORACLES if oracle.table.name in names]
    for _ in inputs.refused.hear(source.frames()):
        pass
    reads = [item for oracle, _ in of_oracles for item in oracle.reads]
    watched = (*inputs.watchers_of(reads), *attribution.watchers, *(item for _, item in of_oracles))
    _read(source, watched, facts)
    inputs.on_read()
    return {oracle.table.name: oracle.findings(inputs, item, attribution) for oracle, item in of_oracles}


@attrs.frozen
class JudgedPart:
    """What was found in one share of a run, unexplained."""

    watched: tuple[Any, ...]
    """What each watcher whose work is divided has found, in their order."""
    found: Mapping[str, tuple[Any, ...]]
    """Mapping name of a table -> findings of the oracles that find in shares."""
    messages: tuple[MessageRow, ...]
    """Messages that are read once more when all shares are."""


def judge_share(source: Source, facts: RunFacts, share: RunShare) -> JudgedPart:
    """What is found in one share of a run.

    Args:
        source: of the messages of the share, see `emulator.history.rows.shares`, and of all other rows of the run.
        facts: of the run.
        share: which one.
    """
    inputs = SharedInputs(facts, share)
    of_oracles = [(oracle, oracle.watch(inputs)) for oracle in ORACLES if oracle.in_shares]
    first_stored = FirstStored()
    allocated = _partitioned(inputs, Measured(inputs, (), in_share=True))
    of_share = [of_oracle for _, of_oracle in of_oracles if of_oracle.partitioned_by is not PartitionedBy.NOTHING]
    _read(source, (inputs.presence, *allocated, *of_share, first_stored), facts, share)
    found = {oracle.table.name: tuple(oracle.find(inputs, watched)) for oracle, watched in of_oracles}
    return JudgedPart(tuple(item.part() for item in allocated), found, tuple(first_stored.rows))


def judge_parts(source: Source, facts: RunFacts, parts: Iterable[JudgedPart]) -> Findings:
    """Everything that oracles and measures find in a run, all of whose shares have been read.

    Args:
        source: of the messages that are not divided, and of all other rows of the run.
        facts: of the run.
        parts: of all shares.
    """
    every = list(parts)
    inputs = SharedInputs(facts)
    attribution = Attribution(inputs)
    of_oracles = [(oracle, oracle.watch(inputs)) for oracle in ORACLES]
    measured = Measured(inputs, inputs.refused.hear(source.frames()))
    allocated = _partitioned(inputs, measured)
    for part in every:
        for item, found in zip(allocated, part.watched, strict=True):
            item.merge(found)
    watched = (*inputs.watchers, *attribution.watchers, *(item for _, item in of_oracles), *measured.watchers)
    first_stored = sorted(row for part in every for row in part.messages)
    _read(
        _WithMessages(source, first_stored),
        [element for element in watched if element.partitioned_by is PartitionedBy.NOTHING],
        facts,
    )
    inputs.on_read()
    rows = {}
    for oracle, of_oracle in of_oracles:
        name = oracle.table.name
        found = (
            [row for part in every for row in part.found[name]] if oracle.in_shares else oracle.find(inputs, of_oracle)
        )
        rows[name] = oracle.judged(found, inputs, attribution)
    return _findings(rows, measured, inputs, attribution)


def _partitioned(inputs: SharedInputs, measured: Measured) -> list[Watcher]:
    """The watchers whose work is divided, whose parts are merged."""
    every = (*inputs.watchers, *measured.watchers)
    return [item for item in every if item.partitioned_by is not PartitionedBy.NOTHING]


def _read(source: Source, watchers: Sequence[Watcher], facts: RunFacts, share: RunShare = WHOLE) -> None:
    watch(source, watchers, share)
    for watcher in watchers:
        watcher.finish(facts.end_ns)


def _findings(
    rows: Mapping[str, tuple[Any, ...]], measured: Measured, inputs: SharedInputs, attribution: Attribution
) -> Findings:
    of_measures = {table.name: found for table, found in measured.rows().items()}
    found = Findings(rows={**rows, **of_measures}, agreed_ns=inputs.agreed_ns)
    return found.only({IMPACTS: impacts_of(found, measured, attribution)})


class _WithMessages:
    """A source with further messages.

    Args:
        source: of the rows.
        messages: in order.
    """

    def __init__(self, source: Source, messages: Sequence[MessageRow]) -> None:
        self._source = source
        self._messages = messages
        self.frames = source.frames

    def in_order(self) -> Iterable[Any]:
        """The rows."""
        source = self._source
        rows = source.in_order() if isinstance(source, OrderedRows) else merge(*(source.rows(table) for table in ROWS))
        return merge(rows, self._messages)


def sentences(found: Findings) -> list[str]:
    """Why a run is not valid, one sentence for each oracle that was violated."""
    every = (oracle.sentence(found.of(oracle.table)) for oracle in ORACLES)
    return [item for item in every if item]


def broken(found: Findings) -> tuple[str, ...]:
    """The ids of the invariants that a run broke, in order."""
    return tuple(oracle.id for oracle in ORACLES if oracle.violations(found.of(oracle.table)))
