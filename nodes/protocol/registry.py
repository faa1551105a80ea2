"""The table of requests: request code -> classes of headers and bodies, of the request and its answer."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, dledger, headers, headers_container, headers_message, headers_pop, model
from nodes.protocol import bodies_admin as admin
from nodes.protocol import bodies_controller as replicas
from nodes.protocol import headers_admin as requested
from nodes.protocol import headers_controller as controller
from nodes.protocol import headers_statefulset as statefulset
from nodes.protocol.assigning import RebalanceSetting
from nodes.protocol.body_codec import decode_body, decode_body_cached, encode_body, encode_shared_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.errors import ProtocolError
from nodes.protocol.header_codec import decode_header, encode_header
from nodes.protocol.headers import EmptyHeader
from nodes.values import frozen

__all__ = [
    "EXCHANGES",
    "Exchange",
    "ProtocolError",
    "decode_body",
    "decode_body_cached",
    "decode_header",
    "encode_body",
    "encode_header",
    "encode_shared_body",
]


@frozen
class Exchange:
    """The four classes of a request and its answer; None: there is no body, `bytes`: the body is raw."""

    request_header: type = EmptyHeader
    request_body: type | None = None
    response_header: type = EmptyHeader
    response_body: type | None = None


_C = RequestCode
_EMPTY = headers.EmptyHeader

ADMIN_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.UPDATE_AND_CREATE_TOPIC: Exchange(requested.CreateTopicRequestHeader),
        _C.UPDATE_AND_CREATE_TOPIC_LIST: Exchange(_EMPTY, admin.CreateTopicListRequestBody),
        _C.DELETE_TOPIC_IN_BROKER: Exchange(requested.TopicHeader),
        _C.GET_TOPIC_CONFIG: Exchange(requested.TopicHeader, None, _EMPTY, model.TopicConfig),
        _C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: Exchange(response_body=bodies.TopicList),
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Exchange(_EMPTY, model.SubscriptionGroupConfig),
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Exchange(_EMPTY, admin.SubscriptionGroupList),
        _C.DELETE_SUBSCRIPTIONGROUP: Exchange(requested.DeleteSubscriptionGroupRequestHeader),
        _C.GET_SUBSCRIPTIONGROUP_CONFIG: Exchange(requested.GroupHeader, None, _EMPTY, model.SubscriptionGroupConfig),
        _C.UPDATE_AND_GET_GROUP_FORBIDDEN: Exchange(
            requested.UpdateGroupForbiddenRequestHeader, None, _EMPTY, admin.GroupForbidden
        ),
        _C.GET_TOPIC_STATS_INFO: Exchange(requested.TopicHeader, None, _EMPTY, admin.TopicStatsTable),
        _C.GET_CONSUME_STATS: Exchange(requested.GetConsumeStatsRequestHeader, None, _EMPTY, admin.ConsumeStats),
        _C.GET_BROKER_CONSUME_STATS: Exchange(
            requested.GetConsumeStatsInBrokerHeader, None, _EMPTY, admin.ConsumeStatsList
        ),
        _C.QUERY_CONSUME_TIME_SPAN: Exchange(
            requested.GroupAndTopicHeader, None, _EMPTY, admin.QueryConsumeTimeSpanBody
        ),
        _C.QUERY_TOPIC_CONSUME_BY_WHO: Exchange(requested.TopicHeader, None, _EMPTY, admin.GroupList),
        _C.QUERY_TOPICS_BY_CONSUMER: Exchange(requested.GroupHeader, None, _EMPTY, bodies.TopicList),
        _C.QUERY_SUBSCRIPTION_BY_CONSUMER: Exchange(
            requested.GroupAndTopicHeader, None, _EMPTY, admin.QuerySubscriptionResponseBody
        ),
        _C.QUERY_CORRECTION_OFFSET: Exchange(
            requested.QueryCorrectionOffsetHeader, None, _EMPTY, admin.QueryCorrectionOffsetBody
        ),
        _C.QUERY_CONSUME_QUEUE: Exchange(
            requested.QueryConsumeQueueRequestHeader, None, _EMPTY, admin.QueryConsumeQueueResponseBody
        ),
        _C.CLONE_GROUP_OFFSET: Exchange(requested.CloneGroupOffsetRequestHeader),
        _C.INVOKE_BROKER_TO_RESET_OFFSET: Exchange(
            headers_message.ResetOffsetRequestHeader, None, _EMPTY, admin.ResetOffsetBody
        ),
        _C.RESET_CONSUMER_CLIENT_OFFSET: Exchange(headers_message.ResetOffsetRequestHeader, admin.ResetOffsetBody),
        _C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Exchange(
            headers_message.GetConsumerStatusRequestHeader, None, _EMPTY, admin.GetConsumerStatusBody
        ),
        _C.GET_CONSUMER_STATUS_FROM_CLIENT: Exchange(
            headers_message.GetConsumerStatusRequestHeader, None, _EMPTY, admin.GetConsumerStatusBody
        ),
        # The answers of clients to these two are JSON, passed on unread.
        _C.GET_CONSUMER_RUNNING_INFO: Exchange(
            headers_message.GetConsumerRunningInfoRequestHeader, None, _EMPTY, bytes
        ),
        _C.CONSUME_MESSAGE_DIRECTLY: Exchange(
            headers_message.ConsumeMessageDirectlyResultRequestHeader, bodies.PullMessageResponseBody, _EMPTY, bytes
        ),
        _C.GET_CONSUMER_CONNECTION_LIST: Exchange(
            headers.ConsumerGroupRequestHeader, None, _EMPTY, admin.ConsumerConnection
        ),
        _C.GET_PRODUCER_CONNECTION_LIST: Exchange(
            requested.ProducerGroupHeader, None, _EMPTY, admin.ProducerConnection
        ),
        _C.GET_ALL_PRODUCER_INFO: Exchange(response_body=admin.ProducerTableInfo),
        _C.GET_BROKER_RUNTIME_INFO: Exchange(response_body=bodies.KvTable),
        # Lines of `name=value`.
        _C.GET_BROKER_CONFIG: Exchange(_EMPTY, None, requested.GetBrokerConfigResponseHeader, bytes),
        _C.UPDATE_BROKER_CONFIG: Exchange(_EMPTY, bytes),
        _C.GET_NAMESRV_CONFIG: Exchange(_EMPTY, None, _EMPTY, bytes),
        _C.UPDATE_NAMESRV_CONFIG: Exchange(_EMPTY, bytes),
        _C.VIEW_BROKER_STATS_DATA: Exchange(
            requested.ViewBrokerStatsDataRequestHeader, None, _EMPTY, admin.BrokerStatsData
        ),
        _C.GET_BROKER_HA_STATUS: Exchange(response_body=admin.HARuntimeInfo),
        _C.CLEAN_EXPIRED_CONSUMEQUEUE: Exchange(),
        _C.CLEAN_UNUSED_TOPIC: Exchange(),
        _C.DELETE_EXPIRED_COMMITLOG: Exchange(),
        _C.ADD_BROKER: Exchange(headers_container.AddBrokerRequestHeader),
        _C.REMOVE_BROKER: Exchange(headers_container.RemoveBrokerRequestHeader),
    }
)
"""Requests of operators and their tools."""


STATEFULSET_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.GET_SCALE: Exchange(statefulset.StatefulSetHeader, None, statefulset.ScaleHeader),
        _C.PUT_SCALE: Exchange(statefulset.PutScaleRequestHeader),
        _C.PROBE: Exchange(statefulset.ProbeRequestHeader),
        _C.REPLICAS_CHANGED: Exchange(statefulset.ScaleHeader),
        _C.ACQUIRE_LEASE: Exchange(statefulset.AcquireLeaseRequestHeader, None, statefulset.LeaseHeader),
        _C.RENEW_LEASE: Exchange(statefulset.RenewLeaseRequestHeader, None, statefulset.LeaseHeader),
        _C.RELEASE_LEASE: Exchange(statefulset.ReleaseLeaseRequestHeader),
        _C.CANCEL_CONSUMER: Exchange(statefulset.CancelConsumerRequestHeader),
    }
)
"""Requests that RocketMQ does not have."""


POP_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.POP_MESSAGE: Exchange(
            headers_pop.PopMessageRequestHeader,
            None,
            headers_pop.PopMessageResponseHeader,
            bodies.PullMessageResponseBody,
        ),
        _C.ACK_MESSAGE: Exchange(headers_pop.AckMessageRequestHeader),
        _C.BATCH_ACK_MESSAGE: Exchange(headers.EmptyHeader, bodies.BatchAckMessageRequestBody),
        _C.CHANGE_MESSAGE_INVISIBLETIME: Exchange(
            headers_pop.ChangeInvisibleTimeRequestHeader, None, headers_pop.ChangeInvisibleTimeResponseHeader
        ),
        _C.PEEK_MESSAGE: Exchange(
            headers_pop.PeekMessageRequestHeader,
            None,
            headers_pop.PopMessageResponseHeader,
            bodies.PullMessageResponseBody,
        ),
        _C.NOTIFICATION: Exchange(headers_pop.NotificationRequestHeader, None, headers_pop.NotificationResponseHeader),
        _C.POLLING_INFO: Exchange(headers_pop.PollingInfoRequestHeader, None, headers_pop.PollingInfoResponseHeader),
    }
)
"""Requests of POP."""


CONTROLLER_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.CONTROLLER_ALTER_SYNC_STATE_SET: Exchange(
            controller.AlterSyncStateSetRequestHeader,
            replicas.SyncStateSet,
            controller.AlterSyncStateSetResponseHeader,
            replicas.SyncStateSet,
        ),
        _C.CONTROLLER_ELECT_MASTER: Exchange(
            controller.ElectMasterRequestHeader,
            None,
            controller.ElectMasterResponseHeader,
            replicas.ElectMasterResponseBody,
        ),
        _C.CONTROLLER_REGISTER_BROKER: Exchange(
            controller.RegisterBrokerToControllerRequestHeader,
            None,
            controller.RegisterBrokerToControllerResponseHeader,
            replicas.SyncStateSet,
        ),
        _C.CONTROLLER_GET_REPLICA_INFO: Exchange(
            controller.GetReplicaInfoRequestHeader,
            None,
            controller.GetReplicaInfoResponseHeader,
            replicas.SyncStateSet,
        ),
        _C.CONTROLLER_GET_METADATA_INFO: Exchange(response_header=controller.GetMetaDataResponseHeader),
        # The names of the groups that are asked for, as a bare list.
        _C.CONTROLLER_GET_SYNC_STATE_DATA: Exchange(_EMPTY, tuple[str, ...], _EMPTY, replicas.BrokerReplicasInfo),
        _C.GET_BROKER_EPOCH_CACHE: Exchange(response_body=replicas.EpochEntryCache),
        _C.NOTIFY_BROKER_ROLE_CHANGED: Exchange(controller.NotifyBrokerRoleChangedRequestHeader, replicas.SyncStateSet),
        # Lines of `name=value`.
        _C.UPDATE_CONTROLLER_CONFIG: Exchange(_EMPTY, bytes),
        _C.GET_CONTROLLER_CONFIG: Exchange(_EMPTY, None, _EMPTY, bytes),
        _C.CLEAN_BROKER_DATA: Exchange(controller.CleanControllerBrokerDataRequestHeader),
        _C.CONTROLLER_GET_NEXT_BROKER_ID: Exchange(
            controller.GetNextBrokerIdRequestHeader, None, controller.GetNextBrokerIdResponseHeader
        ),
        _C.CONTROLLER_APPLY_BROKER_ID: Exchange(
            controller.ApplyBrokerIdRequestHeader, None, controller.ApplyBrokerIdResponseHeader
        ),
        _C.DLEDGER_VOTE: Exchange(_EMPTY, dledger.VoteRequest, _EMPTY, dledger.VoteResponse),
        _C.DLEDGER_PUSH: Exchange(_EMPTY, dledger.PushRequest, _EMPTY, dledger.PushResponse),
    }
)
"""Requests to controllers and of them, and those about a broker's replicas (RIP-44)."""


_PULL = Exchange(
    headers.PullMessageRequestHeader, None, headers.PullMessageResponseHeader, bodies.PullMessageResponseBody
)
_LISTS_TOPICS = Exchange(headers.EmptyHeader, None, headers.EmptyHeader, bodies.TopicList)

EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.SEND_MESSAGE: Exchange(headers.SendMessageRequestHeader, bytes, headers.SendMessageResponseHeader),
        _C.SEND_MESSAGE_V2: Exchange(headers.SendMessageRequestHeaderV2, bytes, headers.SendMessageResponseHeader),
        _C.SEND_BATCH_MESSAGE: Exchange(headers.SendMessageRequestHeaderV2, bytes, headers.SendMessageResponseHeader),
        _C.SEND_REPLY_MESSAGE: Exchange(headers.SendMessageRequestHeader, bytes, headers.SendMessageResponseHeader),
        _C.SEND_REPLY_MESSAGE_V2: Exchange(
            headers.SendMessageRequestHeaderV2, bytes, headers.SendMessageResponseHeader
        ),
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
        _C.PUSH_REPLY_MESSAGE_TO_CLIENT: Exchange(headers_message.ReplyMessageRequestHeader, bytes),
        _C.RECALL_MESSAGE: Exchange(
            headers_message.RecallMessageRequestHeader, None, headers_message.RecallMessageResponseHeader
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
        _C.GET_TIMER_METRICS: Exchange(response_body=bodies.TimerMetricsSerializeWrapper),
        _C.QUERY_ASSIGNMENT: Exchange(
            headers.EmptyHeader,
            bodies.QueryAssignmentRequestBody,
            headers.EmptyHeader,
            bodies.QueryAssignmentResponseBody,
        ),
        _C.SET_MESSAGE_REQUEST_MODE: Exchange(headers.EmptyHeader, bodies.SetMessageRequestModeRequestBody),
        _C.SET_REBALANCE_MODE: Exchange(headers.EmptyHeader, RebalanceSetting),
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
        **POP_EXCHANGES,
        **CONTROLLER_EXCHANGES,
        **ADMIN_EXCHANGES,
        **STATEFULSET_EXCHANGES,
    }
)
"""All requests of the emulator."""
