"""A link: one direction between two nodes, with the faults that hit it.

Pure: the fabric asks for a verdict per frame; the link knows no time.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import attrs

from emulator.base.chance import Draws
from emulator.base.hits import Hits
from faults.link import ProcessStage
from nodes.protocol.command import Command
from nodes.units import NS_PER_MS


class Sender(Protocol):
    """The end that sends a frame, as far as faults need it."""

    def is_in(self, stage: ProcessStage) -> bool:
        """Whether the process at one of the two ends is in a stage of its life."""


Matches = Callable[[Sender, Command], bool]


class LinkEffect(StrEnum):
    """What a fault does to the frames of its links."""

    CUT = "cut"
    LOSS = "loss"
    TCP_LOSS = "tcp_loss"
    DELAY = "delay"
    DROP = "drop"
    REFUSE = "refuse"


class Quota:
    """Limits how many of the matching frames a fault takes: the first `skip` pass, then it takes `maximum`."""

    def __init__(self, skip: int, maximum: int | None) -> None:
        self._skip = skip
        self._left = maximum

    def takes(self) -> bool:
        """Whether the fault takes the next matching frame."""
        if self._skip:
            self._skip -= 1
            return False
        if self._left is None:
            return True
        self._left -= 1
        return self._left >= 0


@attrs.frozen
class LinkRule:
    """One fault as the network applies it."""

    fault_id: str
    effect: LinkEffect
    covers: Callable[[str, str], bool]
    """(source node, destination node) -> whether the rule holds on this link."""
    loss: float = 0.0
    """Share of frames or segments that vanish, 0..1."""
    delay_ms: int = 0
    """Added to the latency of the link."""
    jitter_ms: int = 0
    """Upper bound of a further, uniform delay."""
    matches: Matches | None = None
    """Which frames it hits; None: all, and also SYN and FIN."""
    quota: Quota | None = None
    """drop, refuse: how many of them it takes, counted over all its links."""
    response: int = 0
    """refuse: the response code."""


@attrs.frozen
class _Rule:
    """A rule on one link, with its random streams."""

    rule: LinkRule
    losses: Draws
    jitter: Draws


class Link:
    """One direction between two nodes.

    A link without faults and jitter needs no verdicts and no draws.
    """

    __slots__ = (
        "_delays",
        "_dst",
        "_hits",
        "_jitter",
        "_jitter_steps",
        "_losses",
        "_seed",
        "_segment_losses",
        "_src",
        "cut_by",
        "delay_ns",
        "faulty",
        "frames",
        "jitters",
        "refusals",
        "segments",
    )

    _losses: tuple[_Rule, ...]
    _segment_losses: tuple[_Rule, ...]
    _delays: tuple[_Rule, ...]
    refusals: tuple[LinkRule, ...]
    """Rules that answer requests in place of the receiver."""

    def __init__(self, seed: int, src: str, dst: str, delay_ms: int, jitter_ms: int, hits: Hits | None = None) -> None:
        self._seed, self._src, self._dst = seed, src, dst
        self.delay_ns = delay_ms * NS_PER_MS
        self._jitter_steps = jitter_ms + 1
        self.jitters = jitter_ms > 0
        self._jitter = self._stream("jitter") if self.jitters else None
        self._hits = hits or Hits()
        self.frames = 0
        self.segments = 0
        self.apply(())

    def apply(self, rules: tuple[LinkRule, ...]) -> None:
        """Replace all rules; they are in the order in which their faults began."""
        self.faulty = bool(rules)
        self.cut_by = ""
        # Empty tuples take no memory, and most of the many links never have a rule.
        self._losses = self._segment_losses = self._delays = self.refusals = ()
        if rules:
            self._sort(rules)

    def _sort(self, rules: tuple[LinkRule, ...]) -> None:
        # One stream for each rule: a fault that begins or ends shifts no draw of another.
        here = [_Rule(rule, self._stream(rule.fault_id), self._stream(f"{rule.fault_id}/jitter")) for rule in rules]
        self.cut_by = next((rule.fault_id for rule in rules if rule.effect is LinkEffect.CUT), "")
        self._losses = tuple([item for item in here if item.rule.effect in (LinkEffect.LOSS, LinkEffect.DROP)])
        self._segment_losses = tuple([item for item in here if item.rule.effect is LinkEffect.TCP_LOSS])
        self._delays = tuple([item for item in here if item.rule.effect is LinkEffect.DELAY])
        self.refusals = tuple([rule for rule in rules if rule.effect is LinkEffect.REFUSE])

    def _stream(self, name: str) -> Draws:
        return Draws(self._seed, f"link/{self._src}/{self._dst}/{name}")

    def refusal(self, sender: Sender, command: Command) -> LinkRule | None:
        """The rule that refuses an arriving request, if there is one; counts the hit."""
        if command.is_response:
            return None
        for rule in self.refusals:
            if (
                rule.matches is not None
                and rule.matches(sender, command)
                and rule.quota is not None
                and rule.quota.takes()
            ):
                self._hits.count(rule.fault_id)
                return rule
        return None

    def loses_segment(self) -> bool:
        """Whether a segment is lost (the `tcp` model); the sender's kernel will retransmit it."""
        if not self._segment_losses:
            return False
        ordinal, self.segments = self.segments, self.segments + 1
        for segment_loss in self._segment_losses:
            if segment_loss.losses.draw(ordinal) < segment_loss.rule.loss:
                self._hits.count(segment_loss.rule.fault_id)
                return True
        return False

    def verdict(
        self, *, may_be_lost: bool, sender: Sender | None = None, command: Command | None = None
    ) -> tuple[str, int]:
        """Decide the fate of the next frame.

        Args:
            may_be_lost: False for segments that a kernel retransmits (FIN).
            sender: the end that sends; None before a connection exists.
            command: the frame; None for SYN and FIN, which rules about certain frames do not match.

        Returns:
            Id of the fault that drops the frame ("" if none does), latency in ns, a multiple of 1 ms.
        """
        ordinal = self.frames
        self.frames += 1
        if self.cut_by:
            self._hits.count(self.cut_by)
            return self.cut_by, self.delay_ns
        if may_be_lost:
            for loss in self._losses:
                if self._takes(loss, ordinal, sender, command):
                    self._hits.count(loss.rule.fault_id)
                    return loss.rule.fault_id, self.delay_ns
        return "", self._latency_ns(ordinal, sender, command)

    def jitter_ns(self, ordinal: int) -> int:
        """The jitter of a frame, a multiple of 1 ms, on a link that jitters."""
        assert self._jitter is not None
        return int(self._jitter.draw(ordinal) * self._jitter_steps) * NS_PER_MS

    def _takes(self, item: _Rule, ordinal: int, sender: Sender | None, command: Command | None) -> bool:
        rule = item.rule
        if not _matches(rule, sender, command):
            return False
        if rule.effect is LinkEffect.DROP:
            return rule.quota is None or rule.quota.takes()
        return item.losses.draw(ordinal) < rule.loss

    def _latency_ns(self, ordinal: int, sender: Sender | None, command: Command | None) -> int:
        latency_ns = self.delay_ns + (self.jitter_ns(ordinal) if self.jitters else 0)
        for delay in self._delays:
            rule = delay.rule
            if not _matches(rule, sender, command):
                continue
            self._hits.count(rule.fault_id)
            latency_ns += rule.delay_ms * NS_PER_MS
            if rule.jitter_ms:
                latency_ns += int(delay.jitter.draw(ordinal) * (rule.jitter_ms + 1)) * NS_PER_MS
        return latency_ns


def _matches(rule: LinkRule, sender: Sender | None, command: Command | None) -> bool:
    if rule.matches is None:
        # Without a command it is a SYN or a FIN, which `drop` does not count.
        return command is not None or rule.effect is not LinkEffect.DROP
    return sender is not None and command is not None and rule.matches(sender, command)
