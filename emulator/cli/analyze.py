"""`rmqemu analyze`: judges one run and draws it, or judges many runs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from emulator.analysis.findings.words import seconds
from emulator.analysis.measures.measured import DUPLICATES
from emulator.analysis.oracles.lost_messages import LOSSES
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.rendering.first_screen import FirstScreen, print_first_screen
from emulator.analysis.rendering.named_tables import named_table, require_table_names
from emulator.analysis.rendering.picture import draw
from emulator.analysis.rendering.tables import print_report
from emulator.analysis.report import EXIT_STATUS, Report, RulesVerdict, Service
from emulator.base.errors import UserError
from emulator.base.printing import print_json, print_line
from emulator.base.rich_texts import TextTable
from emulator.cli.judging import Judging
from emulator.cli.limits import read_limits, with_limits
from emulator.cli.terminal import BAD_INPUT, complain, first_screen_console, tables_console, warn_of_changed_log
from emulator.dataset.judged_reports import JudgedReports
from emulator.lake.sources import is_dataset
from emulator.trace.run_directory import open_run
from emulator.why.worst import causes_of_symptoms

if TYPE_CHECKING:
    from emulator.counterfactuals.repeated_run import RepeatedRun, RepeatRun

PICTURE = "ownership.html"


def analyze_runs(
    runs: Sequence[str],
    judging: Judging,
    limits: Sequence[str] = (),
    *,
    as_json: bool,
    service: bool = False,
    every: bool = False,
    tables: Sequence[str] = (),
    again: "RepeatRun | None" = None,
) -> int:
    """Judge runs and print what was found; returns the exit status, of several runs the worst one.

    Args:
        runs: their directories, or one dataset.
        judging: where they are judged.
        limits: service limits in place of those of the runs, `KEY=VALUE`.
        as_json: print JSON in place of tables.
        service: the exit status is 1 also for a run whose service is paging.
        every: print all tables of the only run.
        tables: names of tables of the only run, to print in place of the first screen.
        again: what of the only run to repeat; None: nothing.

    Raises:
        UserError: the only run cannot be read, a limit or a name of a table is none, or options do not go together.
    """
    given = read_limits(limits)
    require_table_names(tables)
    is_run = len(runs) == 1 and not is_dataset(runs[0])
    if (every or tables) and not is_run:
        raise UserError(f"{'--all' if every else '--table'}: expected one run, since of several each has one line")
    if again is not None and not is_run:
        raise UserError("--verify and --remedies: expected one run, which is repeated")
    judged = judging.judge(runs)
    judged = attrs.evolve(judged, reports=tuple(with_limits(report, given) for report in judged.reports))
    for refused in judged.refused:
        complain(refused.problem)
    for run in runs:
        if not is_dataset(run):
            warn_of_changed_log(Path(run))
    if is_run:
        for report in judged.reports:
            _print_one(report, Path(runs[0]), as_json=as_json, every=every, tables=tables, again=again)
    elif as_json:
        print_json(json.dumps([json.loads(report.to_json()) for report in judged.reports], indent=1))
    else:
        _print_many(judged)
    statuses = [_status(report, service=service) for report in judged.reports]
    return max([*statuses, *([BAD_INPUT] if judged.refused else [])])


def _status(report: Report, *, service: bool) -> int:
    is_paging = service and report.service is Service.PAGING
    return max(report.exit_status, EXIT_STATUS[RulesVerdict.INVALID] if is_paging else 0)


def _print_one(
    report: Report, run: Path, *, as_json: bool, every: bool, tables: Sequence[str], again: "RepeatRun | None"
) -> None:
    repeated = None if again is None else again.execute(report, open_run(run))
    # First what needs no disk: a full one must not take the tables, too.
    if as_json:
        print_json(_as_json(report, repeated))
        draw(report, run / PICTURE)
    elif tables:
        for name in dict.fromkeys(tables):
            tables_console().print(named_table(report, name))
        _print_repeated(repeated)
    else:
        if every:
            print_report(report, tables_console(), run)
        else:
            screen = FirstScreen(report, run, causes_of_symptoms(report, open_run(run)))
            print_first_screen(screen, first_screen_console())
        _print_repeated(repeated)
        picture = draw(report, run / PICTURE)
        print_line()
        print_line(f"picture: {picture}")


def _as_json(report: Report, repeated: "RepeatedRun | None") -> str:
    if repeated is None:
        return report.to_json()
    return json.dumps({**json.loads(report.to_json()), "repeated": repeated.plain()}, indent=1)


def _print_repeated(repeated: "RepeatedRun | None") -> None:
    if repeated is not None:
        print_line()
        for line in repeated.lines():
            print_line(line)


def _print_many(judged: JudgedReports) -> None:
    right = ("emulated", "two owners", "no owner", "again", "lost")
    table = TextTable(box=None, pad_edge=False)
    for column in ("rules", "service", "run", *right, "why"):
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for report in judged.reports:
        table.add_row(
            report.verdict,
            report.service,
            report.run_id,
            seconds(report.end_ns),
            seconds(sum(row.active_ns for row in report.of(OVERLAPS.table))),
            seconds(sum(row.end_ns - row.start_ns for row in report.of(ORPHANS.table))),
            str(sum(row.duplicates for row in report.of(DUPLICATES))),
            str(sum(row.lost for row in report.of(LOSSES.table))),
            report.reasons[0] if report.reasons else "",
        )
    tables_console().print(table)
    counts = {verdict: sum(report.verdict is verdict for report in judged.reports) for verdict in RulesVerdict}
    services = {service: sum(report.service is service for report in judged.reports) for service in Service}
    rules, service = (
        ", ".join(f"{number} {word}" for word, number in of.items() if number) for of in (counts, services)
    )
    verdicts = f"{rules}; service {service}" if judged.reports else "none judged"
    judged_runs = f"{len(judged.reports)} run" + ("" if len(judged.reports) == 1 else "s")
    refused = f"; {len(judged.refused)} refused" if judged.refused else ""
    print_line(f"{judged_runs}: {verdicts}{refused}")
