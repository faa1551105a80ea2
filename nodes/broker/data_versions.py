"""The versions of a broker's tables, as it tells the trace of them."""

from collections.abc import Callable, Mapping
from enum import StrEnum

from nodes.beliefs import Belief, BeliefKind
from nodes.host import Host
from nodes.protocol.model import DataVersion


class VersionedTable(StrEnum):
    """What other brokers copy, each with a version of its own."""

    TOPICS = "topics"
    CONSUMER_OFFSETS = "consumer_offsets"
    SUBSCRIPTION_GROUPS = "subscription_groups"
    DELAY_OFFSETS = "delay_offsets"
    TIMER_CHECK_POINT = "timer_check_point"


class DataVersionBeliefs:
    """Notices new versions.

    Args:
        versions: table -> what tells its version now; None: the broker has no such table.

    Emits:
        DATA_VERSION whenever a version is seen to have changed.
    """

    def __init__(self, host: Host, versions: Mapping[VersionedTable, Callable[[], DataVersion | None]]) -> None:
        self._host = host
        self._versions = versions
        self._believed: dict[VersionedTable, DataVersion] = {}

    def believe(self) -> None:
        """Record the versions that are new; to be called after a table may have changed."""
        for table, version_of in self._versions.items():
            version, believed = version_of(), self._believed.get(table)
            if version is not None and version is not believed and version != believed:
                self._believed[table] = version
                value = [version.state_version, version.timestamp, version.counter]
                self._host.record(Belief(BeliefKind.DATA_VERSION, table.value, value))
