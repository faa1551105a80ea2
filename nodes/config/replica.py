"""The options of a broker whose role is elected: by controllers, or by its group with DLedger."""

import attrs

from nodes.config.options import Config, millis, name_options, period_millis
from nodes.fields import INT_MAX, flag, whole


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ReplicaConfig(Config):
    """Options of a broker whose role controllers decide (RIP-44), or its group.

    Mirrors:
        `org.apache.rocketmq.common.BrokerConfig`, `org.apache.rocketmq.store.config.MessageStoreConfig`, as far as
        `ReplicasManager` and `AutoSwitchHAService` read them.
    """

    enable_controller_mode: bool = flag(default=False)
    """Have controllers decide which replica of the group is its master."""
    enable_d_leger_commit_log: bool = flag(default=False)
    """Have the brokers of the group elect its master by DLedger; a message is stored when a majority has it. All
    brokers of a name have this option, or none; their ids are the numbers of members, so `n0` has id 0."""
    sync_controller_metadata_period: int = period_millis(10_000)
    """Time between two searches for the leading controller."""
    sync_broker_metadata_period: int = period_millis(5_000)
    """Time between two polls of the group's master and SyncStateSet."""
    check_sync_state_set_period: int = period_millis(5_000)
    """Time between two looks of a master for members of the SyncStateSet that are behind."""
    controller_heart_beat_timeout_mills: int = millis(10_000)
    """Silence after which controllers take this broker for dead."""
    broker_election_priority: int = whole(INT_MAX, minimum=0)
    """Of replicas with equal logs the one with the lowest number is elected."""
    ha_max_time_slave_not_catchup: int = millis(15_000)
    """How long a member of the SyncStateSet may be behind."""
    all_ack_in_sync_state_set: bool = flag(default=False)
    """Acknowledge a message only when all members of the SyncStateSet have it."""
    async_learner: bool = flag(default=False)
    """Replicate, and never be a member of the SyncStateSet."""
    sync_from_last_file: bool = flag(default=False)
    """An empty log begins with the last file of the master, not with the first."""

    @property
    def is_elected(self) -> bool:
        """Whether an election decides which broker of the group is its master."""
        return self.enable_controller_mode or self.enable_d_leger_commit_log
