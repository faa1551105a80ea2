"""The story of a run, whatever its scenario: a chapter for each disturbance, with the figures of the report."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import attrs

from emulator.analysis.findings.symptom import Symptom
from emulator.analysis.findings.words import count, seconds
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.measures.phases import AGREEMENT, FAULTS, PHASES, RunPhase
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.special_services import SERVICES
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.report import Report, symptoms

_NAMED_MAX = 3
"""Disturbances of one instant that a title names."""
_Found = Divergence | Overlap | Orphan


@attrs.frozen
class Chapter:
    """One phase of the run, with an explanation."""

    start_ns: int
    end_ns: int
    title: str
    sentences: tuple[str, ...]


def story(report: Report) -> tuple[Chapter, ...]:
    """The chapters of a run, in order of time; what begins in a chapter is described there."""
    severe = symptoms(report)
    return tuple(_chapter(report, phase, severe) for phase in report.of(PHASES) if phase.end_ns > phase.start_ns)


def ownership(report: Report, since_ns: int, before_ns: int) -> str:
    """A sentence about the queues that had two owners, or none, from some instant in this time on."""
    pieces = []
    overlaps, orphans = report.of(OVERLAPS.table), report.of(ORPHANS.table)
    judged: tuple[tuple[Sequence[Overlap | Orphan], str], ...] = ((overlaps, "had two owners"), (orphans, "had none"))
    for rows, subject in judged:
        found = [row for row in rows if since_ns <= row.start_ns < before_ns]
        queues = {row.queue: None for row in found}
        if found:
            longest = max(found, key=length_ns)
            pieces.append(
                f"{count(len(queues), 'queue')} {subject}, longest {in_words(longest)} for "
                f"{seconds(length_ns(longest))} from {seconds(longest.start_ns)} on"
            )
        else:
            pieces.append(f"no queue {subject}")
    sentence = "; ".join(pieces)
    return f"{sentence[0].upper()}{sentence[1:]}."


def length_ns(row: _Found) -> int:
    """How long a finding lasted."""
    return row.end_ns - row.start_ns


def in_words(row: _Found) -> str:
    """What a finding is about."""
    if isinstance(row, Divergence):
        return f"views of {row.subject} that differ"
    queue = f"{row.queue.topic} {row.queue.broker_name} q{row.queue.queue_id}"
    return f"{queue} ({' and '.join(row.owners)})" if isinstance(row, Overlap) else queue


def _chapter(report: Report, phase: RunPhase, severe: Sequence[Symptom]) -> Chapter:
    sentences = (
        *_symptoms(phase, severe),
        *_views(report, phase),
        *_owners(report, phase),
        *_messages(phase),
        *_services(report, phase),
        *_agreed(report, phase),
    )
    return Chapter(
        phase.start_ns,
        phase.end_ns,
        phase_title(phase.what, phase.active),
        sentences or ("Views agree, and every queue has one owner.",),
    )


def phase_title(subject: Sequence[str], active: Sequence[str] = ()) -> str:
    """The disturbances with which a phase begins, and the faults that go on."""
    if not subject:
        return "The cluster starts"
    begins = _and_more(subject)
    return f"{begins}; still {_and_more(active)}" if active else begins


def _and_more(named: Sequence[str]) -> str:
    more = len(named) - _NAMED_MAX
    first = ", ".join(named[:_NAMED_MAX])
    return f"{first}, and {more} more" if more > 0 else first


def without_stages(subject: Sequence[str], report: Report) -> tuple[str, ...]:
    """Leave out the stages of a process that a fault of the same instant already describes."""
    subjects = [fault.subject for fault in report.of(FAULTS) if any(fault.subject in part.split() for part in subject)]
    return tuple(part for part in subject if part.endswith((" begins", " ends")) or part.split()[0] not in subjects)


def _inside(phase: RunPhase, t_ns: int) -> bool:
    return phase.start_ns <= t_ns < phase.end_ns


def _symptoms(phase: RunPhase, severe: Sequence[Symptom]) -> Iterator[str]:
    for item in severe:
        if _inside(phase, item.start_ns):
            cause = f"; cause: {item.cause}" if item.cause else ""
            yield f"{item.kind[0].upper()}{item.kind[1:]}: {item.text}{cause}."


def _views(report: Report, phase: RunPhase) -> Iterator[str]:
    rows = [row for row in whole_views(report.of(VIEWS.table)) if _inside(phase, row.start_ns)]
    if rows:
        longest = max(rows, key=length_ns)
        yield (
            f"Consumers allocate by different views {count(len(rows), 'time')}, longest by "
            f"{in_words(longest)} for {seconds(length_ns(longest), censored=longest.censored)}."
        )


def _owners(report: Report, phase: RunPhase) -> Iterator[str]:
    begun_ns = (
        *(row.start_ns for row in report.of(OVERLAPS.table)),
        *(row.start_ns for row in report.of(ORPHANS.table)),
    )
    if any(_inside(phase, t_ns) for t_ns in begun_ns):
        yield ownership(report, phase.start_ns, phase.end_ns)


def _messages(phase: RunPhase) -> Iterator[str]:
    if phase.again:
        yield f"{count(phase.again, 'message')} {'is' if phase.again == 1 else 'are'} consumed again."
    if phase.failed_sends:
        yield f"{count(phase.failed_sends, 'attempt')} to send {'fails' if phase.failed_sends == 1 else 'fail'}."


def _services(report: Report, phase: RunPhase) -> Iterator[str]:
    rows = [row for row in report.of(SERVICES.table) if _inside(phase, row.start_ns)]
    for broker_name, of_group in groupby(
        sorted(rows, key=attrgetter("broker_name", "start_ns")), attrgetter("broker_name")
    ):
        names = " then ".join(" and ".join(row.nodes) or "no member" for row in of_group)
        yield f"The special services of {broker_name} are run by {names}."


def _agreed(report: Report, phase: RunPhase) -> Iterator[str]:
    rows = [row for row in report.of(AGREEMENT) if row.t_ns == phase.start_ns]
    if any(row.censored for row in rows):
        yield "Views or owners still differ when the next disturbance comes, or the run ends."
    elif any(row.took_ns for row in rows):
        yield f"{seconds(max(row.took_ns for row in rows))} later all views and owners agree."
