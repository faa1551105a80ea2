"""Waits for replicas: how many must have a message, and how long a broker waits for its HA link.

Mirrors:
    `org.apache.rocketmq.store.CommitLog#asyncPutMessage`, `#calcNeedAckNums`, `#needHandleHA`;
    `org.apache.rocketmq.store.ha.HAConnectionStateNotificationService`.
"""

from collections.abc import Iterable, Mapping

import attrs

from nodes.broker.tables.ha.ha_frames import HAConnectionState
from nodes.config import BrokerConfig, BrokerRole
from nodes.protocol.model import MASTER_ID
from nodes.protocol.properties import WAIT_STORE_MSG_OK

NOT_ENOUGH_REMARK = "in-sync replicas not enough"


def need_handle_ha(config: BrokerConfig, broker_id: int, properties: Mapping[str, str]) -> bool:
    """Whether a message waits for replicas: the broker is a SYNC_MASTER, and the message does not opt out.

    Args:
        properties: of the message; `WAIT` says whether to wait for the store; it is true by default.
    """
    is_sync_master = broker_id == MASTER_ID and config.broker_role is BrokerRole.SYNC_MASTER
    return is_sync_master and properties.get(WAIT_STORE_MSG_OK, "true").lower() == "true"


def need_ack_nums(config: BrokerConfig, in_sync: int) -> int:
    """How many replicas must have a message, the master included.

    Args:
        in_sync: how many are in sync, the master included.
    """
    if not config.enable_auto_in_sync_replicas:
        return config.in_sync_replicas
    return max(min(config.in_sync_replicas, in_sync), config.min_in_sync_replicas)


def ack_nums_to_wait_for(config: BrokerConfig, *, alive: int, linked: int) -> int | None:
    """How many replicas must have a message before the answer; without RIP-32 the live replicas do not matter.

    Args:
        alive: members of the group as last polled, this one included; `total_replicas` before that.
        linked: replicas whose HA links are within the allowed lag, this one included.

    Returns:
        None if fewer are in sync: the message is refused.
    """
    if not config.enable_slave_acting_master:
        return config.in_sync_replicas
    in_sync = min(alive, linked)
    needed = need_ack_nums(config, in_sync)
    return needed if needed <= in_sync else None


CONNECTION_ESTABLISH_TIMEOUT_MS = 10_000
STATE_CHECK_PERIOD_MS = 1_000


@attrs.define
class HaWait:
    """One wait for a link to a host to be in TRANSFER.

    Mirrors:
        `org.apache.rocketmq.store.ha.HAConnectionStateNotificationService`.
    """

    remote_ip: str
    """Compared only by a master, and without the port."""
    last_check_ms: int
    """Last check that found a connection attempt; at first, when the wait began."""
    result: bool | None = None
    """None: the wait goes on."""

    def check_client(self, state: HAConnectionState, now_ms: int) -> None:
        """Check the client of a slave; the host that it is connected to does not matter."""
        if state is HAConnectionState.TRANSFER:
            self.result = True
        elif state is HAConnectionState.READY:
            self._give_up_when_late(now_ms)
        else:
            self.last_check_ms = now_ms

    def check_connections(self, remote_ips: Iterable[str], now_ms: int) -> None:
        """Check the connections of a master, which are always in TRANSFER."""
        if self.remote_ip in remote_ips:
            self.result = True
        else:
            self._give_up_when_late(now_ms)

    def _give_up_when_late(self, now_ms: int) -> None:
        if now_ms - self.last_check_ms > CONNECTION_ESTABLISH_TIMEOUT_MS:
            self.result = False
