"""Scopes: the nodes or links that a fault hits."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

import attrs

from faults.target import ANY, Lead, Names, RandomSource, Target, TargetCluster, covers, target
from nodes.fields import FieldError, quoted, shown

KEYS = {"src": "from", "dst": "to"}
"""Mapping field -> key of a file, where they differ: `from` is a keyword of Python."""


def _is_target(_scope: object, field: "attrs.Attribute[str]", value: object) -> None:
    if not isinstance(value, str) or not value:
        raise FieldError(field.name, f'expected the exact name of a node or "{ANY}", not {quoted(value)}')
    try:
        target(value)
    except FieldError as error:
        raise FieldError(field.name, error.problem) from None


def _names(text: str) -> tuple[str, ...]:
    """The names in a target; empty for a target by meaning that is not resolved."""
    found = target(text)
    return found.names if isinstance(found, Names) else ()


def _resolved(text: str, cluster: TargetCluster, chance: RandomSource) -> str:
    return ", ".join(target(text).find(cluster, chance))


def _require_nodes(field: str, requested: str, found: str) -> None:
    if not found:
        raise FieldError(field, f"expected at least one node: no node is {shown(requested)} now")


@attrs.frozen
class NodeScope:
    """Nodes, by name or by meaning; see `faults.target`."""

    node: str = attrs.field(validator=_is_target)
    """The nodes that are hit."""

    def matches(self, name: str) -> bool:
        """Whether a node is hit; a target by meaning must be resolved before."""
        return covers(_names(self.node), name)

    def names(self, name: str) -> bool:
        """Whether the scope contains this name, not only `*`; guests are hit only by name."""
        return name in _names(self.node)

    def resolve(self, cluster: TargetCluster, chance: RandomSource) -> "NodeScope":
        """The scope with the names of the nodes that it hits now.

        Raises:
            FieldError: it hits no node.
        """
        found = _resolved(self.node, cluster, chance)
        _require_nodes("node", self.node, found)
        return NodeScope(found)

    def targets(self) -> tuple[tuple[str, Target], ...]:
        """(field, target) of all targets."""
        return (("node", target(self.node)),)

    def describe(self) -> str:
        """The nodes as text: `broker-a`, or `all nodes`."""
        return "all nodes" if self.node == ANY else self.node

    @classmethod
    def described(cls, text: str, parameters: Mapping[str, Any]) -> Self:  # noqa: ARG003 - one signature for all
        """The scope that `describe` described, of nodes by name."""
        return cls(ANY if text == "all nodes" else text)


@attrs.frozen
class LinkScope:
    """The links from some nodes to others, in one direction or both."""

    src: str = attrs.field(validator=_is_target)
    """Senders of frames, by name or by meaning."""
    dst: str = attrs.field(validator=_is_target)
    """Receivers of frames, by name or by meaning."""
    one_way: bool = False
    """Only frames from `src` to `dst`; else also those from `dst` to `src`."""
    _src: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)
    _dst: tuple[str, ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.src == self.dst != ANY and len(_names(self.src)) == 1:
            raise FieldError("dst", f"expected another node than {shown(self.src)}: a node has no link to itself")
        # Cached, since every link is matched each time that a fault begins or ends.
        object.__setattr__(self, "_src", _names(self.src))
        object.__setattr__(self, "_dst", _names(self.dst))

    def matches(self, src: str, dst: str) -> bool:
        """Whether a frame that travels from `src` to `dst` is hit."""
        forward = covers(self._src, src) and covers(self._dst, dst)
        backward = covers(self._src, dst) and covers(self._dst, src)
        return forward or (backward and not self.one_way)

    def resolve(self, cluster: TargetCluster, chance: RandomSource) -> "LinkScope":
        """The scope with the names of the nodes that it hits now.

        Raises:
            FieldError: an end has no node, or both ends are the same node.
        """
        src, dst = (_resolved(end, cluster, chance) for end in (self.src, self.dst))
        _require_nodes("src", self.src, src)
        _require_nodes("dst", self.dst, dst)
        return LinkScope(src, dst, self.one_way)

    def targets(self) -> tuple[tuple[str, Target], ...]:
        """(field, target) of all targets."""
        return (("src", target(self.src)), ("dst", target(self.dst)))

    def describe(self) -> str:
        """The links as text: `consumer-1 -> broker-b`, `consumer-1 <-> broker-b`, or `all links`."""
        if self.src == self.dst == ANY:
            return "all links"
        return f"{self.src} {'->' if self.one_way else '<->'} {self.dst}"

    @classmethod
    def described(cls, text: str, parameters: Mapping[str, Any]) -> Self:  # noqa: ARG003 - one signature for all
        """The scope that `describe` described, of nodes by name."""
        if text == "all links":
            return cls(ANY, ANY)
        src, arrow, dst = text.partition(" <-> ") if " <-> " in text else text.partition(" -> ")
        return cls(src, dst or ANY, one_way=arrow == " -> ")


class Shape(StrEnum):
    """The shape of a partition; the names are those of OpenMessaging-Chaos and Jepsen."""

    ISOLATE = "isolate"
    """Some nodes are isolated from the rest, but not from each other."""
    RING = "majorities-ring"
    """Each node sees its neighbours on a ring; all see a majority, no two see the same one."""
    BRIDGE = "bridge"
    """Two halves do not see each other; the node between them sees all."""


_FEWEST = {Shape.ISOLATE: 2, Shape.RING: 4, Shape.BRIDGE: 3}


def _shape(value: object) -> Shape:
    try:
        return Shape(value)  # type: ignore[arg-type]
    except ValueError:
        raise FieldError("shape", f"expected one of {', '.join(Shape)}, not {quoted(value)}") from None


@attrs.frozen
class PartitionScope:
    """A partition of nodes; links to other nodes are not hit."""

    shape: Shape = attrs.field(converter=_shape)
    """Which nodes are cut off from which."""
    among: str = attrs.field(default="servers", validator=_is_target)
    """The nodes that are divided. A ring or a bridge keeps the order of names; otherwise the order is drawn."""
    node: str = attrs.field(default="random servers", validator=_is_target)
    """isolate: the nodes that are isolated from the rest of `among`."""

    def matches(self, src: str, dst: str) -> bool:
        """Whether a frame between two nodes is hit."""
        among = _names(self.among)
        if src not in among or dst not in among:
            return False
        if self.shape is Shape.ISOLATE:
            alone = _names(self.node)
            return (src in alone) != (dst in alone)
        item, other = among.index(src), among.index(dst)
        if self.shape is Shape.RING:
            apart = abs(item - other)
            return min(apart, len(among) - apart) > _neighbours(len(among))
        middle = len(among) // 2
        return (item - middle) * (other - middle) < 0

    def resolve(self, cluster: TargetCluster, chance: RandomSource) -> "PartitionScope":
        """The scope with the names of the nodes that it hits now.

        Raises:
            FieldError: there are too few nodes for it.
        """
        among = list(target(self.among).find(cluster, chance))
        among = list(cluster.pool("nodes")) if among == [ANY] else among
        if len(among) < _FEWEST[self.shape]:
            raise FieldError(
                "among", f"expected {_FEWEST[self.shape]} nodes at least for {self.shape}: {shown(self.among)}"
            )
        if self.shape is not Shape.ISOLATE:
            if not isinstance(target(self.among), Names):
                chance.shuffle(among)
            return PartitionScope(self.shape, ", ".join(among))
        alone = [name for name in target(self.node).find(_Within(cluster, tuple(among)), chance) if name in among]
        if len(alone) == len(among):
            alone.pop()  # one node must be left from which the others are isolated
        _require_nodes("node", self.node, ", ".join(alone))
        return PartitionScope(self.shape, ", ".join(among), ", ".join(alone))

    def targets(self) -> tuple[tuple[str, Target], ...]:
        """(field, target) of all targets."""
        return (("among", target(self.among)), ("node", target(self.node)))

    def describe(self) -> str:
        """The partition as text: `isolate broker-a among broker-a, broker-b`."""
        alone = f" {self.node}" if self.shape is Shape.ISOLATE else ""
        return f"{self.shape}{alone} among {self.among}"

    @classmethod
    def described(cls, text: str, parameters: Mapping[str, Any]) -> Self:
        """The scope that `describe` described, of nodes by name."""
        head, _, among = text.partition(" among ")
        shape = Shape(parameters.get("shape", head.split()[0]))
        return cls(shape, among, head.removeprefix(shape).strip() or "random servers")


def _neighbours(nodes: int) -> int:
    """Number of neighbours on either side that form a majority with the node between them."""
    majority = nodes // 2 + 1
    return majority // 2


@attrs.frozen
class _Within:
    """A cluster whose pools contain only the divided nodes."""

    cluster: TargetCluster
    among: tuple[str, ...]

    def pool(self, pool: str) -> tuple[str, ...]:
        return tuple(name for name in self.cluster.pool(pool) if name in self.among)

    def leads(self, lead: Lead, of: str) -> tuple[str, ...]:
        return self.cluster.leads(lead, of)


__all__ = ["ANY", "FieldError", "LinkScope", "NodeScope", "PartitionScope", "Shape"]
