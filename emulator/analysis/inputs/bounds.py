"""Bounds: how long views and owners may differ after each kind of cause, from the timers of the run's options.

Every consumer of RocketMQ rebalances by itself, so after each change views
differ for a moment and queues have two owners or none. How long depends on how
the members learn of the change: by a notification within a second, else with
their next pass; after the death of an ordered consumer when its locks expire;
after a member's silence when brokers expel it.
"""

import attrs

from emulator.analysis.findings.finding import Cause
from emulator.spec import Scenario
from emulator.spec.model.scenario import ConsumerGroupSpec
from emulator.spec.refusals.changes import changes
from nodes.config import BrokerConfig, BrokerRole, ConsumerConfig
from nodes.config.client5 import PushConsumer5Config, SimpleConsumer5Config

BROKER_SCAN_MS = 10_000
"""RocketMQ's ClientHousekeepingService: brokers look for silent members this often."""
LOCK_EXPIRES_MS = 60_000
"""RocketMQ's RebalanceLockManager: rocketmq.broker.rebalance.lockMaxLiveTime."""
NAMESERVER_SCAN_MS = 5_000
"""RocketMQ's scanNotActiveBrokerInterval."""
_RPC_MS = 3_000
_CHECK_MS = 60_000
"""RocketMQ's MAX_PROCESS_TIME_LIMIT: longest time of a round of questions about half messages."""
_ELECTED_COPY_MS = 13_000
"""RocketMQ's ReplicasManager#handleSlaveSynchronize: more than 10 s since the last copy, at a look every 3 s."""
_MISSED_MS = 5_000
"""RocketMQ's scanInactiveMasterInterval: a longer one is no excuse for a group without a master."""
_LEADER_LOST_MS = 8_000
"""RocketMQ's DLedger: from the death of the leading controller until another one serves."""
_GROUP_SYNC_MS = 2_000
"""RocketMQ's syncBrokerMemberGroupPeriod, and the heartbeat before it."""
PULL_BATCH = 32
"""RocketMQ's pullBatchSize."""
PASS_MS = 1_000
"""Time for the requests of a pass: members, offsets and locks of its queues."""


@attrs.frozen
class Bounds:
    """The timers of a run from which bounds follow, in ms; the defaults are RocketMQ's."""

    wait_interval_ms: int = 20_000
    min_interval_ms: int = 1_000
    route_poll_ms: int = 30_000
    heartbeat_ms: int = 30_000
    channel_expired_ms: int = 120_000
    broker_silent_ms: int = 120_000
    """Silence after which nameservers forget a broker."""
    persist_ms: int = 5_000
    """Time between two writes of committed offsets to a broker's disk."""
    copy_ms: int = 61_000
    """Time between two copies of a slave: more than 60 s since the last one, or 10 s where masters are elected."""
    master_silent_ms: int = 15_000
    """Silence of a master after which controllers elect another one."""
    reported_ms: int = 18_000
    """From an election until a broker knows of it: a search for the leading controller, then a poll, then 3 s."""
    grace_ms: int = 20_000
    """How long a new assigner collects claims."""
    assigner_round_ms: int = 0
    """Time between two rounds of the thread of an assigner, which sees nothing in between; 0: it has none."""
    asks_ms: int = 126_000
    """Within this time a broker asks once more about a half message that it knows to be open."""
    receive_turns_ms: int = 0
    """How long a simple consumer may wait at other brokers before it asks one again: its calls take turns over all
    queues that its route lists, and each waits at one broker; 0: there is none, or only one broker."""
    replica_wait_ms: int = 0
    """How long a SYNC_MASTER that is not elected waits for slaves before it answers a sender; 0: none waits."""
    listener_threads: int = 20
    """Messages, or batches, that a consumer works on at a time; where groups differ, the fewest."""
    budget_s: float = 36.0
    """Queue-seconds with two owners or none per queue and hour that no fault explains: 1 %."""

    @property
    def round_ms(self) -> int:
        """Within a round each live member makes a pass, after one of its assigner."""
        return self.wait_interval_ms + self.min_interval_ms + self.assigner_round_ms

    def of(self, cause: Cause) -> int:
        """How long views and owners may differ after a cause, in ms."""
        round_ms = self.round_ms
        return {
            Cause.START: round_ms + self.route_poll_ms,
            Cause.NOTIFIED: self.min_interval_ms + PASS_MS + self.assigner_round_ms,
            Cause.ROUND: round_ms,
            Cause.ORDER_LOCK: LOCK_EXPIRES_MS + round_ms,
            Cause.ROUTE: self.route_poll_ms + round_ms,
            Cause.RETURNED: max(self.heartbeat_ms, self.route_poll_ms) + round_ms,
            Cause.SILENT: self.channel_expired_ms + BROKER_SCAN_MS + round_ms,
            Cause.ASSIGNER: self.grace_ms + round_ms,
            Cause.NONE: round_ms,
        }[cause]

    @property
    def group_ms(self) -> int:
        """From the silence of a broker until the members of its group and all nameservers agree, with RIP-32."""
        return self.broker_silent_ms + NAMESERVER_SCAN_MS + _GROUP_SYNC_MS

    @property
    def election_ms(self) -> int:
        """From the silence of a master until one member serves as the new one, if the leading controller dies, too."""
        return self.master_silent_ms + _MISSED_MS + _LEADER_LOST_MS + self.reported_ms

    def stall_ms(self, consume_ms: int) -> int:
        """How long a queue may stand still without a cause.

        Args:
            consume_ms: time of the listener for a message; it takes up to 32 of a pull before the next commit.
        """
        return self.round_ms + PULL_BATCH * consume_ms

    @property
    def broker_silence_ms(self) -> int:
        """From the silence of a broker until nameservers, members of its group and clients have noticed."""
        return self.broker_silent_ms + NAMESERVER_SCAN_MS + self.route_poll_ms + self.round_ms


def _listener_threads(group: ConsumerGroupSpec) -> int:
    """How many threads of a consumer call its listener; an application that receives by itself is one."""
    if isinstance(group.config5, PushConsumer5Config):
        return group.config5.consumption_thread_count
    return group.config.consume_thread_min if group.has_listener and group.config5 is None else 1


def _receive_turns_ms(scenario: Scenario, group: ConsumerGroupSpec) -> int:
    topics = [topic for topic in scenario.topics if topic.name in group.topics]
    if not isinstance(group.config5, SimpleConsumer5Config) or not topics:
        return 0
    longest = max(
        (proxy.config.grpc_client_consumer_max_long_polling_timeout_millis for proxy in scenario.proxies), default=0
    )
    elsewhere = sum(topic.queues * len(topic.brokers) for topic in topics) - min(topic.queues for topic in topics)
    return elsewhere * min(group.config5.await_duration, longest)


def _waits_for_slaves(broker: BrokerConfig) -> bool:
    is_sync_master = broker.broker_role is BrokerRole.SYNC_MASTER
    return is_sync_master and not broker.is_elected and broker.in_sync_replicas > 1


def bounds_of(scenario: Scenario) -> Bounds:
    """The bounds that follow from a scenario's options; where nodes differ, the slowest one counts."""
    later = [change.after for change in changes(scenario)]
    consumers = [group.config for group in scenario.consumers] or [ConsumerConfig()]
    consumers += [config for config in later if isinstance(config, ConsumerConfig)]
    brokers = [broker.config for broker in scenario.brokers] or [BrokerConfig()]
    brokers += [config for config in later if isinstance(config, BrokerConfig)]
    beats = all(broker.enable_slave_acting_master for broker in brokers)
    elected = all(broker.is_elected for broker in brokers)
    pinned = any(consumer.pinned_assigner for consumer in consumers)
    scans = (spec.config.scan_not_active_broker_interval for spec in scenario.all_controllers())
    scan_ms = max(scans, default=NAMESERVER_SCAN_MS)
    return Bounds(
        wait_interval_ms=max(consumer.rebalance_wait_interval_ms for consumer in consumers),
        min_interval_ms=max(consumer.rebalance_min_interval_ms for consumer in consumers),
        route_poll_ms=max(consumer.poll_name_server_interval for consumer in consumers),
        heartbeat_ms=max(consumer.heartbeat_broker_interval for consumer in consumers),
        channel_expired_ms=max(item.channel_expired_timeout for item in brokers),
        broker_silent_ms=max(item.broker_not_active_timeout_millis for item in brokers) if beats else 120_000,
        persist_ms=max(item.flush_consumer_offset_interval for item in brokers),
        copy_ms=_ELECTED_COPY_MS if elected else 61_000,
        master_silent_ms=max(item.controller_heart_beat_timeout_mills for item in brokers) + scan_ms,
        reported_ms=max(item.sync_controller_metadata_period + item.sync_broker_metadata_period for item in brokers)
        + _RPC_MS,
        grace_ms=max(item.assigner_grace_period_ms for item in brokers),
        assigner_round_ms=max(item.assigner_rebalance_interval_ms for item in brokers) if pinned else 0,
        receive_turns_ms=max((_receive_turns_ms(scenario, group) for group in scenario.consumers), default=0),
        replica_wait_ms=max((item.slave_timeout for item in brokers if _waits_for_slaves(item)), default=0),
        listener_threads=min(map(_listener_threads, scenario.consumers), default=20),
        asks_ms=max(item.transaction_time_out + 2 * item.transaction_check_interval for item in brokers) + _CHECK_MS,
    )
