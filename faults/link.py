"""Faults of links between nodes: cut, partition, loss, delay, drop."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import BLOCKING_MS, UNHEARD, Disturbance, Frame
from faults.fault import Fault
from faults.scope import LinkScope, PartitionScope
from faults.target import ANY
from faults.words import Wording, Words, WordsError, code, number, options, percentage, without_one_way, words_after
from nodes.fields import Rule, checked, choice, percent, shown, text, whole, whole_rule
from nodes.protocol.codes import RequestCode

CODE = Rule("a request code", whole_rule(minimum=0).holds)
FILTERS = ("code", "group", "topic", "during")
"""Options that select frames."""
_FILTERS_USAGE = "[code CODE] [group G] [topic T] [during STAGE]"


_OFTEN_PERCENT = 50


def _often_lost(parameters: Mapping[str, Any]) -> bool:
    return float(parameters.get("percent", 100)) >= _OFTEN_PERCENT


def _hits(scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
    """Whether a fault that is not limited to some frames, or to a stage, hits all frames like this one."""
    if parameters.get("next") is not None or parameters.get("during") is not None:
        return False
    of = (frame.code, frame.group, frame.topic)
    chosen = zip(map(parameters.get, ("code", "group", "topic")), of, strict=True)
    return all(item in (None, of_frame) for item, of_frame in chosen) and bool(scope.matches(frame.src, frame.dst))


class ProcessStage(StrEnum):
    """A stage in the life of a process, to which a fault may be limited."""

    STARTING = "starting"
    """From the start until the node is ready."""
    PRE_ONLINE = "pre-online"
    """A broker during pre-online (RIP-32)."""
    STOPPING = "stopping"
    """From the beginning of an orderly shutdown."""


def links(words: Words) -> LinkScope:
    """Parse a scope from `[A [B]] [one-way]`; without ends all links, with one end all of its links."""
    ends, one_way = without_one_way(words)
    if len(ends) > 2:
        raise WordsError(f"expected two nodes at most, not {shown(' '.join(ends))}; quote what has several words")
    src, dst = [*ends, ANY, ANY][:2]
    return LinkScope(src, dst, one_way)


@attrs.frozen
class LinkFault(Fault):
    """A fault of the links between nodes."""

    hits_guests: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = UNHEARD

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
        """No frame arrives on its links."""
        return _hits(scope, parameters, frame)

    def parameters(self) -> Mapping[str, Any]:
        """The direction and the parameters, ready for JSON."""
        return {"one_way": self.scope.one_way, **Fault.parameters(self)}


@attrs.frozen(kw_only=True)
class FrameFault(LinkFault):
    """A fault of selected frames of its links, by default of all frames.

    `code` matches a request and its answer; `group` and `topic` match the header of a request, never an answer.
    """

    code: int | None = checked(CODE, None)
    """RocketMQ's request code."""
    group: str | None = text(None)
    """Consumer or producer group."""
    topic: str | None = text(None)
    """Topic in the header of a request."""
    during: ProcessStage | None = choice(ProcessStage, None)
    """Only while the process at one of the two ends is in this stage."""

    @property
    def matches_all(self) -> bool:
        """Whether it hits every frame of its links."""
        return self.code is None and self.group is None and self.topic is None and self.during is None

    def describe_frames(self) -> str:
        """The selection as text: `, code 34, group g`; empty for all frames."""
        answer = {"code": self.code, "group": self.group, "topic": self.topic, "during": self.during}
        return "".join(f", {name} {value}" for name, value in answer.items() if value is not None)


def filters(answer: Mapping[str, str]) -> dict[str, Any]:
    """Field values of a `FrameFault` from the options in words."""
    chosen: dict[str, Any] = dict(answer)
    if "code" in chosen:
        chosen["code"] = code("request code", chosen["code"], RequestCode)
    return chosen


@attrs.frozen
class Cut(LinkFault):
    """No frame passes; frames in flight are lost, and new connections are not answered."""

    kind: ClassVar[str] = "cut"
    wording: ClassVar[Wording] = Wording(
        "cut", "A [B] [one-way]", "let no frame pass between nodes, frames in flight included"
    )
    scope: LinkScope

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`cut A [B] [one-way]`."""
        rest, one_way = without_one_way(words)
        if len(rest) not in (1, 2):
            raise cls.wording.mistake()
        return cls(LinkScope(rest[0], rest[1] if len(rest) > 1 else ANY, one_way))


@attrs.frozen
class Partition(LinkFault):
    """Nodes are divided, and no frame passes between the parts."""

    kind: ClassVar[str] = "partition"
    wording: ClassVar[Wording] = Wording(
        "partition",
        "isolate|majorities-ring|bridge [NODES] [among NODES]",
        "divide nodes: the servers if nothing is said",
    )
    scope: PartitionScope

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`partition SHAPE [NODES] [among NODES]`."""
        shape, rest = words[0], list(words[1:])
        given: dict[str, str] = {}
        if "among" in rest:
            at = rest.index("among")
            given["among"], rest = words_after("among", rest[at + 1 :]), rest[:at]
        if rest:
            given["node"] = " ".join(rest)
        return cls(PartitionScope(shape, **given))

    def parameters(self) -> Mapping[str, Any]:
        """The shape, ready for JSON."""
        return {"shape": self.scope.shape}

    def describe(self) -> str:
        """For people: `partition: isolate broker-a among broker-a, broker-b`."""
        return f"partition: {self.scope.describe()}"


@attrs.frozen
class Loss(FrameFault):
    """Each frame is lost with a probability; calls that wait for it time out (the `frame` model of loss)."""

    kind: ClassVar[str] = "loss"
    wording: ClassVar[Wording] = Wording(
        "loss", f"PERCENT [A [B]] [one-way] {_FILTERS_USAGE}", "lose frames: calls that wait for them time out"
    )
    scope: LinkScope
    percent: float = percent()
    """Probability, 0 to 100."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`loss PERCENT [A [B]] ...`."""
        rest, answer = options(words[1:], FILTERS)
        return cls(links(rest), percentage(words[0]), **filters(answer))

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
        """Half of the frames or more are lost."""
        return _often_lost(parameters) and _hits(scope, parameters, frame)

    def describe(self) -> str:
        """For people: `lose 20 % on all links`."""
        return f"lose {self.percent} % on {self.scope.describe()}{self.describe_frames()}"


@attrs.frozen
class TcpLoss(LinkFault):
    """Each segment is lost with a probability, and retransmitted (the `tcp` model of loss).

    A kernel retransmits a lost segment after 200 ms, then after twice that, and so on up to two minutes; later frames
    wait. So loss becomes delay, until the kernel gives the connection up after 15 retransmissions.
    """

    kind: ClassVar[str] = "tcp_loss"
    wording: ClassVar[Wording] = Wording(
        "tcp-loss", "PERCENT [A [B]] [one-way]", "lose segments, which kernels retransmit: loss becomes delay"
    )
    scope: LinkScope
    percent: float = percent()
    """Probability of each transmission, 0 to 100."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`tcp-loss PERCENT [A [B]] [one-way]`."""
        return cls(links(words[1:]), percentage(words[0]))

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
        """Half of the segments or more are lost."""
        return _often_lost(parameters) and _hits(scope, parameters, frame)

    def describe(self) -> str:
        """For people: `lose 20 % of segments on all links`."""
        return f"lose {self.percent} % of segments on {self.scope.describe()}"


@attrs.frozen
class Delay(FrameFault):
    """Each frame takes longer, in addition to the latency of its link."""

    kind: ClassVar[str] = "delay"
    wording: ClassVar[Wording] = Wording("delay", f"MS [A [B]] [one-way] [jitter MS] {_FILTERS_USAGE}", "delay frames")
    scope: LinkScope
    delay_ms: int = whole(unit="milliseconds", minimum=0)
    """Added to every frame."""
    jitter_ms: int = whole(0, unit="milliseconds", minimum=0)
    """Upper bound of a further delay: whole ms, drawn from 0 to this, both included."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`delay MS [A [B]] ...`."""
        rest, answer = options(words[1:], ("jitter", *FILTERS))
        jitter_ms = number("milliseconds", answer.pop("jitter", "0"))
        return cls(links(rest), number("milliseconds", words[0]), jitter_ms, **filters(answer))

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
        """Each frame takes a second longer or more."""
        delay_ms = int(parameters.get("delay_ms", BLOCKING_MS)) + int(parameters.get("jitter_ms", 0))
        return delay_ms >= BLOCKING_MS and _hits(scope, parameters, frame)

    def describe(self) -> str:
        """For people: `delay a <-> b by 40 ms, jitter 5 ms`."""
        jitter = f", jitter {self.jitter_ms} ms" if self.jitter_ms else ""
        return f"delay {self.scope.describe()} by {self.delay_ms} ms{jitter}{self.describe_frames()}"


@attrs.frozen
class Drop(FrameFault):
    """The next matching frames are lost, after a number of them has passed."""

    kind: ClassVar[str] = "drop"
    wording: ClassVar[Wording] = Wording(
        "drop",
        "[CODE] [from A] [to B] [next N] [skip N] [group G] [topic T] [during STAGE]",
        "lose the next matching frames: requests of a code and their answers",
    )
    scope: LinkScope
    next: int | None = whole(None, unit="frames", minimum=1)
    """How many are lost; None: all, as long as the fault lasts."""
    skip: int = whole(0, unit="frames", minimum=0)
    """How many pass before: `skip = 2, next = 1` loses the third."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`drop [CODE] [from A] [to B] ...`."""
        rest, answer = options(words, ("from", "to", "next", "skip", *FILTERS))
        if len(rest) > 1:
            raise cls.wording.mistake()
        if rest:
            answer["code"] = rest[0]
        src, dst = answer.pop("from", ANY), answer.pop("to", ANY)
        return cls(LinkScope(src, dst, one_way=(src, dst) != (ANY, ANY)), *counts("frames", answer), **filters(answer))

    def describe(self) -> str:
        """For people: `drop the next 3 on a <-> b, code 34`."""
        which = "all" if self.next is None else f"the next {self.next}"
        after = f" after {self.skip}" if self.skip else ""
        return f"drop {which}{after} on {self.scope.describe()}{self.describe_frames()}"


def counts(subject: str, answer: dict[str, str]) -> tuple[int | None, int]:
    """The values of `next N` and `skip N`, which are removed from the options."""
    following, skip = answer.pop("next", None), answer.pop("skip", "0")
    return None if following is None else number(subject, following), number(subject, skip)
