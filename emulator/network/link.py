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

    __slots__ = ("_base_delay_ns", "_base_jitter_ms", "_name", "_seed", "cut_by", "delay_ns", "frames", "jitter_ms", "losses", "plain")

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
        self.losses = tuple((r.fault_id, r.loss) for r in rules if r.effect is LinkEffect.LOSS)
        delays = [r for r in rules if r.effect is LinkEffect.DELAY]
        self.delay_ns = self._base_delay_ns + sum(r.delay_ms for r in delays) * _NS_PER_MS
        self.jitter_ms = self._base_jitter_ms + sum(r.jitter_ms for r in delays)
        self.plain = not (self.cut_by or self.losses or self.jitter_ms)

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
            for fault_id, loss in self.losses:
                if draw(self._seed, f"{self._name}/{fault_id}", ordinal) < loss:
                    return fault_id, self.delay_ns
        latency_ns = self.delay_ns
        if self.jitter_ms:
            steps = int(draw(self._seed, f"{self._name}/jitter", ordinal) * (self.jitter_ms + 1))
            latency_ns += steps * _NS_PER_MS
        return "", latency_ns
