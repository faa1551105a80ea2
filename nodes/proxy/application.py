"""The calls of a proxy: which part answers each, and what becomes of errors.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication`.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from nodes.broker.tables.auth.errors import AuthError
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.headers_proxy import CallMetadataHeader, GrpcErrorHeader
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_header
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import TelemetryCommand, encode_message
from nodes.proxy.ack_message_activity import AckMessageActivity
from nodes.proxy.auth_pipelines import RequestPipeline
from nodes.proxy.call_pools import CallPools
from nodes.proxy.client_activity import CallEndsError, ClientActivity
from nodes.proxy.receive_message_activity import ReceiveMessageActivity
from nodes.proxy.route_activity import RouteActivity
from nodes.proxy.send_message_activity import SendMessageActivity
from nodes.proxy.tables.context import ProxyContext
from nodes.proxy.tables.errors import CallError
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success

_SERVED = (Code.OK, Code.MULTIPLE_RESULTS, Code.MESSAGE_NOT_FOUND)
"""A call that finds no message is served, too."""
UNAVAILABLE = 14
"""The status of gRPC for a server that ends."""
_Method = Callable[[ProxyContext, Any], Awaitable[Any]]


class GrpcMessagingApplication:
    """The methods of `MessagingService`; each call runs in a task of its own."""

    def __init__(
        self,
        host: Host,
        pipeline: RequestPipeline,
        pools: CallPools,
        routes: RouteActivity,
        clients: ClientActivity,
        senders: SendMessageActivity,
        receivers: ReceiveMessageActivity,
        settlers: AckMessageActivity,
    ) -> None:
        self._host = host
        self._pipeline = pipeline
        self._pools = pools
        self._clients = clients
        self._methods: dict[RequestCode, _Method] = {
            RequestCode.V2_QUERY_ROUTE: routes.query_route,
            RequestCode.V2_QUERY_ASSIGNMENT: routes.query_assignment,
            RequestCode.V2_HEARTBEAT: clients.heartbeat,
            RequestCode.V2_NOTIFY_CLIENT_TERMINATION: clients.notify_client_termination,
            RequestCode.V2_SEND_MESSAGE: senders.send_message,
            RequestCode.V2_RECALL_MESSAGE: senders.recall_message,
            RequestCode.V2_END_TRANSACTION: senders.end_transaction,
            RequestCode.V2_RECEIVE_MESSAGE: receivers.receive_message,
            RequestCode.V2_ACK_MESSAGE: settlers.ack_message,
            RequestCode.V2_CHANGE_INVISIBLE_DURATION: settlers.change_invisible_duration,
            RequestCode.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE: settlers.forward_message_to_dead_letter_queue,
        }

    def handlers(self) -> Handlers:
        """The handlers of all calls."""
        methods = {code: InTask(partial(self._call, code, method)) for code, method in self._methods.items()}
        return {**methods, RequestCode.V2_TELEMETRY: InTask(self._telemetry)}

    async def _call(self, code: RequestCode, method: _Method, channel: Channel, request: Command) -> Command:
        exchange = EXCHANGES[code]
        assert exchange.request_body is not None
        assert exchange.response_body is not None
        sent: Any = decode_body(exchange.request_body, request.body)
        try:
            context = await self._checked(channel, code, request, sent)
            response = await self._pools.run(code, partial(method, context, sent))
        except CallError as error:
            response = exchange.response_body(error.status)
        return _answer(request, response)

    async def _telemetry(self, channel: Channel, request: Command) -> Command | None:
        command = decode_body(TelemetryCommand, request.body)
        try:
            context = await self._checked(channel, RequestCode.V2_TELEMETRY, request, command)
            telemetry = partial(self._clients.telemetry, context, command, channel)
            answer = await self._pools.run(RequestCode.V2_TELEMETRY, telemetry)
        except CallError as error:
            answer = TelemetryCommand(error.status)
        except CallEndsError as error:
            return grpc_error(request, error.grpc_status, str(error))
        return None if answer is None else success(request, body=answer)

    async def _checked(self, channel: Channel, code: RequestCode, request: Command, sent: Any) -> ProxyContext:
        """The context of a call that is allowed.

        Raises:
            CallError: it is not, or it has no client id.
        """
        metadata = decode_header(CallMetadataHeader, request.ext_fields)
        try:
            await self._pipeline.check_call(channel, code, metadata, sent)
        except AuthError as error:
            # The code is this one whichever check refuses a call.
            raise CallError(Code.UNAUTHORIZED, str(error)) from error
        if not (metadata.client_id or "").strip():
            raise CallError(Code.CLIENT_ID_REQUIRED, "client id cannot be empty")
        return ProxyContext.of(metadata, channel.remote_address)


def _answer(request: Command, response: Any) -> Command:
    """The answer of a call; one that is refused has the code and the message of its status, as the trace shows it."""
    status: Status = response.status
    if status.code in _SERVED:
        return request.answer(0, None, NO_FIELDS, encode_message(response))
    return request.answer(int(status.code), status.message, body=encode_message(response))


def grpc_error(request: Command, grpc_status: int, description: str) -> Command:
    """The answer of a call that fails as a call of gRPC."""
    return request.answer(ResponseCode.GRPC_ERROR, description, encode_header(GrpcErrorHeader(grpc_status)))
