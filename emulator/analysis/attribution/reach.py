"""Reach: what kept the frames of one node from another, and whether each of several hindrances was needed for that.

A fault of links is a hindrance as long as it lasts if it lets hardly a frame pass; else around each frame that it has
taken, for as long as the caller waits. So is a process at either end that is away.
"""

from collections.abc import Iterable, Sequence

from emulator.analysis.attribution.explanation import CauseChain, by, either
from emulator.history.lost_frames import DROPPED, RESPONSE, LostFrames
from emulator.history.origins import Hindrance, Origins
from emulator.history.rows.row_classes import Span
from emulator.history.steps import merged
from faults.disturbance import Frame
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_S

_HELD_S: dict[int | None, int] = {RequestCode.PULL_MESSAGE: 33, RequestCode.POP_MESSAGE: 33, RequestCode.HEART_BEAT: 33}
"""Mapping request -> how long a client waits for its answer, and until it asks again."""
_CALL_S = 4
"""The same of other requests: RocketMQ's timeout of 3 s, and a moment."""


class Reach:
    """Answers what kept frames from arriving.

    Args:
        origins, lost: have read all rows.
    """

    def __init__(self, origins: Origins, lost: LostFrames) -> None:
        self._origins = origins
        self._lost = lost
        self._known: dict[tuple[str, str, int, int, int | None], tuple[Hindrance, ...]] = {}

    def hindrances(
        self, src: str, dst: str, start_ns: int, end_ns: int, code: int | None = None
    ) -> tuple[Hindrance, ...]:
        """What kept requests of one node to another, or their answers, from arriving in a time, or kept either away.

        Args:
            src: who asks.
            dst: who is asked.
            start_ns: from when on.
            end_ns: until when.
            code: of the requests; None: of any.
        """
        key = src, dst, start_ns, end_ns, code
        found = self._known.get(key)
        if found is None:
            away = [item for node in (src, dst) for item in self._origins.absences(node, start_ns, end_ns)]
            on_link = self.on_link(src, dst, start_ns, end_ns, code)
            found = self._known[key] = (*away, *on_link)
        return found

    def on_link(self, src: str, dst: str, start_ns: int, end_ns: int, code: int | None = None) -> list[Hindrance]:
        """The same without the absence of either node."""
        frame = Frame(src, dst, code)
        found = [
            Hindrance(life.origin, max(start_ns, life.row.t_ns), min(end_ns, life.end_ns))
            for life in self._origins.overlapping(start_ns, end_ns)
            if life.prevents(frame)
        ]
        return [*found, *self._taken(src, dst, start_ns, end_ns, code)]

    def _taken(self, src: str, dst: str, start_ns: int, end_ns: int, code: int | None) -> Iterable[Hindrance]:
        """Around frames that faults have taken."""
        spans: dict[str, list[Span]] = {}
        longest_ns = max(_HELD_S.values()) * NS_PER_S
        for sender, receiver in ((src, dst), (dst, src)):
            for row in self._lost.between(sender, receiver, start_ns - longest_ns, end_ns):
                if row.event != DROPPED or (code is not None and row.code != code):
                    continue
                lasts_ns = _HELD_S.get(row.code, _CALL_S) * NS_PER_S
                if row.kind == RESPONSE or (sender, receiver) == (src, dst) or code is not None:
                    spans.setdefault(row.detail, []).append((row.sent_ns, row.sent_ns + lasts_ns))
        for fault_id, of_fault in spans.items():
            life = self._origins.faults.get(fault_id)
            if life is None or life.prevents(Frame(src, dst, code)):
                continue
            for since_ns, until_ns in merged(of_fault):
                if since_ns < end_ns and until_ns > start_ns:
                    yield Hindrance(life.origin, max(since_ns, start_ns), min(until_ns, end_ns))


def needed(hindrances: Sequence[Hindrance], at_least_ns: int = 1) -> CauseChain:
    """Which hindrances were needed for a gap of some length without interruption.

    One without which the others leave such a gap was not needed; if that is so of all, each of those that leave one
    alone suffices.

    Args:
        hindrances: of one pair of nodes.
        at_least_ns: how long nothing may have come; a gap that is shorter in any case needs them all.
    """
    if not hindrances:
        return CauseChain()
    origins = tuple(dict.fromkeys(item.origin for item in hindrances))
    if len(origins) == 1:
        return by(*origins)
    at_least_ns = min(at_least_ns, longest_ns(hindrances))
    without = {origin: [item for item in hindrances if item.origin != origin] for origin in origins}
    necessary = [origin for origin in origins if longest_ns(without[origin]) < at_least_ns]
    if necessary:
        return by(*necessary)
    alone = {origin: [item for item in hindrances if item.origin == origin] for origin in origins}
    return either([origin for origin in origins if longest_ns(alone[origin]) >= at_least_ns] or origins)


def at(hindrances: Iterable[Hindrance], t_ns: int) -> list[Hindrance]:
    """Those that there are at an instant."""
    return [item for item in hindrances if item.start_ns <= t_ns < item.end_ns]


def longest_ns(hindrances: Iterable[Hindrance]) -> int:
    """The longest time in which something hinders without interruption."""
    spans = merged((item.start_ns, item.end_ns) for item in hindrances)
    return max((end - start for start, end in spans), default=0)
