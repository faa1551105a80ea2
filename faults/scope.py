"""Which links and which nodes a fault hits."""

import attrs

ANY = "*"
"""The pattern that names every node."""


class FaultError(ValueError):
    """A fault cannot be as it was asked for."""

    def __init__(self, field: str, expected: str) -> None:
        super().__init__(f"{field}: {expected}")
        self.field = field
        """Which of its fields is wrong."""
        self.expected = expected
        """What would have been right."""


def _is_pattern(_scope: object, field: "attrs.Attribute[str]", value: object) -> None:
    if not isinstance(value, str) or not value or (ANY in value and value != ANY):
        raise FaultError(field.name, f'expected the exact name of a node or "{ANY}", not {value!r}')


def _covers(pattern: str, name: str) -> bool:
    return pattern in (ANY, name)


@attrs.frozen
class NodeScope:
    """One node, or all of them."""

    node: str = attrs.field(validator=_is_pattern)
    """Exact name, or `*`."""

    def matches(self, name: str) -> bool:
        """Whether the node of this name is hit."""
        return _covers(self.node, name)

    def overlaps(self, other: "NodeScope") -> bool:
        """Whether a node can be hit by both."""
        return _covers(self.node, other.node) or _covers(other.node, self.node)

    def describe(self) -> str:
        """For people: `broker-a`, or `all nodes`."""
        return "all nodes" if self.node == ANY else self.node


@attrs.frozen
class LinkScope:
    """The links from one node to another, in one direction or both."""

    src: str = attrs.field(validator=_is_pattern)
    """Exact name of the sender, or `*`."""
    dst: str = attrs.field(validator=_is_pattern)
    """Exact name of the receiver, or `*`."""
    one_way: bool = False
    """Only frames from `src` to `dst`; else also those from `dst` to `src`."""

    def __attrs_post_init__(self) -> None:
        if self.src == self.dst != ANY:
            raise FaultError("dst", f"expected another node than {self.src}: a node has no link to itself")

    def matches(self, src: str, dst: str) -> bool:
        """Whether a frame that travels from `src` to `dst` is hit."""
        forward = _covers(self.src, src) and _covers(self.dst, dst)
        backward = _covers(self.src, dst) and _covers(self.dst, src)
        return forward or (backward and not self.one_way)

    def describe(self) -> str:
        """For people: `consumer-1 -> broker-b`, `consumer-1 <-> broker-b`, or `all links`."""
        if self.src == self.dst:
            return "all links"
        return f"{self.src} {'->' if self.one_way else '<->'} {self.dst}"
