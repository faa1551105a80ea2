"""What all parts of one broker share: its identity, its log, and the versions of its tables."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cached_property

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.broker.tables.store.broker_stats import BrokerStatsManager
from nodes.broker.tables.store.commit_log import COMMIT_LOG_FILE
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig, FlushDiskType
from nodes.host import Host
from nodes.protocol.model import DataVersion
from nodes.units import NS_PER_MS


class VersionedTable(StrEnum):
    """The tables that other brokers copy; each has its own version."""

    TOPICS = "topics"
    CONSUMER_OFFSETS = "consumer_offsets"
    SUBSCRIPTION_GROUPS = "subscription_groups"
    DELAY_OFFSETS = "delay_offsets"
    TIMER_CHECK_POINT = "timer_check_point"


_COMMITS_FOLDED_NS = 1_000_000_000
_PAGE_BYTES = 4_096
_DLEDGER_FLUSH_MS = 10
"""Time between two flushes of a DLedger log (`flushFileInterval`)."""


class DataVersionBeliefs:
    """Records changed versions.

    Emits:
        DATA_VERSION for each version that has changed.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._versions: Mapping[VersionedTable, Callable[[], DataVersion | None]] = {}
        self._believed: dict[VersionedTable, DataVersion] = {}
        self._commits_recorded_ns = -_COMMITS_FOLDED_NS

    def follow(self, versions: Mapping[VersionedTable, Callable[[], DataVersion | None]]) -> None:
        """Look at these tables from now on, in this order.

        Args:
            versions: table -> function that returns its version; None: the broker has no such table.
        """
        self._versions = versions

    def believe(self) -> None:
        """Record changed versions; to be called after a table may have changed."""
        for table, version_of in self._versions.items():
            version, believed = version_of(), self._believed.get(table)
            if version is not None and version is not believed and version != believed:
                self._believed[table] = version
                value = [version.state_version, version.timestamp, version.counter]
                self._host.record(Belief(BeliefKind.DATA_VERSION, table.value, value))

    def believe_commit(self) -> None:
        """Record changed versions after a commit, once a second at most.

        A pull commits, too, and in a pull storm some five hundred a second do. The version that is left out follows
        with a later commit, or when the offsets are persisted.
        """
        now_ns = self._host.clock.monotonic_ns()
        if now_ns - self._commits_recorded_ns >= _COMMITS_FOLDED_NS:
            self._commits_recorded_ns = now_ns
            self.believe()


class CommitLogFlush:
    """Writes to the disk what was appended to the log: with each message, or from time to time.

    RocketMQ looks every 500 ms; a look that finds nothing to write changes nothing, so it is left out. Brokers look at
    the same instants here, counted from the beginning of the run. A thread flushes a DLedger log every 10 ms, and no
    send waits for it, whatever `flush_disk_type` says.

    Mirrors:
        `org.apache.rocketmq.store.CommitLog.GroupCommitService`, `CommitLog.FlushRealTimeService`;
        `io.openmessaging.storage.dledger.store.file.DLedgerMmapFileStore.FlushDataService`.
    """

    def __init__(self, broker: "BrokerContext") -> None:
        self._broker = broker
        self._flushed_offset = 0
        self._is_waiting = False

    @property
    def wait_ms(self) -> float:
        """For how long the answer to a message that is stored now has to wait for the disk."""
        config = self._broker.config  # no property says whether it waits: each message would pay for its calls
        is_sync = config.flush_disk_type is FlushDiskType.SYNC_FLUSH and not config.enable_d_leger_commit_log
        return self._broker.host.disk.busy_ms() if is_sync else 0

    @property
    def behind_bytes(self) -> int:
        """Bytes of the log that wait for the next flush."""
        store = self._broker.store
        return store.max_commit_log_offset - self._flushed if self._is_waiting else 0

    @property
    def _flushed(self) -> int:
        return max(self._flushed_offset, self._broker.store.init_max_commit_log_offset)

    def on_appended(self) -> None:
        """Write what was appended, or see to it that it is written."""
        config = self._broker.config
        if config.flush_disk_type is FlushDiskType.SYNC_FLUSH and not config.enable_d_leger_commit_log:
            self._broker.host.disk.flush(COMMIT_LOG_FILE)
        elif not self._is_waiting:
            self._schedule()

    def finish(self) -> None:
        """Write what waits, at the end of the process."""
        if self._is_waiting:
            self._flush()

    def _schedule(self) -> None:
        config = self._broker.config
        interval_ms = _DLEDGER_FLUSH_MS if config.enable_d_leger_commit_log else config.flush_interval_commit_log
        interval_ns = interval_ms * NS_PER_MS
        delay_ns = interval_ns - self._broker.host.clock.monotonic_ns() % interval_ns
        self._is_waiting = True
        self._broker.host.call_later_ms(delay_ns / NS_PER_MS, self._look)

    def _look(self) -> None:
        """Flush if enough was appended, or if it is time to flush all."""
        config, store = self._broker.config, self._broker.store
        looks = round(self._broker.host.clock.monotonic_ns() / (config.flush_interval_commit_log * NS_PER_MS))
        is_thorough = looks % max(1, config.flush_commit_log_thorough_interval // config.flush_interval_commit_log) == 0
        pages = store.max_commit_log_offset // _PAGE_BYTES - self._flushed // _PAGE_BYTES
        if config.enable_d_leger_commit_log or is_thorough or pages >= config.flush_commit_log_least_pages:
            self._flush()
        else:
            self._schedule()

    def _flush(self) -> None:
        self._is_waiting = False
        self._broker.host.disk.flush(COMMIT_LOG_FILE)
        self._flushed_offset = self._broker.store.max_commit_log_offset


@attrs.define
class BrokerContext:
    """What all parts of a broker share: its identity, options, topics, groups and log."""

    host: Host
    config: BrokerConfig
    """Replaced when an operator changes an option."""
    cluster_name: str
    broker_name: str
    broker_id: int
    """Under which clients and nameservers know it; in controller mode it changes with the role."""
    nameservers: tuple[str, ...]
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    store: MessageStore
    is_fenced: bool = attrs.field(init=False, default=False)
    """Whether it refuses all messages, since no controller has said yet what it is."""
    stats: BrokerStatsManager = attrs.field(init=False, factory=BrokerStatsManager)
    versions: DataVersionBeliefs = attrs.field(
        init=False, default=attrs.Factory(lambda broker: DataVersionBeliefs(broker.host), takes_self=True)
    )

    @cached_property
    def flush(self) -> CommitLogFlush:
        """What writes the log to the disk."""
        return CommitLogFlush(self)

    @property
    def ip(self) -> str:
        """Its brokerIP1: the IP address at which clients and other brokers are to find it."""
        return self.config.broker_ip1 or self.host.ip

    @property
    def address(self) -> str:
        """`ip:port` for clients and other brokers, as it registers it."""
        return f"{self.ip}:{self.config.listen_port}"

    @property
    def ha_address(self) -> str:
        """`ip:port` of its HA service: one port above, as the launcher sets it."""
        return f"{self.host.ip}:{self.config.listen_port + 1}"
