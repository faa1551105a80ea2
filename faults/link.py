"""What can go wrong between two nodes."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

import attrs

from faults.fault import Fault
from faults.scope import LinkScope, PartitionScope
from faults.target import ANY
from faults.words import Wording, Words, WordsError, code, number, options, without_one_way, words_after
from nodes.fields import Rule, checked, choice, text, whole
from nodes.protocol.codes import RequestCode

CODE = Rule("a request code", lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0)
FILTERS = ("code", "group", "topic", "during")
"""Words that choose frames."""
_FILTERS_USAGE = "[code CODE] [group G] [topic T] [during STAGE]"


class Stage(StrEnum):
    """A stage in the life of a process, to which a fault may be confined."""

    STARTING = "starting"
    """From its start until it is ready."""
    PRE_ONLINE = "pre-online"
    """A broker, on its way online (RIP-32)."""
    STOPPING = "stopping"
    """From the beginning of an orderly shutdown."""


def links(words: Words) -> LinkScope:
    """The two ends, and whether only one direction is hit; no ends are all links, one end is all of its links."""
    ends, one_way = without_one_way(words)
    if len(ends) > 2:
        raise WordsError(f"expected two nodes at most, not {' '.join(ends)}; quote what has several words")
    src, dst = [*ends, ANY, ANY][:2]
    return LinkScope(src, dst, one_way)


@attrs.frozen
class LinkFault(Fault):
    """A fault of the links between nodes."""

    hits_guests: ClassVar[bool] = True

    def parameters(self) -> Mapping[str, Any]:
        """Direction, and all that is said besides whom it hits, ready for JSON."""
        return {"one_way": self.scope.one_way, **Fault.parameters(self)}


@attrs.frozen(kw_only=True)
class FrameFault(LinkFault):
    """A fault of certain frames of its links; nothing said is all of them.

    `code` matches a request and its answer; group and topic are read in the header of a request, and an answer has
    neither.
    """

    code: int | None = checked(CODE, None)
    """RocketMQ's request code."""
    group: str | None = text(None)
    """Consumer or producer group."""
    topic: str | None = text(None)
    during: Stage | None = choice(Stage, None)
    """Only while the node at one of the two ends is in this stage."""

    @property
    def matches_all(self) -> bool:
        """Whether every frame of the links is hit."""
        return self.code is None and self.group is None and self.topic is None and self.during is None

    def describe_frames(self) -> str:
        """For people: ` code 34, group g`; empty where all are hit."""
        said = {"code": self.code, "group": self.group, "topic": self.topic, "during": self.during}
        return "".join(f", {name} {value}" for name, value in said.items() if value is not None)


def filters(said: Mapping[str, str]) -> dict[str, Any]:
    """What words say of the frames of a `FrameFault`."""
    chosen: dict[str, Any] = dict(said)
    if "code" in chosen:
        chosen["code"] = code("request code", chosen["code"], RequestCode)
    return chosen


@attrs.frozen
class Cut(LinkFault):
    """No frame passes; what is on its way is lost, and a new connection gets no answer."""

    kind: ClassVar[str] = "cut"
    wording: ClassVar[Wording] = Wording(
        "cut", "A [B] [one-way]", "let no frame pass between nodes, what is on its way included"
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
    """Nodes are divided, and no frame passes where they are."""

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
        """Its shape, ready for JSON."""
        return {"shape": self.scope.shape}

    def describe(self) -> str:
        """For people: `partition: isolate broker-a among broker-a, broker-b`."""
        return f"partition: {self.scope.describe()}"


@attrs.frozen
class Loss(FrameFault):
    """Each frame vanishes with a probability; whoever waits for it times out (the `frame` model of loss)."""

    kind: ClassVar[str] = "loss"
    wording: ClassVar[Wording] = Wording(
        "loss", f"PERCENT [A [B]] [one-way] {_FILTERS_USAGE}", "let frames vanish: whoever waits times out"
    )
    scope: LinkScope
    percent: int = whole(unit="percent", least=0, most=100)
    """Probability, 0 to 100."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`loss PERCENT [A [B]] ...`."""
        rest, said = options(words[1:], FILTERS)
        return cls(links(rest), number("percent", words[0]), **filters(said))

    def describe(self) -> str:
        """For people: `lose 20 % on all links`."""
        return f"lose {self.percent} % on {self.scope.describe()}{self.describe_frames()}"


@attrs.frozen
class TcpLoss(LinkFault):
    """Each segment is lost with a probability, and sent again (the `tcp` model of loss).

    A kernel repeats a lost segment after 200 ms, then after twice that, and so on up to two minutes; what was sent
    behind it waits. So loss is delay, until the sender's kernel has repeated a segment 15 times, and gives the
    connection up.
    """

    kind: ClassVar[str] = "tcp_loss"
    wording: ClassVar[Wording] = Wording(
        "tcp-loss", "PERCENT [A [B]] [one-way]", "let segments be lost, which kernels repeat: loss is delay"
    )
    scope: LinkScope
    percent: int = whole(unit="percent", least=0, most=100)
    """Probability, 0 to 100, of each attempt."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`tcp-loss PERCENT [A [B]] [one-way]`."""
        return cls(links(words[1:]), number("percent", words[0]))

    def describe(self) -> str:
        """For people: `lose 20 % of segments on all links`."""
        return f"lose {self.percent} % of segments on {self.scope.describe()}"


@attrs.frozen
class Delay(FrameFault):
    """Each frame takes longer, in addition to what its link takes anyway."""

    kind: ClassVar[str] = "delay"
    wording: ClassVar[Wording] = Wording(
        "delay", f"MS [A [B]] [one-way] [jitter MS] {_FILTERS_USAGE}", "let frames take longer"
    )
    scope: LinkScope
    delay_ms: int = whole(unit="milliseconds", least=0)
    """Added to every frame."""
    jitter_ms: int = whole(0, unit="milliseconds", least=0)
    """Added besides: a whole number of milliseconds drawn from 0 to this, both included."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`delay MS [A [B]] ...`."""
        rest, said = options(words[1:], ("jitter", *FILTERS))
        jitter_ms = number("milliseconds", said.pop("jitter", "0"))
        return cls(links(rest), number("milliseconds", words[0]), jitter_ms, **filters(said))

    def describe(self) -> str:
        """For people: `delay a <-> b by 40 ms, jitter 5 ms`."""
        jitter = f", jitter {self.jitter_ms} ms" if self.jitter_ms else ""
        return f"delay {self.scope.describe()} by {self.delay_ms} ms{jitter}{self.describe_frames()}"


@attrs.frozen
class Drop(FrameFault):
    """Certain frames vanish: the next few that match, perhaps not before some have passed."""

    kind: ClassVar[str] = "drop"
    wording: ClassVar[Wording] = Wording(
        "drop",
        "[CODE] [from A] [to B] [next N] [skip N] [group G] [topic T] [during STAGE]",
        "let certain frames vanish: requests of a code and their answers, the next few",
    )
    scope: LinkScope
    next: int | None = whole(None, unit="frames", least=1)
    """How many; None: all, as long as it lasts."""
    skip: int = whole(0, unit="frames", least=0)
    """How many pass before: `skip = 2, next = 1` takes the third."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`drop [CODE] [from A] [to B] ...`."""
        rest, said = options(words, ("from", "to", "next", "skip", *FILTERS))
        if len(rest) > 1:
            raise cls.wording.mistake()
        if rest:
            said["code"] = rest[0]
        src, dst = said.pop("from", ANY), said.pop("to", ANY)
        return cls(LinkScope(src, dst, one_way=(src, dst) != (ANY, ANY)), *counts("frames", said), **filters(said))

    def describe(self) -> str:
        """For people: `drop the next 3 on a <-> b, code 34`."""
        which = "all" if self.next is None else f"the next {self.next}"
        after = f" after {self.skip}" if self.skip else ""
        return f"drop {which}{after} on {self.scope.describe()}{self.describe_frames()}"


def counts(what: str, said: dict[str, str]) -> tuple[int | None, int]:
    """`next N` and `skip N`, taken out of what was said."""
    following, skip = said.pop("next", None), said.pop("skip", "0")
    return None if following is None else number(what, following), number(what, skip)
