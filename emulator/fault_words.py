"""Faults said in words: what the verbs that break something take, and what `do = "..."` of a scenario file says.

cut c1 broker-a one-way
drop HEART_BEAT from c1 to broker-a next 3
kill acting master of broker-a
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import attrs

from faults.catalogue import CHAOS_NAMES, FAULTS, fields_of, scope_of
from faults.fault import Fault
from faults.kind import FaultKind
from faults.link import Cut, Delay, Drop, Loss, Partition, TcpLoss
from faults.machine import ClockDrift, ClockJump, ClockSkew, LostWrites, SlowDisk
from faults.permission import Permission
from faults.process import Kill, PowerOff, Restart, SlowCpu, Suspend
from faults.scale import GroupScope, Scale
from faults.scope import LinkScope, NodeScope, PartitionScope
from faults.whom import ANY, FaultError
from nodes.protocol.codes import RequestCode

Words = Sequence[str]
_ONE_WAY = "one-way"
_FRAMES = ("code", "group", "topic", "during")
_FRAMES_USAGE = "[code CODE] [group G] [topic T] [during STAGE]"


class WordsError(ValueError):
    """Words that say no fault; says in one line what was expected."""


@attrs.frozen
class FaultWords:
    """How one kind of fault is said."""

    name: str
    usage: str
    """Its words: capitals are filled in, brackets may be left out."""
    summary: str
    read: Callable[[Words], Fault]
    least: int
    """Fewest words."""

    def line(self) -> str:
        """`cut A [B] [one-way]`."""
        return f"{self.name} {self.usage}".rstrip()

    def fault(self, words: Words) -> Fault:
        """The fault that words say.

        Raises:
            WordsError: they say none.
        """
        if len(words) < self.least:
            raise WordsError(f"expected: {self.line()}")
        try:
            return self.read(words)
        except FaultError as error:
            raise WordsError(error.expected) from None


def fault_of(line: str) -> Fault:
    """The fault that a whole line says.

    Raises:
        WordsError: it says none.
    """
    try:
        name, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise WordsError(f"{line.strip()}: {str(error).lower()}") from None
    if name not in WORDS:
        near = get_close_matches(name, WORDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(WORDS)}"
        raise WordsError(f'"{name}" breaks nothing; {hint}')
    return WORDS[name].fault(words)


def _cut(words: Words) -> Fault:
    rest, one_way = _one_way(words)
    if len(rest) not in (1, 2):
        raise WordsError(f"expected: {WORDS['cut'].line()}")
    return Cut(LinkScope(rest[0], rest[1] if len(rest) > 1 else ANY, one_way))


def _partition(words: Words) -> Fault:
    shape, rest = words[0], list(words[1:])
    given: dict[str, str] = {}
    if "among" in rest:
        at = rest.index("among")
        given["among"], rest = _some(rest[at + 1 :], "among"), rest[:at]
    if rest:
        given["node"] = " ".join(rest)
    return Partition(PartitionScope(shape, **given))


def _loss(words: Words) -> Fault:
    rest, frames = _options(words[1:], _FRAMES)
    return Loss(_links(rest), _number("percent", words[0]), **_meant(frames))


def _tcp_loss(words: Words) -> Fault:
    return TcpLoss(_links(words[1:]), _number("percent", words[0]))


def _delay(words: Words) -> Fault:
    rest, said = _options(words[1:], ("jitter", *_FRAMES))
    jitter_ms = _number("milliseconds", said.pop("jitter", "0"))
    return Delay(_links(rest), _number("milliseconds", words[0]), jitter_ms, **_meant(said))


def _drop(words: Words) -> Fault:
    rest, said = _options(words, ("from", "to", "next", "skip", *_FRAMES))
    if len(rest) > 1:
        raise WordsError(f"expected: {WORDS['drop'].line()}")
    if rest:
        said["code"] = rest[0]
    src, dst = said.pop("from", ANY), said.pop("to", ANY)
    count, skip = said.pop("next", None), said.pop("skip", "0")
    return Drop(
        LinkScope(src, dst, one_way=(src, dst) != (ANY, ANY)),
        None if count is None else _number("frames", count),
        _number("frames", skip),
        **_meant(said),
    )


def _on_nodes(kind: type[Any]) -> Callable[[Words], Fault]:
    return lambda words: kind(NodeScope(" ".join(words)))


def _on_nodes_by(kind: type[Any], unit: str) -> Callable[[Words], Fault]:
    def read(words: Words) -> Fault:
        fault: Fault = kind(NodeScope(" ".join(words[:-1])), _number(unit, words[-1]))
        return fault

    return read


def _permission(words: Words) -> Fault:
    rest, said = _options(words, ("topic",))
    if len(rest) < 2:
        raise WordsError(f"expected: {WORDS['permission'].line()}")
    perm: Any = int(rest[-1]) if rest[-1].isdecimal() else rest[-1]
    return Permission(NodeScope(" ".join(rest[:-1])), perm, said.get("topic"))


def _scale(words: Words) -> Fault:
    if len(words) != 2:
        raise WordsError(f"expected: {WORDS['scale'].line()}")
    return Scale(GroupScope(words[0]), _number("members", words[1]))


def _chaos(words: Words) -> Fault:
    name, nodes = words[0], " ".join(words[1:])
    if name not in CHAOS_NAMES:
        raise WordsError(f"expected one of {', '.join(CHAOS_NAMES)}, not {name}")
    kind, meant = CHAOS_NAMES[name]
    given: dict[str, Any] = {"src": ANY, "dst": ANY, **meant}
    if nodes:
        given |= {"src" if scope_of(FAULTS[kind]) is LinkScope else "node": nodes}
    fields = {part: {f.name: given[f.name] for f in fields_of(part) if f.name in given} for part in _parts(kind)}
    if name.startswith("fixed-") and not nodes:
        raise WordsError(f"expected: chaos {name} NODES")
    scope, fault = _parts(kind)
    made: Fault = fault(scope=scope(**fields[scope]), **fields[fault])
    return made


def _parts(kind: FaultKind) -> tuple[type[Any], type[Any]]:
    return scope_of(FAULTS[kind]), FAULTS[kind]


def _links(words: Words) -> LinkScope:
    """The two ends, and whether only one direction is meant; no ends are all links, one is all of its links."""
    ends, one_way = _one_way(words)
    if len(ends) > 2:
        raise WordsError(f"expected two nodes at most, not {' '.join(ends)}; quote what has several words")
    src, dst = [*ends, ANY, ANY][:2]
    return LinkScope(src, dst, one_way)


def _one_way(words: Words) -> tuple[list[str], bool]:
    return [word for word in words if word != _ONE_WAY], _ONE_WAY in words


def _options(words: Words, names: Words) -> tuple[list[str], dict[str, str]]:
    """Pairs of a name and a value, taken out of the words."""
    rest, said = list(words), {}
    for name in names:
        if name in rest:
            at = rest.index(name)
            said[name] = _some(rest[at + 1 : at + 2], name)
            del rest[at : at + 2]
    return rest, said


def _some(words: Words, after: str) -> str:
    if not words:
        raise WordsError(f"expected something after {after}")
    return " ".join(words)


def _meant(said: Mapping[str, str]) -> dict[str, Any]:
    meant: dict[str, Any] = dict(said)
    if "code" in meant:
        meant["code"] = _code(meant["code"])
    return meant


def _code(word: str) -> int:
    if word.isdecimal():
        return int(word)
    if word.upper() not in RequestCode.__members__:
        near = get_close_matches(word.upper(), list(RequestCode.__members__), n=1)
        raise WordsError(f"expected a request code, not {word}" + (f"; did you mean {near[0]}?" if near else ""))
    return int(RequestCode[word.upper()])


def _number(what: str, word: str) -> int:
    if not word.removeprefix("-").removeprefix("+").isdecimal():
        raise WordsError(f"expected a whole number of {what}, not {word}")
    return int(word)


_ALL = (
    FaultWords("cut", "A [B] [one-way]", "let no frame pass between nodes, what is on its way included", _cut, 1),
    FaultWords(
        "partition",
        "isolate|majorities-ring|bridge [NODES] [among NODES]",
        "divide nodes: the servers if nothing is said",
        _partition,
        1,
    ),
    FaultWords(
        "loss", f"PERCENT [A [B]] [one-way] {_FRAMES_USAGE}", "let frames vanish: whoever waits times out", _loss, 1
    ),
    FaultWords(
        "tcp-loss",
        "PERCENT [A [B]] [one-way]",
        "let segments be lost, which kernels repeat: loss is delay",
        _tcp_loss,
        1,
    ),
    FaultWords("delay", f"MS [A [B]] [one-way] [jitter MS] {_FRAMES_USAGE}", "let frames take longer", _delay, 1),
    FaultWords(
        "drop",
        "[CODE] [from A] [to B] [next N] [skip N] [group G] [topic T] [during STAGE]",
        "let certain frames vanish: requests of a code and their answers, the next few",
        _drop,
        1,
    ),
    FaultWords("suspend", "NODES", "stop a process as SIGSTOP does; connections stay open", _on_nodes(Suspend), 1),
    FaultWords("kill", "NODES", "end a process as SIGKILL does; its connections are closed", _on_nodes(Kill), 1),
    FaultWords("stop", "NODES", "end a process as SIGTERM does, in good order", _on_nodes(Restart), 1),
    FaultWords("power-off", "NODES", "take the power; what was not synced is lost", _on_nodes(PowerOff), 1),
    FaultWords(
        "slow-cpu",
        "NODES MS",
        "give a process a turn of the CPU every MS",
        _on_nodes_by(SlowCpu, "milliseconds"),
        2,
    ),
    FaultWords(
        "skew", "NODES MS", "set a wall clock wrong; healed, it steps back", _on_nodes_by(ClockSkew, "milliseconds"), 2
    ),
    FaultWords(
        "drift",
        "NODES PPM",
        "let a wall clock gain or lose microseconds a second",
        _on_nodes_by(ClockDrift, "parts per million"),
        2,
    ),
    FaultWords(
        "jump",
        "NODES MS",
        "let a wall clock jump; healed, it is led back without a step",
        _on_nodes_by(ClockJump, "milliseconds"),
        2,
    ),
    FaultWords("slow-disk", "NODES MS", "let each flush take MS", _on_nodes_by(SlowDisk, "milliseconds"), 2),
    FaultWords(
        "lost-writes",
        "NODES",
        "acknowledge syncs, do none: power-off takes the writes",
        _on_nodes(LostWrites),
        1,
    ),
    FaultWords(
        "permission",
        "NODES PERM [topic T]",
        "let brokers, or one topic of theirs, be read only (4) or written only (2)",
        _permission,
        2,
    ),
    FaultWords("scale", "GROUP N", "give a consumer group N members", _scale, 2),
    FaultWords("chaos", "NAME [NODES]", f"as OpenMessaging-Chaos calls it: {', '.join(CHAOS_NAMES)}", _chaos, 1),
)
WORDS: Mapping[str, FaultWords] = MappingProxyType({words.name: words for words in _ALL})
"""Name -> how it is said, in the order in which it is explained."""
