"""A link: one direction between two nodes, and what faults make of it.

Pure: the router asks for a verdict per frame, and knows the time itself.
"""

from collections.abc import Callable
from enum import StrEnum

import attrs

from emulator.chance import draw

_NS_PER_MS = 1_000_000


class LinkEffect(StrEnum):
    """What a fault does to the links it covers."""

    CUT = "cut"
    LOSS = "loss"
    DELAY = "delay"


@attrs.frozen
class LinkRule:
    """One fault as the network applies it."""

    fault_id: str
    effect: LinkEffect
    covers: Callable[[str, str], bool]
    """(source node, destination node) -> whether the rule bites there."""
    loss: float = 0.0
    """Share of frames that vanish, 0..1."""
    delay_ms: int = 0
    """Added to the latency of the link."""
    jitter_ms: int = 0
    """Upper bound of a further, uniform delay."""


class Link:
    """One direction between two nodes.

    `plain` links (no loss, no jitter, no cut) are decided without a draw.
    """

    __slots__ = (
        "_base_delay_ns",
        "_base_jitter_ms",
        "_jitters",
        "_losses",
        "_name",
        "_seed",
        "cut_by",
        "delay_ns",
        "frames",
        "plain",
    )

    def __init__(self, seed: int, src: str, dst: str, delay_ms: int, jitter_ms: int) -> None:
        self._name = f"link/{src}/{dst}"
        self._seed = seed
        self._base_delay_ns = delay_ms * _NS_PER_MS
        self._base_jitter_ms = jitter_ms
        self.frames = 0
        self.apply(())

    def apply(self, rules: tuple[LinkRule, ...]) -> None:
        """Take on exactly these rules, in the order in which their faults began."""
        self.cut_by = next((r.fault_id for r in rules if r.effect is LinkEffect.CUT), "")
        self._losses = tuple(
            (r.fault_id, f"{self._name}/{r.fault_id}", r.loss) for r in rules if r.effect is LinkEffect.LOSS
        )
        delays = [r for r in rules if r.effect is LinkEffect.DELAY]
        self.delay_ns = self._base_delay_ns + sum(r.delay_ms for r in delays) * _NS_PER_MS
        jitters = [("jitter", self._base_jitter_ms), *((f"{r.fault_id}/jitter", r.jitter_ms) for r in delays)]
        # A stream for each: a fault that comes or goes shifts no draw of another.
        self._jitters = tuple((f"{self._name}/{name}", bound_ms + 1) for name, bound_ms in jitters if bound_ms)
        self.plain = not (self.cut_by or self._losses or self._jitters)

    def verdict(self, *, may_be_lost: bool) -> tuple[str, int]:
        """Decide about the next frame.

        Args:
            may_be_lost: False for what a kernel would retransmit (FIN).

        Returns:
            Id of the fault that takes the frame ("" if none does), latency in ns on the 1 ms grid.
        """
        ordinal = self.frames
        self.frames += 1
        if self.plain:
            return "", self.delay_ns
        if self.cut_by:
            return self.cut_by, self.delay_ns
        if may_be_lost:
            for fault_id, stream, loss in self._losses:
                if draw(self._seed, stream, ordinal) < loss:
                    return fault_id, self.delay_ns
        latency_ns = self.delay_ns
        for stream, steps in self._jitters:
            latency_ns += int(draw(self._seed, stream, ordinal) * steps) * _NS_PER_MS
        return "", latency_ns
