"""Changes of a route before it is sent: acting masters, zones."""

import attrs

from nodes.protocol.model import MASTER_ID, BrokerData, TopicRouteData


def with_acting_master(data: BrokerData) -> BrokerData:
    """Present the lowest slave as id 0, if the group has no master and wants it.

    Mirrors:
        `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager#pickupTopicRouteData`.
    """
    addrs = data.broker_addrs
    if not addrs or MASTER_ID in addrs or not data.enable_acting_master:
        return data
    min_id = min(addrs)
    shown = {MASTER_ID: addrs[min_id]} | {broker_id: addr for broker_id, addr in addrs.items() if broker_id != min_id}
    return BrokerData(data.cluster, data.broker_name, shown, data.zone_name, data.enable_acting_master)


def filter_by_zone(route: TopicRouteData, zone_name: str) -> TopicRouteData:
    """Keep the groups of one zone, and groups without id 0; an acting master counts as id 0.

    A blank zone keeps all.

    Mirrors:
        `org.apache.rocketmq.namesrv.route.ZoneRouteRPCHook`.
    """
    if not zone_name.strip():
        return route
    retained: list[BrokerData] = []
    dropped: dict[str, BrokerData] = {}
    for data in route.broker_datas:
        same_zone = (data.zone_name or "").lower() == zone_name.lower()
        if MASTER_ID not in data.broker_addrs or same_zone:
            retained.append(data)
        else:
            dropped[data.broker_name] = data
    hidden = {address: None for data in dropped.values() for address in data.broker_addrs.values()}
    return attrs.evolve(
        route,
        queue_datas=tuple(data for data in route.queue_datas if data.broker_name not in dropped),
        broker_datas=tuple(retained),
        filter_server_table={
            address: servers for address, servers in route.filter_server_table.items() if address not in hidden
        },
    )
