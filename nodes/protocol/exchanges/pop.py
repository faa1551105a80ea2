"""Requests of POP."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, headers_pop
from nodes.protocol.admin_request import OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, Movement, NodeRole

POP_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.POP_MESSAGE: Exchange(
            headers_pop.PopMessageRequestHeader,
            response_header=headers_pop.PopMessageResponseHeader,
            response_body=bodies.PullMessageResponseBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            movement=Movement.RECEIVE,
        ),
        RequestCode.ACK_MESSAGE: Exchange(
            headers_pop.AckMessageRequestHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            movement=Movement.SETTLE,
        ),
        RequestCode.BATCH_ACK_MESSAGE: Exchange(
            request_body=bodies.BatchAckMessageRequestBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.CLIENTS,
            movement=Movement.SETTLE,
        ),
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME: Exchange(
            headers_pop.ChangeInvisibleTimeRequestHeader,
            response_header=headers_pop.ChangeInvisibleTimeResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            movement=Movement.SETTLE,
        ),
        RequestCode.PEEK_MESSAGE: Exchange(
            headers_pop.PeekMessageRequestHeader,
            response_header=headers_pop.PopMessageResponseHeader,
            response_body=bodies.PullMessageResponseBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            movement=Movement.LOOK,
        ),
        RequestCode.NOTIFICATION: Exchange(
            headers_pop.NotificationRequestHeader,
            response_header=headers_pop.NotificationResponseHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            movement=Movement.LOOK,
        ),
        RequestCode.POLLING_INFO: Exchange(
            headers_pop.PollingInfoRequestHeader,
            response_header=headers_pop.PollingInfoResponseHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
    }
)
