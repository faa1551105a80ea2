"""Who becomes master when a group has lost its own.

Candidates are ordered by differences of 32 bits, as a Java comparator returns them. So an offset that is 2 GiB ahead
or more counts as behind, and the order of three candidates may be a circle; then it matters in which order they enter
a tree, and how it is balanced.

Mirrors:
    `org.apache.rocketmq.controller.elect.impl.DefaultElectPolicy`.
"""

from collections.abc import Callable, Iterable

from nodes.controller.tables.heartbeats import ReplicaLiveInfo
from nodes.controller.tables.tree_set import first_of_tree_set
from nodes.protocol.java import as_int, long_set

LiveInfo = Callable[[int], ReplicaLiveInfo | None]
"""Broker id -> what the broker has said; None: it is dead."""


def elect(
    in_sync: Iterable[int],
    all_replicas: Iterable[int],
    *,
    old_master: int | None,
    prefer: int | None,
    live_info: LiveInfo,
) -> int | None:
    """Elect a master among the replicas that are in sync, and only then among all.

    Args:
        in_sync: ids in the SyncStateSet.
        all_replicas: all ids if an unclean election is allowed, else nothing.
        old_master: the id that is recorded; it stays if it may.
        prefer: the id that an operator designates: it or no one.
        live_info: what is known of a replica.

    Returns:
        The id of the new master; None: no one can be.
    """
    for replicas in (in_sync, all_replicas):
        elected = _try_elect(long_set(replicas), old_master, prefer, live_info)
        if elected is not None:
            return elected
    return None


def _try_elect(
    replicas: tuple[int, ...], old_master: int | None, prefer: int | None, live_info: LiveInfo
) -> int | None:
    known = {replica: live_info(replica) for replica in replicas}
    live = {replica: info for replica, info in known.items() if info is not None}
    if old_master in live and prefer in (None, old_master):
        return old_master
    if prefer is not None:
        return prefer if prefer in live else None
    return first_of_tree_set(long_set(live), lambda item, other: _compare(live[item], live[other]))


def _compare(replica_live_info: ReplicaLiveInfo, other: ReplicaLiveInfo) -> int:
    """Below zero: `one` is the better master."""
    if replica_live_info.epoch != other.epoch:
        return as_int(other.epoch - replica_live_info.epoch)
    if replica_live_info.max_offset != other.max_offset:
        return as_int(other.max_offset - replica_live_info.max_offset)
    return as_int(replica_live_info.election_priority - other.election_priority)
