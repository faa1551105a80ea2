"""`rmqemu demo`: runs the scenario of the half-seen consumer, explains it, analyses it and draws it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Group, RenderableType

from emulator.analysis.findings.words import seconds
from emulator.analysis.inputs.disturbances import FaultSpan
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.measures.measured import BELIEFS, HOLDS
from emulator.analysis.measures.phases import AGREEMENT, FAULTS
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.rendering.first_screen import FirstScreen, print_first_screen
from emulator.analysis.rendering.picture import draw
from emulator.analysis.rendering.story import Chapter, in_words, length_ns, ownership
from emulator.analysis.report import Report
from emulator.base.rich_texts import Console, Text, TextTable
from emulator.cli.judging import Judging
from emulator.cli.terminal import first_screen_console, progress_bar
from emulator.run import run_scenario
from emulator.run.run import Progress
from emulator.spec import load
from emulator.spec.bundled import example
from emulator.trace.run_directory import open_run
from emulator.why.worst import causes_of_symptoms
from nodes.beliefs import BeliefKind

SCENARIO = "half_seen_consumer.toml"
CUT, FROZEN, LOSSY = "half-seen", "frozen", "lossy"
"""Ids of the scenario's faults."""

_Judged = Divergence | Overlap | Orphan
_Row = TypeVar("_Row", bound=Divergence | Overlap | Orphan)
Bar = Callable[[str], AbstractContextManager[Progress]]


def show_demo(runs: Path, judging: Judging) -> None:
    """Show the demonstration in this terminal."""
    raise typer.Exit(show(runs, first_screen_console(), progress_bar, judging))


def show(runs: Path, console: Console, bar: Bar, judging: Judging) -> int:
    """Run the scenario, explain what happened, print the first screen, and draw the picture.

    Args:
        runs: directory of all runs.
        console: where to print.
        bar: makes a progress bar with a title, as a context manager.
        judging: where the run is judged.

    Returns:
        0 if the run shows what the demonstration promises, else 1.
    """
    path = example(SCENARIO)
    scenario = load(path)
    with bar(f"{scenario.name}: {scenario.run_for_ms // 1000} emulated seconds") as progress:
        run = run_scenario(scenario, runs=runs, progress=progress).path
    (report,) = judging.reports([run])
    picture = draw(report, run / "ownership.html")
    console.print(_render(timeline(report)))
    console.print()
    heading = Text("What the analysis found", "bold")
    console.print(Text.assemble(heading, " (invalid, as these faults intend)"))
    console.print()
    causes = causes_of_symptoms(report, open_run(run))
    print_first_screen(FirstScreen(report, run, causes, has_phases=False), console)
    for line in _what_next(run, picture, path):
        console.print(line, soft_wrap=True, highlight=False)
    lacking = missing(report)
    for subject in lacking:
        console.print(f"missing: {subject}", style="red", soft_wrap=True)
    return 1 if lacking else 0


def timeline(report: Report) -> list[Chapter]:
    """The phases of the run, explained with the figures of this report."""
    cut, frozen, lossy = (_fault(report, fault_id) for fault_id in (CUT, FROZEN, LOSSY))
    return [
        Chapter(0, cut.start_ns, "Nothing is wrong", tuple(_control(report, cut))),
        Chapter(cut.start_ns, cut.end_ns, "broker-b hears nothing from consumer-2", tuple(_half_seen(report, cut))),
        Chapter(cut.end_ns, frozen.start_ns, "The link is healed", (_agreed_again(report, cut),)),
        Chapter(frozen.start_ns, frozen.end_ns, "consumer-3 is suspended", tuple(_frozen(report, frozen))),
        Chapter(frozen.end_ns, lossy.start_ns, "It runs on", (_agreed_again(report, frozen),)),
        Chapter(lossy.start_ns, lossy.end_ns, "Every link loses a fifth of its frames", tuple(_lossy(report, lossy))),
        Chapter(lossy.end_ns, report.end_ns, "Calm", (_agreed_again(report, lossy),)),
    ]


def missing(report: Report) -> list[str]:
    """Promises of the demonstration that this run does not show, one sentence each."""
    cut, lossy = _fault(report, CUT), _fault(report, LOSSY)
    promises = (
        (
            "agreement within one rebalance round before the first fault",
            not any(row.violation for row in _before(report, cut.start_ns)),
        ),
        ("views that differ during the cut", bool(_during(whole_views(report.of(VIEWS.table)), cut))),
        ("queues with two owners during the cut", bool(_during(report.of(OVERLAPS.table), cut))),
        ("queues without an owner during the cut", bool(_during(report.of(ORPHANS.table), cut))),
        ("agreement after the cut", _took(report, cut) is not None),
        ("agreement at the end", _took(report, lossy) is not None),
    )
    return [subject for subject, retained in promises if not retained]


def _control(report: Report, cut: FaultSpan) -> Iterator[str]:
    owners = sorted({hold.node: None for hold in report.of(HOLDS) if hold.start_ns < cut.start_ns})
    queues = {hold.queue: None for hold in report.of(HOLDS) if hold.start_ns < cut.start_ns}
    first = min((hold.start_ns for hold in report.of(HOLDS)), default=0)
    yield (
        f"{len(owners)} consumers allocate {len(queues)} queues (those of the retry topic included), from "
        f"{seconds(first)} on. Each allocates for itself, by the list of members that a broker gives it; what "
        "differs for a while without any fault is the baseline."
    )
    early = _before(report, cut.start_ns)
    if early:
        longest = max(early, key=length_ns)
        yield f"Longest: {in_words(longest)} for {seconds(length_ns(longest))}."
    yield ownership(report, 0, cut.start_ns)


def _half_seen(report: Report, cut: FaultSpan) -> Iterator[str]:
    yield (
        "broker-a hears it as before, and what broker-b sends still arrives. For now nothing changes: "
        "a broker keeps a silent member for 120 s."
    )
    lists = _during([row for row in report.of(BELIEFS) if row.kind == BeliefKind.CONSUMER_IDS], cut)
    if lists:
        expired = lists[0]
        yield (
            f"At {seconds(expired.start_ns)} the scan of broker-b, one every 10 s, finds that its last heartbeat is "
            f"more than 120 s old and removes it. Until {seconds(expired.end_ns)} the two brokers name different "
            "members. Each rebalance round of each consumer asks one of them at random, and allocates for 4 or for 3."
        )
    yield ownership(report, cut.start_ns, cut.end_ns)


def _frozen(report: Report, frozen: FaultSpan) -> Iterator[str]:
    held_then = (hold for hold in report.of(HOLDS) if hold.start_ns <= frozen.start_ns < hold.end_ns)
    held = [hold for hold in held_then if hold.node == frozen.subject]
    yield (
        f"60 s is less than the 120 s after which a broker removes a silent member, and its connections stay open. "
        f"So no one takes over: its {len(held)} queues have an owner that does not consume them."
    )
    rows = _during(_judged(report), frozen)
    yield (
        "No list and no owner differs: a suspended consumer is not visible in them."
        if not rows
        else f"{len(rows)} views or owners differ meanwhile."
    )


def _lossy(report: Report, lossy: FaultSpan) -> Iterator[str]:
    lists = _during([row for row in report.of(BELIEFS) if row.kind == BeliefKind.CONSUMER_IDS], lossy)
    yield (
        "A lost frame is a call that times out, and a client closes the connection of a call that timed out. "
        "A broker removes a member whose connection is closed at once, without waiting 120 s, and has it back with "
        f"its next heartbeat: {len(lists)} times the brokers name different members. "
        "A consumer that does not find itself in the list gives up all its queues."
    )
    yield ownership(report, lossy.start_ns, lossy.end_ns)


def _agreed_again(report: Report, fault: FaultSpan) -> str:
    took_ns = _took(report, fault)
    if took_ns is None:
        return "Views or owners still differ when this phase ends."
    if took_ns == 0:
        return "Views and owners agree, as they did before."
    return (
        f"{seconds(took_ns)} later all views and owners agree again: the first heartbeat that gets through puts a "
        "member back on the list, and the broker notifies all members to rebalance at once."
    )


def _took(report: Report, fault: FaultSpan) -> int | None:
    """Time in ns from the end of a fault until all layers agreed; None: not before the next disturbance."""
    rows = [row for row in report.of(AGREEMENT) if row.t_ns == fault.end_ns]
    return None if not rows or any(row.censored for row in rows) else max(row.took_ns for row in rows)


def _fault(report: Report, fault_id: str) -> FaultSpan:
    return next(fault for fault in report.of(FAULTS) if fault.fault_id == fault_id)


def _during(rows: Sequence[_Row], fault: FaultSpan) -> list[_Row]:
    return [row for row in rows if fault.start_ns <= row.start_ns < fault.end_ns]


def _before(report: Report, end_ns: int) -> list[_Judged]:
    return [row for row in _judged(report) if row.start_ns < end_ns]


def _judged(report: Report) -> list[_Judged]:
    return [*whole_views(report.of(VIEWS.table)), *report.of(OVERLAPS.table), *report.of(ORPHANS.table)]


def _render(chapters: Sequence[Chapter]) -> RenderableType:
    grid = TextTable.grid(padding=(0, 2))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(max_width=100)
    for chapter in chapters:
        when = f"{chapter.start_ns / 1e9:.0f} s - {chapter.end_ns / 1e9:.0f} s"
        grid.add_row(Text(when, style="bold"), Text(chapter.title, style="bold"))
        for sentence in chapter.sentences:
            grid.add_row("", Text(sentence))
    return Group("", grid)


def _what_next(run: Path, picture: Path, scenario: Path) -> Iterator[str]:
    """Lines with the next commands; a path is never wrapped."""
    yield ""
    yield f"Who owned which queue, for a browser   {picture}"
    yield f"Run it again, the same row by row      rmqemu verify {run}"
    yield f"All of this for programs               rmqemu analyze --json {run}"
    yield f"The same faults, another chance        rmqemu run --seed 2 {scenario}"
    yield f"The same cluster live, until Ctrl-C    rmqemu up {scenario}"
