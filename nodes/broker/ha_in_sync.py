"""Whether a master takes a message: how many replicas have to have it, and how many are in sync.

Mirrors:
    `org.apache.rocketmq.store.CommitLog#asyncPutMessage`, `#calcNeedAckNums`, `#needHandleHA`.
"""

from collections.abc import Mapping

from nodes.config import BrokerConfig, BrokerRole
from nodes.protocol.model import MASTER_ID
from nodes.protocol.properties import WAIT_STORE_MSG_OK

NOT_ENOUGH_REMARK = "in-sync replicas not enough"


def need_handle_ha(config: BrokerConfig, broker_id: int, properties: Mapping[str, str]) -> bool:
    """Whether other replicas matter to a message: it reaches a SYNC_MASTER, and its producer does not wave it through.

    Args:
        properties: of the message; `WAIT` says whether to wait for the store, and true is what it says by not being
            there.
    """
    waits = properties.get(WAIT_STORE_MSG_OK, "true").lower() == "true"
    return waits and broker_id == MASTER_ID and config.broker_role is BrokerRole.SYNC_MASTER


def need_ack_nums(config: BrokerConfig, in_sync: int) -> int:
    """How many replicas must have a message, the master included.

    Args:
        in_sync: how many are in sync, the master included.
    """
    if not config.enable_auto_in_sync_replicas:
        return config.in_sync_replicas
    return max(min(config.in_sync_replicas, in_sync), config.min_in_sync_replicas)


def ack_nums_to_wait_for(config: BrokerConfig, *, alive: int, linked: int) -> int | None:
    """How many replicas must have a message before its sender is answered; without RIP-32 nobody looks who is there.

    Args:
        alive: members of the group as last polled, this one included; `total_replicas` before that.
        linked: replicas whose HA links lag by little, this one included.

    Returns:
        None where fewer are in sync: the message is refused.
    """
    if not config.enable_slave_acting_master:
        return config.in_sync_replicas
    in_sync = min(alive, linked)
    needed = need_ack_nums(config, in_sync)
    return needed if needed <= in_sync else None
