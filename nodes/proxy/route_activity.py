"""Which queues a topic has, and which brokers a consumer receives from.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.route.RouteActivity`.
"""

import attrs

from nodes.config.proxy import ProxyConfig
from nodes.protocol.v2.definition import Endpoints
from nodes.protocol.v2.service import (
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    QueryRouteRequest,
    QueryRouteResponse,
)
from nodes.proxy.metadata_service import MetadataService
from nodes.proxy.tables.context import ProxyContext
from nodes.proxy.tables.errors import OK
from nodes.proxy.tables.route_view import assignments, message_queues
from nodes.proxy.tables.validation import validate_consumer_group, validate_topic
from nodes.proxy.topic_route_service import TopicRouteService


class RouteActivity:
    """Answers QueryRoute and QueryAssignment; other consumers of the group make no difference."""

    def __init__(self, config: ProxyConfig, routes: TopicRouteService, metadata: MetadataService) -> None:
        self._config = config
        self._routes = routes
        self._metadata = metadata

    async def query_route(self, _context: ProxyContext, request: QueryRouteRequest) -> QueryRouteResponse:
        """The queues of a topic.

        Raises:
            CallError: the topic is illegal or unknown, or its route could not be loaded.
        """
        validate_topic(request.topic)
        endpoints = self._endpoints(request.endpoints)
        route = await self._routes.route(request.topic.name)
        kind = await self._metadata.topic_message_type(request.topic.name)
        return QueryRouteResponse(OK, message_queues(route, request.topic, kind, endpoints))

    async def query_assignment(
        self, _context: ProxyContext, request: QueryAssignmentRequest
    ) -> QueryAssignmentResponse:
        """The brokers of a topic, or its queues for an orderly group.

        Raises:
            CallError: as of `query_route`; or a broker has no master, or nothing can be read.
        """
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        endpoints = self._endpoints(request.endpoints)
        route = await self._routes.route(request.topic.name)
        group = await self._metadata.subscription_group_config(request.group.name)
        is_orderly = group is not None and group.consume_message_orderly
        return QueryAssignmentResponse(OK, assignments(route, request.topic, endpoints, is_orderly=is_orderly))

    def _endpoints(self, requested: Endpoints) -> Endpoints:
        """The hosts of the request, with its ports or the proxy's own."""
        if self._config.use_endpoint_port_from_request:
            return requested
        port = self._config.grpc_server_port
        return attrs.evolve(requested, addresses=tuple(attrs.evolve(each, port=port) for each in requested.addresses))
