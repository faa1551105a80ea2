"""What was measured of real clusters, and whether the emulated runs agree with it."""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.resources import files

import attrs

TOLERANCE_S = 0.6
"""What a poller, a log and a busy machine add to an instant that a timer decides."""


@attrs.frozen(kw_only=True)
class RealRun:
    """One run of a real cluster."""

    name: str
    """For instance P1-kill-calm1."""
    scenario: str
    """Ours that plays it: p1_kill."""
    calm: bool
    """Nothing else ran on the machine."""
    late_s: float = 0.0
    """How much later than on a calm machine the master was back."""
    events: Mapping[str, tuple[float, ...]]


@attrs.frozen
class Span:
    """The instants of one event over the seeds of a scenario; seconds."""

    run: str
    event: str
    n: int
    minimum: float
    median: float
    maximum: float

    def holds(self, seconds: float) -> bool:
        """Whether a real instant lies between the extremes, give or take the tolerance."""
        return self.minimum - TOLERANCE_S <= seconds <= self.maximum + TOLERANCE_S


class Verdict(StrEnum):
    """What becomes of a real instant."""

    INSIDE = "inside"
    MACHINE_LOAD = "machine load"
    OUTSIDE = "outside"


@attrs.frozen
class Judged:
    """One real instant beside ours."""

    run: str
    event: str
    seconds: float
    verdict: Verdict
    reason: str = ""
    """Why load explains it."""


def real_runs() -> tuple[RealRun, ...]:
    """All that were measured."""
    told = json.loads(files("emulator.timelines").joinpath("real_events.json").read_text("utf-8"))
    return tuple(
        RealRun(**{**run, "events": {event: tuple(values) for event, values in run["events"].items()}})
        for run in told["runs"]
    )


def judge(real: RealRun, spans: Mapping[str, Span]) -> tuple[Judged, ...]:
    """Compare a real run with ours.

    Args:
        spans: event -> what our seeds gave; an event that is missing never happened.
    """
    return tuple(
        _judge(real, event, seconds, spans.get(event)) for event, values in real.events.items() for seconds in values
    )


def _judge(real: RealRun, event: str, seconds: float, span: Span | None) -> Judged:
    if span is None:
        return Judged(real.name, event, seconds, Verdict.OUTSIDE)
    if span.holds(seconds):
        return Judged(real.name, event, seconds, Verdict.INSIDE)
    for explains, reason in _EXCUSES:
        if not real.calm and explains(real, event, seconds, span):
            return Judged(real.name, event, seconds, Verdict.MACHINE_LOAD, reason)
    return Judged(real.name, event, seconds, Verdict.OUTSIDE)


def _is_work(_: RealRun, event: str, seconds: float, span: Span) -> bool:
    """Whether no timer lies between cause and effect, so that how busy the machine was decides all."""
    return event in _WITHOUT_TIMER and span.maximum < _WORK_MOST_S and seconds <= 1


def _is_late(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    """Whether the instant lies within ours if the master had been back as soon as on a calm machine."""
    return event in _AFTER_RETURN and span.holds(seconds - real.late_s)


_WORK_MOST_S = 0.1
_WITHOUT_TIMER = ("ns_removed", "route_acting", "s1_min", "s2_min", "s1_special_on", "s2_special_on", "overlap")
_AFTER_RETURN = (
    *("ns_master_back", "s1_special_off", "overlap", "client_route_master"),
    *("master_addr_s1", "master_addr_s2", "full_sync_s1", "full_sync_s2"),
)
_EXCUSES: tuple[tuple[Callable[[RealRun, str, float, Span], bool], str], ...] = (
    (_is_work, "no timer, only work of a busy machine: less than a second"),
    (_is_late, "the busy machine had the master back later than a calm one would: later by as much"),
)
"""What load explains; a calm run is never excused."""
