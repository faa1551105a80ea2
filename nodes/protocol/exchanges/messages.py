"""Requests about messages: to send, pull and query them, and to end their transactions."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, headers, headers_message
from nodes.protocol.admin_request import AdminRequest, Changed, OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import AclNeed, Exchange, Movement, NodeRole

MESSAGE_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.SEND_MESSAGE: Exchange(
            headers.SendMessageRequestHeader,
            bytes,
            headers.SendMessageResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SEND,
            movement=Movement.SEND,
        ),
        RequestCode.SEND_MESSAGE_V2: Exchange(
            headers.SendMessageRequestHeaderV2,
            bytes,
            headers.SendMessageResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SEND,
            movement=Movement.SEND,
        ),
        RequestCode.SEND_BATCH_MESSAGE: Exchange(
            headers.SendMessageRequestHeaderV2,
            bytes,
            headers.SendMessageResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SEND,
            movement=Movement.SEND,
        ),
        RequestCode.SEND_REPLY_MESSAGE: Exchange(
            headers.SendMessageRequestHeader,
            bytes,
            headers.SendMessageResponseHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.CLIENTS,
            movement=Movement.REPLY,
        ),
        RequestCode.SEND_REPLY_MESSAGE_V2: Exchange(
            headers.SendMessageRequestHeaderV2,
            bytes,
            headers.SendMessageResponseHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.CLIENTS,
            movement=Movement.REPLY,
        ),
        RequestCode.QUERY_MESSAGE: Exchange(
            headers_message.QueryMessageRequestHeader,
            response_header=headers_message.QueryMessageResponseHeader,
            response_body=bodies.PullMessageResponseBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            acl=AclNeed.SUB_TOPIC,
        ),
        RequestCode.VIEW_MESSAGE_BY_ID: Exchange(
            headers_message.ViewMessageRequestHeader,
            response_body=bodies.PullMessageResponseBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_EARLIEST_MSG_STORETIME: Exchange(
            headers_message.GetEarliestMsgStoretimeRequestHeader,
            response_header=headers_message.GetEarliestMsgStoretimeResponseHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.CHECK_TRANSACTION_STATE: Exchange(
            headers_message.CheckTransactionStateRequestHeader,
            bodies.PullMessageResponseBody,
            answered_by=NodeRole.CLIENT,
            admin=OtherReason.NODES,
            movement=Movement.SETTLE,
        ),
        RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: Exchange(
            headers_message.ReplyMessageRequestHeader,
            bytes,
            answered_by=NodeRole.CLIENT,
            admin=OtherReason.NODES,
            movement=Movement.REPLY,
        ),
        RequestCode.RECALL_MESSAGE: Exchange(
            headers_message.RecallMessageRequestHeader,
            response_header=headers_message.RecallMessageResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.PUB_TOPIC,
            movement=Movement.SETTLE,
        ),
        RequestCode.RESUME_CHECK_HALF_MESSAGE: Exchange(
            headers_message.ResumeCheckHalfMessageRequestHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.DATA,), topic="topic"),
        ),
        RequestCode.PULL_MESSAGE: Exchange(
            headers.PullMessageRequestHeader,
            response_header=headers.PullMessageResponseHeader,
            response_body=bodies.PullMessageResponseBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SUB_BOTH,
            movement=Movement.RECEIVE,
        ),
        RequestCode.LITE_PULL_MESSAGE: Exchange(
            headers.PullMessageRequestHeader,
            response_header=headers.PullMessageResponseHeader,
            response_body=bodies.PullMessageResponseBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            movement=Movement.RECEIVE,
        ),
    }
)
