"""The story of a run, whatever its scenario: a chapter for each disturbance, told with the figures of the report."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import attrs

from emulator.analysis.cells import count, seconds
from emulator.analysis.findings import Divergence, Orphan, Overlap, Report
from emulator.analysis.phases import RunPhase
from emulator.analysis.symptoms import Symptom, symptoms

_NS = 1_000_000_000
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
    """The chapters of a run, in order of time; what begins in a chapter is told there."""
    loud = symptoms(report)
    return tuple(_chapter(report, phase, loud) for phase in report.phases if phase.end_ns > phase.start_ns)


def ownership(report: Report, since_ns: int, before_ns: int) -> str:
    """A sentence about the queues that had two owners, or none, from some instant in this time on."""
    pieces = []
    judged: tuple[tuple[Sequence[Overlap | Orphan], str], ...] = (
        (report.overlaps, "had two owners"),
        (report.orphans, "had none"),
    )
    for rows, what in judged:
        found = [row for row in rows if since_ns <= row.start_ns < before_ns]
        queues = {row.queue: None for row in found}
        if found:
            longest = max(found, key=length_ns)
            pieces.append(
                f"{count(len(queues), 'queue')} {what}, longest {in_words(longest)} for {seconds(length_ns(longest))} "
                f"from {seconds(longest.start_ns)} on"
            )
        else:
            pieces.append(f"no queue {what}")
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


def _chapter(report: Report, phase: RunPhase, loud: Sequence[Symptom]) -> Chapter:
    sentences = (
        *_loud(phase, loud),
        *_views(report, phase),
        *_owners(report, phase),
        *_services(report, phase),
        *_agreed(report, phase),
    )
    return Chapter(
        phase.start_ns, phase.end_ns, _title(phase), sentences or ("Views agree, and every queue has one owner.",)
    )


def _title(phase: RunPhase) -> str:
    if not phase.what:
        return "The cluster starts"
    named = ", ".join(phase.what[:_NAMED_MAX])
    more = len(phase.what) - _NAMED_MAX
    return f"{named}, and {more} more" if more > 0 else named


def _inside(phase: RunPhase, t_ns: int) -> bool:
    return phase.start_ns <= t_ns < phase.end_ns


def _loud(phase: RunPhase, loud: Sequence[Symptom]) -> Iterator[str]:
    for one in loud:
        if _inside(phase, one.start_ns):
            yield f"{one.kind[0].upper()}{one.kind[1:]}: {one.text}."


def _views(report: Report, phase: RunPhase) -> Iterator[str]:
    rows = [row for row in report.views if _inside(phase, row.start_ns)]
    if rows:
        longest = max(rows, key=length_ns)
        yield (
            f"Consumers divide by different views {count(len(rows), 'time')}, longest by "
            f"{in_words(longest)} for {seconds(length_ns(longest), censored=longest.censored)}."
        )


def _owners(report: Report, phase: RunPhase) -> Iterator[str]:
    begun_ns = (*(row.start_ns for row in report.overlaps), *(row.start_ns for row in report.orphans))
    if any(_inside(phase, t_ns) for t_ns in begun_ns):
        yield ownership(report, phase.start_ns, phase.end_ns)


def _services(report: Report, phase: RunPhase) -> Iterator[str]:
    rows = [row for row in report.duties if _inside(phase, row.start_ns)]
    for broker_name, of_group in groupby(
        sorted(rows, key=attrgetter("broker_name", "start_ns")), attrgetter("broker_name")
    ):
        who = " then ".join(" and ".join(row.nodes) or "nobody" for row in of_group)
        yield f"The special services of {broker_name} are run by {who}."


def _agreed(report: Report, phase: RunPhase) -> Iterator[str]:
    rows = [row for row in report.agreement if row.t_ns == phase.start_ns]
    if any(row.censored for row in rows):
        yield "Views or owners still differ when the next disturbance comes, or the run ends."
    elif any(row.took_ns for row in rows):
        yield f"{seconds(max(row.took_ns for row in rows))} later all views and owners agree."
