"""How long the calculation of an allocation takes in a client or a broker that is written in Java.

The times are those of 5.3.3's strategies and, of STICKY and PR2169, those of the class of pull request 2169: with 10 to
1,000 queues and 2 to 50 members, CPU time of the 11th to the 60th call of a process. A client allocates three times
a minute, so Java has compiled next to nothing of it. What RocketMQ does around a strategy counts, too: it sorts queues
and members, and puts the share into a set. `tests/studies/README.md` has the measurement.
"""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.config.allocation_time import AllocationTime
from nodes.units import NS_PER_MS
from nodes.values import frozen

_UNITS_NS: Mapping[AllocationTime, int] = MappingProxyType(
    {AllocationTime.MILLISECONDS: NS_PER_MS, AllocationTime.MICROSECONDS: 1_000}
)


@frozen
class _Measured:
    """What a part of a calculation takes, in ns."""

    once: int
    queue: int = 0
    """For each queue of the topic."""
    member: int = 0
    """For each member of the group."""
    own: int = 0
    """For each queue of the share."""
    place: int = 0
    """For each place on the ring of CONSISTENT_HASH."""
    pair: int = 0
    """For each pair of queues."""

    def ns(self, queues: int, members: int, places: int) -> int:
        """All of it."""
        pairs = queues * (queues - 1) // 2
        of_members = self.member * members + self.place * places + self.own * queues // max(1, members)
        return self.once + self.queue * queues + of_members + self.pair * pairs


_AROUND = _Measured(19_000, queue=640, member=800)
_STICKY = _Measured(32_000, queue=720, member=5_800, pair=4)
"""It makes the shares of all members together."""
_OF_A_SHARE: Mapping[str, _Measured] = MappingProxyType(
    {
        "AVG": _Measured(3_000, own=160),
        "AVG_BY_CIRCLE": _Measured(2_200, queue=100, member=10),
        "CONSISTENT_HASH": _Measured(340_000, queue=1_200, place=1_400),
    }
)
_OF_ALL_SHARES: Mapping[str, _Measured] = MappingProxyType({"STICKY": _STICKY, "PR2169": _STICKY})
"""Mapping name of a strategy -> what it takes; other strategies were not measured."""


def calculation_ns(
    counted: AllocationTime, strategy: str, queues: int, members: int, *, shares: int = 1, places_each: int = 10
) -> int:
    """How long a calculation takes, rounded down to what is counted.

    Args:
        counted: how finely.
        strategy: its name; one that was not measured takes no time.
        queues: of the topic.
        members: of the group.
        shares: of how many members the shares are made.
        places_each: of each member on the ring of CONSISTENT_HASH.
    """
    measured, unit_ns = {**_OF_A_SHARE, **_OF_ALL_SHARES}.get(strategy), _UNITS_NS.get(counted)
    if measured is None or unit_ns is None:
        return 0
    times = shares if strategy in _OF_A_SHARE else 1
    places = members * places_each
    total_ns = _AROUND.ns(queues, members, places) + times * measured.ns(queues, members, places)
    return total_ns // unit_ns * unit_ns
