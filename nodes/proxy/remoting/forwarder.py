"""Requests that a proxy sends on to the broker that they name.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.activity.AbstractRemotingActivity#request`,
    `org.apache.rocketmq.proxy.processor.RequestBrokerProcessor`, `DefaultMessagingProcessor#request`.
"""

from itertools import count

from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.proxy.broker_calls import MQClientAPIFactory
from nodes.proxy.tables.errors import CallError
from nodes.proxy.tables.remoting import broker_name_of, response_of
from nodes.proxy.topic_route_service import TopicRouteService

_FIRST_ID = 1 << 30
"""Above the ids of clients: RocketMQ counts each frame that the process makes or reads, so a proxy is ahead of them."""


class RequestForwarder:
    """Sends requests to the master of a broker, over a client at random."""

    def __init__(self, routes: TopicRouteService, messaging: MQClientAPIFactory) -> None:
        self._routes = routes
        self._messaging = messaging
        self._request_ids = count(_FIRST_ID)

    async def forward(self, request: Command, timeout_ms: int) -> Command | None:
        """The answer of the broker that a request names; None: it is oneway.

        Raises:
            CallError: the request has no header.
        """
        broker_name = broker_name_of(request)
        if broker_name is None:
            return request.answer(ResponseCode.VERSION_NOT_SUPPORTED, "Request doesn't have field bname")
        return await self.forward_to(broker_name, request, timeout_ms)

    async def forward_to(self, broker_name: str, request: Command, timeout_ms: int) -> Command | None:
        """The answer of a broker; None: the request is oneway.

        A request gets an id of the proxy, and has its own again when the broker has answered. So the answer to a
        request that fails has the id of the proxy, and the client, which does not know it, waits for its time-out.
        """
        request_id = next(self._request_ids)
        try:
            address = await self._routes.master_address(broker_name)
            if request.is_oneway:
                self._messaging.forward_oneway(address, request)
                return None
            answer = await self._messaging.forward(address, request, timeout_ms=timeout_ms)
        except CallError as error:
            return request.answer(*response_of(error))._replace(opaque=request_id)
        return request.answer(answer.code, answer.remark, answer.ext_fields, answer.body)
