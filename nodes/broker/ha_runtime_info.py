"""Replication as operators see it.

Mirrors:
    `org.apache.rocketmq.store.ha.DefaultHAService#getRuntimeInfo`.
"""

from nodes.broker.context import BrokerContext
from nodes.broker.ha_service import HaService
from nodes.protocol.bodies_admin import HAClientRuntimeInfo, HAConnectionRuntimeInfo, HARuntimeInfo
from nodes.protocol.model import MASTER_ID


def ha_runtime_info(broker: BrokerContext, ha: HaService) -> HARuntimeInfo:
    """The links of a master, or the one of a slave."""
    end = broker.store.max_commit_log_offset
    if broker.broker_id != MASTER_ID:
        client = HAClientRuntimeInfo(ha.master_address, max_offset=end, activated=ha.is_linked)
        return HARuntimeInfo(False, 0, 0, (), client)
    limit = broker.config.ha_max_gap_not_in_sync
    links = tuple(
        HAConnectionRuntimeInfo(address, ack, end - ack, end - ack < limit, 0, ack) for address, ack in ha.acks
    )
    in_sync = sum(link.in_sync for link in links)
    return HARuntimeInfo(True, end, in_sync, links, HAClientRuntimeInfo())
