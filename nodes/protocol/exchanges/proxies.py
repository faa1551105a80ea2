"""Calls of RocketMQ 5 clients to a proxy, and what a proxy sends them."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from nodes.protocol.admin_request import OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, Movement, NodeRole
from nodes.protocol.headers_proxy import CallMetadataHeader, GrpcErrorHeader
from nodes.protocol.v2 import service

_call = partial(
    Exchange,
    CallMetadataHeader,
    response_header=GrpcErrorHeader,
    answered_by=NodeRole.PROXY,
    admin=OtherReason.CLIENTS,
)

PROXY_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.V2_QUERY_ROUTE: _call(service.QueryRouteRequest, response_body=service.QueryRouteResponse),
        RequestCode.V2_HEARTBEAT: _call(
            service.HeartbeatRequest, response_body=service.HeartbeatResponse, is_heartbeat=True
        ),
        RequestCode.V2_SEND_MESSAGE: _call(
            service.SendMessageRequest, response_body=service.SendMessageResponse, movement=Movement.SEND
        ),
        RequestCode.V2_QUERY_ASSIGNMENT: _call(
            service.QueryAssignmentRequest, response_body=service.QueryAssignmentResponse
        ),
        RequestCode.V2_RECEIVE_MESSAGE: _call(
            service.ReceiveMessageRequest, response_body=service.ReceiveMessageResponse, movement=Movement.RECEIVE
        ),
        RequestCode.V2_ACK_MESSAGE: _call(
            service.AckMessageRequest, response_body=service.AckMessageResponse, movement=Movement.SETTLE
        ),
        RequestCode.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE: _call(
            service.ForwardMessageToDeadLetterQueueRequest,
            response_body=service.ForwardMessageToDeadLetterQueueResponse,
            movement=Movement.RETURN,
        ),
        RequestCode.V2_END_TRANSACTION: _call(
            service.EndTransactionRequest, response_body=service.EndTransactionResponse, movement=Movement.SETTLE
        ),
        RequestCode.V2_TELEMETRY: _call(
            service.TelemetryCommand,
            response_body=service.TelemetryCommand,
            answered_by=NodeRole.PROXY | NodeRole.CLIENT,
        ),
        RequestCode.V2_NOTIFY_CLIENT_TERMINATION: _call(
            service.NotifyClientTerminationRequest, response_body=service.NotifyClientTerminationResponse
        ),
        RequestCode.V2_CHANGE_INVISIBLE_DURATION: _call(
            service.ChangeInvisibleDurationRequest,
            response_body=service.ChangeInvisibleDurationResponse,
            movement=Movement.SETTLE,
        ),
        RequestCode.V2_RECALL_MESSAGE: _call(
            service.RecallMessageRequest, response_body=service.RecallMessageResponse, movement=Movement.SETTLE
        ),
    }
)
