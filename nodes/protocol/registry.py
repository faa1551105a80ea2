"""One table: request code -> what its header and body are, and what its answer carries."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, headers, headers_message, model
from nodes.protocol.body_codec import decode_body, decode_body_cached, encode_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.errors import ProtocolError
from nodes.protocol.exchange import Exchange
from nodes.protocol.header_codec import decode_header, encode_header
from nodes.protocol.registry_admin import ADMIN_EXCHANGES

__all__ = [
    "EXCHANGES",
    "Exchange",
    "ProtocolError",
    "decode_body",
    "decode_body_cached",
    "decode_header",
    "encode_body",
    "encode_header",
]


_C = RequestCode
_PULL = Exchange(
    headers.PullMessageRequestHeader, None, headers.PullMessageResponseHeader, bodies.PullMessageResponseBody
)
_LISTS_TOPICS = Exchange(headers.EmptyHeader, None, headers.EmptyHeader, bodies.TopicList)

EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.SEND_MESSAGE: Exchange(headers.SendMessageRequestHeader, bytes, headers.SendMessageResponseHeader),
        _C.SEND_MESSAGE_V2: Exchange(headers.SendMessageRequestHeaderV2, bytes, headers.SendMessageResponseHeader),
        _C.SEND_BATCH_MESSAGE: Exchange(headers.SendMessageRequestHeaderV2, bytes, headers.SendMessageResponseHeader),
        _C.QUERY_MESSAGE: Exchange(
            headers_message.QueryMessageRequestHeader,
            None,
            headers_message.QueryMessageResponseHeader,
            bodies.PullMessageResponseBody,
        ),
        _C.VIEW_MESSAGE_BY_ID: Exchange(
            headers_message.ViewMessageRequestHeader, None, headers.EmptyHeader, bodies.PullMessageResponseBody
        ),
        _C.GET_EARLIEST_MSG_STORETIME: Exchange(
            headers_message.GetEarliestMsgStoretimeRequestHeader,
            None,
            headers_message.GetEarliestMsgStoretimeResponseHeader,
        ),
        _C.CHECK_TRANSACTION_STATE: Exchange(
            headers_message.CheckTransactionStateRequestHeader, bodies.PullMessageResponseBody
        ),
        _C.RESUME_CHECK_HALF_MESSAGE: Exchange(headers_message.ResumeCheckHalfMessageRequestHeader),
        _C.PULL_MESSAGE: _PULL,
        _C.LITE_PULL_MESSAGE: _PULL,
        _C.QUERY_CONSUMER_OFFSET: Exchange(
            headers.QueryConsumerOffsetRequestHeader, None, headers.OffsetResponseHeader
        ),
        _C.UPDATE_CONSUMER_OFFSET: Exchange(headers.UpdateConsumerOffsetRequestHeader),
        _C.SEARCH_OFFSET_BY_TIMESTAMP: Exchange(headers.SearchOffsetRequestHeader, None, headers.OffsetResponseHeader),
        _C.GET_MAX_OFFSET: Exchange(headers.GetMaxOffsetRequestHeader, None, headers.OffsetResponseHeader),
        _C.GET_MIN_OFFSET: Exchange(headers.GetMinOffsetRequestHeader, None, headers.OffsetResponseHeader),
        _C.HEART_BEAT: Exchange(headers.EmptyHeader, model.HeartbeatData, headers.HeartbeatResponseHeader),
        _C.UNREGISTER_CLIENT: Exchange(headers.UnregisterClientRequestHeader),
        _C.CONSUMER_SEND_MSG_BACK: Exchange(headers.ConsumerSendMsgBackRequestHeader),
        _C.END_TRANSACTION: Exchange(headers.EndTransactionRequestHeader),
        _C.GET_CONSUMER_LIST_BY_GROUP: Exchange(
            headers.ConsumerGroupRequestHeader,
            None,
            headers.EmptyHeader,
            bodies.GetConsumerListByGroupResponseBody,
        ),
        _C.NOTIFY_CONSUMER_IDS_CHANGED: Exchange(headers.ConsumerGroupRequestHeader),
        _C.LOCK_BATCH_MQ: Exchange(
            headers.EmptyHeader, bodies.LockBatchRequestBody, headers.EmptyHeader, bodies.LockBatchResponseBody
        ),
        _C.UNLOCK_BATCH_MQ: Exchange(headers.EmptyHeader, bodies.LockBatchRequestBody),
        _C.GET_ALL_TOPIC_CONFIG: Exchange(response_body=bodies.TopicConfigSerializeWrapper),
        _C.GET_ALL_CONSUMER_OFFSET: Exchange(response_body=bodies.ConsumerOffsetSerializeWrapper),
        _C.GET_ALL_DELAY_OFFSET: Exchange(response_body=bodies.DelayOffsetSerializeWrapper),
        _C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Exchange(response_body=bodies.SubscriptionGroupTable),
        _C.GET_TIMER_CHECK_POINT: Exchange(response_body=bytes),
        _C.QUERY_ASSIGNMENT: Exchange(
            headers.EmptyHeader,
            bodies.QueryAssignmentRequestBody,
            headers.EmptyHeader,
            bodies.QueryAssignmentResponseBody,
        ),
        _C.SET_MESSAGE_REQUEST_MODE: Exchange(headers.EmptyHeader, bodies.SetMessageRequestModeRequestBody),
        _C.GET_ALL_MESSAGE_REQUEST_MODE: Exchange(response_body=bodies.MessageRequestModeSerializeWrapper),
        _C.CHECK_CLIENT_CONFIG: Exchange(headers.EmptyHeader, bodies.CheckClientRequestBody),
        _C.REGISTER_BROKER: Exchange(
            headers.RegisterBrokerRequestHeader,
            bodies.RegisterBrokerBody,
            headers.RegisterBrokerResponseHeader,
            bodies.KvTable,
        ),
        _C.UNREGISTER_BROKER: Exchange(headers.UnregisterBrokerRequestHeader),
        _C.GET_ROUTEINFO_BY_TOPIC: Exchange(
            headers.GetRouteInfoRequestHeader, None, headers.EmptyHeader, model.TopicRouteData
        ),
        _C.GET_BROKER_CLUSTER_INFO: Exchange(headers.EmptyHeader, None, headers.EmptyHeader, bodies.ClusterInfo),
        _C.PUT_KV_CONFIG: Exchange(headers.PutKvConfigRequestHeader),
        _C.GET_KV_CONFIG: Exchange(headers.KvConfigRequestHeader, None, headers.GetKvConfigResponseHeader),
        _C.DELETE_KV_CONFIG: Exchange(headers.KvConfigRequestHeader),
        _C.GET_KVLIST_BY_NAMESPACE: Exchange(
            headers.GetKvListByNamespaceRequestHeader, None, headers.EmptyHeader, bodies.KvTable
        ),
        _C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _LISTS_TOPICS,
        _C.GET_TOPICS_BY_CLUSTER: Exchange(
            headers.GetTopicsByClusterRequestHeader, None, headers.EmptyHeader, bodies.TopicList
        ),
        _C.GET_SYSTEM_TOPIC_LIST_FROM_NS: _LISTS_TOPICS,
        _C.GET_UNIT_TOPIC_LIST: _LISTS_TOPICS,
        _C.GET_HAS_UNIT_SUB_TOPIC_LIST: _LISTS_TOPICS,
        _C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _LISTS_TOPICS,
        _C.WIPE_WRITE_PERM_OF_BROKER: Exchange(
            headers.WritePermRequestHeader, None, headers.WipeWritePermResponseHeader
        ),
        _C.ADD_WRITE_PERM_OF_BROKER: Exchange(headers.WritePermRequestHeader, None, headers.AddWritePermResponseHeader),
        _C.DELETE_TOPIC_IN_NAMESRV: Exchange(headers.DeleteTopicFromNamesrvRequestHeader),
        _C.REGISTER_TOPIC_IN_NAMESRV: Exchange(headers.RegisterTopicRequestHeader, model.TopicRouteData),
        _C.QUERY_DATA_VERSION: Exchange(
            headers.QueryDataVersionRequestHeader,
            model.DataVersion,
            headers.QueryDataVersionResponseHeader,
            model.DataVersion,
        ),
        _C.GET_BROKER_MEMBER_GROUP: Exchange(
            headers.GetBrokerMemberGroupRequestHeader,
            None,
            headers.EmptyHeader,
            bodies.GetBrokerMemberGroupResponseBody,
        ),
        _C.BROKER_HEARTBEAT: Exchange(headers.BrokerHeartbeatRequestHeader),
        _C.NOTIFY_MIN_BROKER_ID_CHANGE: Exchange(headers.NotifyMinBrokerIdChangeRequestHeader),
        _C.EXCHANGE_BROKER_HA_INFO: Exchange(headers.ExchangeHaInfoHeader, None, headers.ExchangeHaInfoHeader),
        **ADMIN_EXCHANGES,
    }
)
"""Every request that the emulator speaks."""
