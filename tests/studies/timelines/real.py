"""What was measured of real clusters, and whether the emulated runs agree with it."""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import attrs

TOLERANCE_S = 0.6
"""What a poller, a log and a busy machine add to an instant that a timer decides."""
TOLERANCE_MESSAGES = 30
"""The messages of that time, where messages are counted: 50 a second are sent to the broker that dies."""


@attrs.frozen(kw_only=True)
class RealRun:
    """One run of a real cluster."""

    name: str
    """For instance P1-kill-calm1."""
    scenario: str
    """Ours that runs it: p1_kill."""
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
        tolerance = TOLERANCE_MESSAGES if self.event.startswith("again_") else TOLERANCE_S
        return self.minimum - tolerance <= seconds <= self.maximum + tolerance


class InstantMatch(StrEnum):
    """What becomes of a real instant."""

    INSIDE = "inside"
    MACHINE_LOAD = "machine load"
    REAL_THREADS = "real threads"
    """Threads of a real client, or the order in which they run, that ours does not have."""
    EARLIER_FAULT = "earlier fault"
    """What an earlier fault of the same real cluster had left behind; ours meet theirs fresh."""
    OUTSIDE = "outside"


@attrs.frozen
class Judged:
    """One real instant against ours."""

    run: str
    event: str
    seconds: float
    verdict: InstantMatch
    reason: str = ""
    """What explains it where it is not inside."""


def real_runs() -> tuple[RealRun, ...]:
    """All that were measured."""
    return tuple(
        RealRun(**{**run, "events": {event: tuple(values) for event, values in run["events"].items()}})
        for name in ("real_events.json", "real_hand_overs.json", "real_special.json", "real_elections.json")
        for run in json.loads(Path(__file__).with_name(name).read_text("utf-8"))["runs"]
    )


def beyond_by_chance(values: int, seeds: int) -> float:
    """How many of so many real values lie beyond the extremes of as many seeds although they are of the same kind.

    Of seeds + 1 values drawn alike each is the least, or the greatest, equally often.
    """
    return 2 * values / (seeds + 1)


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
        return Judged(real.name, event, seconds, InstantMatch.OUTSIDE)
    if span.holds(seconds):
        return Judged(real.name, event, seconds, InstantMatch.INSIDE)
    for explains, verdict, reason in _SUPPRESSIONS:
        if explains(real, event, seconds, span):
            return Judged(real.name, event, seconds, verdict, reason)
    return Judged(real.name, event, seconds, InstantMatch.OUTSIDE)


def _is_work(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    """Whether no timer lies between cause and effect, so that how busy the machine was decides all."""
    return not real.calm and event in _WITHOUT_TIMER and span.maximum < _WORK_MAX_S and seconds <= 1


def _is_late(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    """Whether the instant lies within ours if the master had been back as soon as on a calm machine."""
    return not real.calm and event in _AFTER_RETURN and span.holds(seconds - real.late_s)


def _started_slowly(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    """Whether a newcomer's first pass came sooner after its registration than ours, for it had begun long before."""
    return not real.calm and real.scenario == "member_join" and event in _OF_JOINS and seconds < span.minimum


def _joined_late(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    return not real.calm and real.scenario == "member_join" and event in _OF_LATE and seconds <= span.maximum + 1


def _closes_slowly(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    """Whether a closing client still had its table while it waited for its own threads."""
    return real.scenario == "member_close" and event in ("owned_once", "two_owners") and seconds <= _CLOSING_MAX_S


def _timed_out_first(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    """Whether a pull from before the freeze timed out before its answer was read, which delays it."""
    return real.scenario == "member_freeze60" and event == "pause" and seconds <= span.maximum + _PULL_AGAIN_S


def _is_listed_twice(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    return real.scenario in _FROZEN_MASTERS and event == "consumed_twice" and seconds <= _COPIED_MAX


def _heard_first(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    """Whether the master that woke heard of the new one before it answered any send that waited."""
    return real.scenario in _FROZEN_MASTERS and event == "pause_of_sends" and _follows(real, "writable", seconds)


def _answered_twice(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    """Whether the other slave left the link to the woken master, and perhaps the next one, for a second answer."""
    return real.scenario in _FROZEN_MASTERS and event == "in_sync_again" and seconds <= _ANSWERED_TWICE_MAX_S


def _looks_together(real: RealRun, event: str, seconds: float, span: Span) -> bool:
    together = event == "consumed_again" and seconds < span.minimum
    return together and real.scenario in _FROZEN_MASTERS and _follows(real, "writable", seconds)


def _scanned_first(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    return (real.scenario, event) == ("c1_stop_leader", "elections") and seconds <= _ELECTIONS_MAX


def _was_elected_needlessly(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    elected = real.scenario == "c1_stop_leader" and event == "pause_of_sends" and real.events["elections"][0] > 0
    return elected and seconds <= _LOOK_AT_ROUTES_S + TOLERANCE_S


def _missed_the_close(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    """Whether a controller that had been frozen before knew the master by a connection of that time alone."""
    return real.scenario == "c1_kill_master" and event in ("elected", "ns_master") and 9 <= seconds <= _SCANNED_MAX_S


def _took_up_late(real: RealRun, event: str, seconds: float, _: Span) -> bool:
    return real.scenario == "c3_kill_leader" and event == "consumed_twice" and seconds <= _COPIED_MAX


def _follows(real: RealRun, event: str, seconds: float) -> bool:
    return 0 <= seconds - real.events[event][0] <= _NEXT_MESSAGE_S


_LOOK_AT_ROUTES_S = 30
_NEXT_MESSAGE_S = 2.0
"""From the first message that a new master takes to the next one, or to a consumer that hears of it."""
_COPIED_MAX = 300
"""The messages of 10 s: a slave copies offsets each so often."""
_ANSWERED_TWICE_MAX_S = 15.6
"""Twice the pause of 5 s after such a link, and the 5 s until the first report of the third."""
_ELECTIONS_MAX = 7
"""Two triggers of three attempts, and the one that succeeds."""
_SCANNED_MAX_S = 15.6
_FROZEN_MASTERS = ("c1_stop_master", "c3_stop_master")
_WORK_MAX_S = 0.1
_CLOSING_MAX_S = 4.1
"""A second for the pool that pulls later, three for the thread that polls for events of connections."""
_PULL_AGAIN_S = 2.0
"""Up to a second until the next look for what has timed out, one more until the pull is repeated."""
_WITHOUT_TIMER = ("ns_removed", "route_acting", "s1_min", "s2_min", "s1_special_on", "s2_special_on", "overlap")
_AFTER_RETURN = (
    *("ns_master_back", "s1_special_off", "overlap", "client_route_master"),
    *("master_addr_s1", "master_addr_s2", "full_sync_s1", "full_sync_s2"),
)
_OF_JOINS = ("owned_once", "no_owner", "pause")
_OF_LATE = ("pause", "consumed_twice")
_LOAD, _THREADS = InstantMatch.MACHINE_LOAD, InstantMatch.REAL_THREADS
_EARLIER = InstantMatch.EARLIER_FAULT
_SUPPRESSIONS: tuple[tuple[Callable[[RealRun, str, float, Span], bool], InstantMatch, str], ...] = (
    (_is_work, _LOAD, "no timer, only work of a busy machine: less than a second"),
    (_is_late, _LOAD, "the busy machine had the master back later than a calm one would: later by as much"),
    (_started_slowly, _LOAD, "the second after which a new client may rebalance went by while its process started"),
    (_joined_late, _LOAD, "the busy machine spread the passes of the members over up to a second more"),
    (_closes_slowly, _THREADS, "it keeps its table, and consumes nothing, while it waits for its threads to end"),
    (_timed_out_first, _THREADS, "it looks for timed-out pulls once a second: up to a second later than ours"),
    (
        _is_listed_twice,
        _THREADS,
        "the master that woke read heartbeats of closed connections, and listed a consumer twice",
    ),
    (_heard_first, _THREADS, "the master that woke heard of the new one before it answered what waited in its socket"),
    (
        _answered_twice,
        _THREADS,
        "a slave that reads an answer to its handshake in two pieces repeats it, and leaves at the second answer",
    ),
    (_looks_together, _THREADS, "both clients of one program look at routes together, ours each at its own time"),
    (_scanned_first, _THREADS, "the controller that woke looked for silent brokers before it read their heartbeats"),
    (
        _was_elected_needlessly,
        _THREADS,
        "the controller that woke elected a master, of which producers learn within 30 s",
    ),
    (_missed_the_close, _EARLIER, "the controller, frozen before, knew the master by a connection that had ended"),
    (_took_up_late, _EARLIER, "a consumer took up queues that it had let go of when the master before woke"),
)
"""What explains a value that is outside; load never excuses a calm run."""
