"""What a controller of the jRaft type keeps: there the live brokers are part of the replicated state.

Its log holds requests instead of events, heartbeats and scans included, and "now" is the time in the request: that of
the leader for a heartbeat and a scan, that of the member that asks for all others.

Mirrors:
    `org.apache.rocketmq.controller.impl.manager.RaftReplicasInfoManager`.
"""

from nodes.controller.tables.heartbeats import BrokerHeartbeats, BrokerIdentity, Liveness, ReplicaLiveInfo
from nodes.controller.tables.replicas_info import ReplicasInfoManager
from nodes.controller.tables.replicated_state import ReplicatedState
from nodes.values import frozen


@frozen
class NotActiveBrokers:
    """What a scan reports."""

    brokers: tuple[BrokerIdentity, ...]
    """Who was silent for too long, and is forgotten."""
    groups: tuple[str, ...]
    """Groups that are said to need an election, without those of the brokers above."""


class RaftReplicasInfoManager(ReplicasInfoManager):
    """The operations of the jRaft type.

    Args:
        state: as of `ReplicasInfoManager`.
        enable_elect_unclean_master: as of `ReplicasInfoManager`.
    """

    def __init__(self, state: ReplicatedState, *, enable_elect_unclean_master: bool = False) -> None:
        super().__init__(state, enable_elect_unclean_master=enable_elect_unclean_master)
        self.heartbeats = BrokerHeartbeats(drops_first_confirm_offset=False)

    def check_not_active(self, now_ms: int) -> NotActiveBrokers:
        """Forget the brokers that are silent for too long, and look for groups without a master.

        The groups are looked for the wrong way round: with a master that lives, and a replica that is dead.
        """
        brokers = tuple(broker for broker, _ in self.heartbeats.evict_silent(now_ms))
        named = [broker.broker_name for broker in brokers]
        found = self.scan_need_reelect(_inverted(self.heartbeats.alive_at(now_ms)))
        return NotActiveBrokers(brokers, tuple(name for name in found if name not in named))


def _inverted(alive: Liveness) -> Liveness:
    def live_info(cluster_name: str | None, broker_name: str, broker_id: int) -> ReplicaLiveInfo | None:
        return _SOMETHING if alive(cluster_name, broker_name, broker_id) is None else None

    return live_info


_SOMETHING = ReplicaLiveInfo("", 0, 0, None, 0, 0, 0, 0)
"""Stands for a broker that counts as alive since it is dead."""
