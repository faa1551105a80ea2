"""Targets: the nodes that a fault hits, by name or by meaning, resolved when the fault begins.

broker-a                    one node
broker-a, broker-b          these nodes
*                           all of them
brokers                     all of a role: nameservers, brokers, consumers, producers,
                            proxies, apiservers, scalers, lease-services, address-servers,
                            containers, controllers
members of GROUP            the consumers of a group
minor brokers               fewer than half of them, drawn when the fault begins
major brokers               more than half
random members of GROUP     one of them, several, or all
one of consumers            any one of them
master of broker-a          its member with id 0; in controller mode the living one that was elected last
slaves of broker-a          its other members
leader of controllers       the controller that leads, and serves
acting master of broker-a   its acting master now: of its running members, the one with the lowest id
owner of orders/broker-a/3  the consumer that owns the queue now; `... of GROUP` if several groups consume it
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

import attrs

from nodes.fields import FieldError, quoted

ANY = "*"
"""The pattern that names every node."""
CONTROLLERS = "controllers"
ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "nodes": (
            *("nameserver", "container", "broker", "consumer", "producer"),
            *("apiserver", "scaler", "lease-service", "address-server", "proxy"),
        ),
        "servers": ("nameserver", "broker"),
        "nameservers": ("nameserver",),
        "brokers": ("broker",),
        "proxies": ("proxy",),
        "consumers": ("consumer",),
        "producers": ("producer",),
        "apiservers": ("apiserver",),
        "scalers": ("scaler",),
        "lease-services": ("lease-service",),
        "address-servers": ("address-server",),
        CONTROLLERS: ("controller",),
        "containers": ("container",),
    }
)
"""Pool -> the roles of its nodes."""
_MEMBERS = "members of "


class PoolShare(StrEnum):
    """The share of a pool that is hit."""

    MINOR = "minor"
    """A minority: the most that leave a majority, but at least one."""
    MAJOR = "major"
    """The smallest majority."""
    RANDOM = "random"
    """A random number, from one to all."""
    ONE = "one of"
    """One; written `one of consumers`."""


class Lead(StrEnum):
    """A role within a broker group, among controllers, or among the consumers of a queue."""

    MASTER = "master"
    SLAVES = "slaves"
    ACTING_MASTER = "acting master"
    OWNER = "owner"
    LEADER = "leader"


class RandomSource(Protocol):
    """A random stream (`random.Random` fits)."""

    def random(self) -> float:
        """A number in [0, 1)."""

    def randrange(self, stop: int, /) -> int:
        """A whole number in [0, stop)."""

    def shuffle(self, x: list[str], /) -> None:
        """Shuffle a list in place."""


class TargetCluster(Protocol):
    """The nodes of a cluster, as targets need them."""

    def pool(self, pool: str) -> tuple[str, ...]:
        """Nodes of a pool of `ROLES`, or of `members of GROUP`, in order; empty for an unknown pool."""

    def leads(self, lead: Lead, of: str) -> tuple[str, ...]:
        """The nodes that now have this role in a broker group, or for a queue."""


@attrs.frozen
class Names:
    """These nodes, by their exact names; `*` is all."""

    names: tuple[str, ...]

    def find(self, cluster: TargetCluster, chance: RandomSource) -> tuple[str, ...]:  # noqa: ARG002 - one signature for all
        """The names; `*` is retained, since it also matches nodes that are added later."""
        return self.names


@attrs.frozen
class NodePool:
    """All nodes of a role or a group, or a share of them."""

    pool: str
    share: PoolShare | None = None

    def find(self, cluster: TargetCluster, chance: RandomSource) -> tuple[str, ...]:
        """The nodes, in the order of the cluster."""
        members = cluster.pool(self.pool)
        if self.share is None or not members:
            return members
        drawn = list(members)
        chance.shuffle(drawn)
        chosen = drawn[: _how_many(self.share, len(members), chance)]
        return tuple(name for name in members if name in chosen)


@attrs.frozen
class Leading:
    """The nodes that have a role in a broker group or among controllers, or own a queue."""

    lead: Lead
    of: str

    def find(self, cluster: TargetCluster, chance: RandomSource) -> tuple[str, ...]:  # noqa: ARG002 - one signature for all
        """The nodes; empty if there is none."""
        return cluster.leads(self.lead, self.of)


Target = Names | NodePool | Leading


def target(text: str) -> Target:
    """Parse a target; the docstring of this module lists the forms.

    Raises:
        FieldError: the text is not a target; the field is `node`.
    """
    words = " ".join(text.split())
    for share in PoolShare:
        if words.startswith(f"{share} "):
            return NodePool(_pool(words.removeprefix(f"{share} ")), share)
    if _is_pool(words):
        return NodePool(words)
    for lead in Lead:
        head = f"{lead} of "
        if words.startswith(head) and len(words) > len(head):
            return Leading(lead, words[len(head) :])
    names = tuple(name.strip() for name in words.split(","))
    if not all(names) or any(_is_odd(name) for name in names):
        expected = (
            f'expected the exact name of a node, "{ANY}", or a target by meaning: brokers, acting master of BROKER'
        )
        raise FieldError("node", f"{expected}; not {quoted(text)}")
    return Names(names)


def _is_odd(name: str) -> bool:
    return (ANY in name and name != ANY) or bool(re.search(r"\s", name))


def _pool(text: str) -> str:
    if not _is_pool(text):
        raise FieldError("node", f"expected one of {', '.join(ROLES)}, or members of GROUP, not {quoted(text)}")
    return text


def _is_pool(text: str) -> bool:
    return text in ROLES or (text.startswith(_MEMBERS) and len(text) > len(_MEMBERS))


def _how_many(share: PoolShare, count: int, chance: RandomSource) -> int:
    match share:
        case PoolShare.MINOR:
            return max(1, (count - 1) // 2)
        case PoolShare.MAJOR:
            return count // 2 + 1
        case PoolShare.RANDOM:
            return chance.randrange(count) + 1
        case PoolShare.ONE:
            return 1


def group_of(pool: str) -> str | None:
    """The group of `members of GROUP`; None for a role."""
    return pool.removeprefix(_MEMBERS) if pool.startswith(_MEMBERS) else None


def covers(names: Sequence[str], name: str) -> bool:
    """Whether names contain a node, or `*`."""
    return name in names or ANY in names
