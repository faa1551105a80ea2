"""A route in the few words in which people and traces compare it."""

import attrs

from nodes.beliefs import Json
from nodes.protocol.model import TopicRouteData


def route_in_brief(route: TopicRouteData) -> Json:
    """A route as people compare it.

    Returns:
        Mapping brokerName -> {"queues": [read, write, perm], "addrs": mapping broker id -> address}.
    """
    addrs = {data.broker_name: data.broker_addrs for data in route.broker_datas}
    return {
        q.broker_name: {
            "queues": [q.read_queue_nums, q.write_queue_nums, int(q.perm)],
            "addrs": {str(broker_id): address for broker_id, address in addrs.get(q.broker_name, {}).items()},
        }
        for q in sorted(route.queue_datas, key=attrs.astuple)
    }
