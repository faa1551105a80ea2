"""Requests for the route of a topic, of which a client may want one zone alone.

Mirrors:
    `org.apache.rocketmq.namesrv.processor.ClientRequestProcessor`.
"""

import attrs

from nodes.config import NameserverConfig
from nodes.nameserver.tables.kv_config import KvConfigManager
from nodes.nameserver.tables.route_table import RouteTable
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.headers import GetRouteInfoRequestHeader
from nodes.protocol.model import MASTER_ID, BrokerData, TopicRouteData
from nodes.protocol.names import ORDER_TOPIC_CONFIG
from nodes.protocol.registry import decode_header, encode_body

_FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


class RouteRequests:
    """Answers GET_ROUTEINFO_BY_TOPIC (105); encoded routes are cached until a route may have changed."""

    def __init__(
        self, routes: RouteTable, kv_config: KvConfigManager, config: NameserverConfig, *, started_ms: int
    ) -> None:
        self._routes = routes
        self._kv_config = kv_config
        self.config = config
        self._ready_ms = started_ms + config.wait_seconds_for_service * 1_000 if config.need_wait_for_service else 0
        self._bodies: dict[str, tuple[int, bytes | None]] = {}

    def answer(self, request: Command, now_ms: int) -> Command:
        """Answer a request; refuse it while the nameserver waits for brokers to register."""
        if now_ms < self._ready_ms:
            return request.answer(ResponseCode.SYSTEM_ERROR, "name server not ready")
        header = decode_header(GetRouteInfoRequestHeader, request.ext_fields)
        body = self._zone_body(header) if header.zone_mode and header.zone_name else self._body(header.topic)
        if body is None:
            remark = f"No topic route info in name server for the topic: {header.topic}{_FAQ}"
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, remark)
        return request.answer(ResponseCode.SUCCESS, None, NO_FIELDS, body)

    def _body(self, topic: str) -> bytes | None:
        revision, body = self._bodies.get(topic, (-1, None))
        if revision != self._routes.revision:
            route = self._route(topic)
            body = None if route is None else encode_body(route)
            self._bodies[topic] = (self._routes.revision, body)
        return body

    def _zone_body(self, header: GetRouteInfoRequestHeader) -> bytes | None:
        route = self._route(header.topic)
        return None if route is None else encode_body(filter_by_zone(route, header.zone_name or ""))

    def _route(self, topic: str) -> TopicRouteData | None:
        ordered = self.config.order_message_enable
        return self._routes.pick_up_topic_route(
            topic, self._kv_config.get(ORDER_TOPIC_CONFIG, topic) if ordered else None
        )


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
