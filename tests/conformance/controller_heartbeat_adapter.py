"""Family heartbeat: `DefaultBrokerHeartbeatManager`.

The keys of the real table are compared field by field, so a second look at a key without a broker id fails. A
controller answers such a heartbeat with 2005 before it reaches the table.
"""

from collections import Counter

from conformance.executing import Adapter
from nodes.controller.tables.heartbeats import BrokerHeartbeats, BrokerIdentity
from nodes.protocol.headers import BrokerHeartbeatRequestHeader


class ControllerHeartbeats(Adapter):
    def __init__(self):
        self.heartbeats = BrokerHeartbeats()

    def tables(self):
        live = self.heartbeats.table
        return {"live": {shown_key(broker): shown_info(info) for broker, info in live.items()}}

    def heartbeat(
        self,
        cluster,
        name,
        addr,
        id,  # noqa: A002 - as the case calls it
        timeout,
        channel,
        epoch,
        max_offset,
        confirm_offset,
        priority,
    ):
        broker = BrokerIdentity(cluster, name, id)
        if id is None and broker in self.heartbeats.table:
            return {"error": "NullPointerException"}
        header = BrokerHeartbeatRequestHeader(
            cluster, addr, name, id, epoch, max_offset, confirm_offset, timeout, priority
        )
        self.heartbeats.on_heartbeat(broker, header, channel, now_ms=self.at_ms)
        return {}

    def scan(self):
        evicted = self.heartbeats.evict_silent(self.at_ms)
        channels = sorted(dict.fromkeys(channel for _, channel in evicted if channel is not None))
        return {"inactive": shown_reports(broker for broker, _ in evicted), "closedChannels": channels or None}

    def channel_close(self, channel):
        broker = self.heartbeats.on_channel_close(channel)
        return {"inactive": shown_reports([broker] if broker else [])}

    def query(self, cluster, name, id):  # noqa: A002 - as the case calls it
        broker = BrokerIdentity(cluster, name, id)
        if id is None and broker in self.heartbeats.table:
            return {"error": "NullPointerException"}
        active = self.heartbeats.alive_at(self.at_ms)(cluster, name, id) is not None
        return {"active": active, "known": broker in self.heartbeats.table}

    def active_brokers_num(self):
        alive = self.heartbeats.alive_at(self.at_ms)
        names = [(broker.cluster_name, broker.broker_name, broker.broker_id) for broker in self.heartbeats.table]
        groups = Counter((cluster, name) for cluster, name, broker_id in names if alive(cluster, name, broker_id))
        numbers = {}
        for (cluster, name), count in groups.items():
            numbers.setdefault(cluster, {})[name] = count
        return {"num": numbers}


def shown_info(info):
    lines = [info.epoch, info.max_offset, info.confirm_offset, info.election_priority]
    return [info.broker_addr, f"now+{info.last_update_ms}", info.timeout_ms, info.channel, *lines]


def shown_key(broker):
    broker_id = "null" if broker.broker_id is None else broker.broker_id
    return f"{broker.cluster_name}|{broker.broker_name}|{broker_id}"


def shown_reports(brokers):
    return sorted([broker.cluster_name, broker.broker_name, broker.broker_id] for broker in brokers) or None
