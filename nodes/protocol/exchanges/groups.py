"""Requests about clients and their groups, from offsets to allocation, and for the tables that slaves copy."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, headers, model
from nodes.protocol.admin_request import AdminRequest, Changed, OtherReason, is_answered
from nodes.protocol.assigning import RebalanceSetting
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import AclNeed, Exchange, Movement, NodeRole

GROUP_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.QUERY_CONSUMER_OFFSET: Exchange(
            headers.QueryConsumerOffsetRequestHeader,
            response_header=headers.OffsetResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
        ),
        RequestCode.UPDATE_CONSUMER_OFFSET: Exchange(
            headers.UpdateConsumerOffsetRequestHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=AdminRequest((Changed.OFFSETS,), topic="topic", group="consumerGroup", is_change=is_answered),
            acl=AclNeed.SUB_BOTH,
        ),
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: Exchange(
            headers.SearchOffsetRequestHeader,
            response_header=headers.OffsetResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_MAX_OFFSET: Exchange(
            headers.GetMaxOffsetRequestHeader,
            response_header=headers.OffsetResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_MIN_OFFSET: Exchange(
            headers.GetMinOffsetRequestHeader,
            response_header=headers.OffsetResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
        ),
        RequestCode.HEART_BEAT: Exchange(
            request_body=model.HeartbeatData,
            response_header=headers.HeartbeatResponseHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SUB_ALL,
            is_heartbeat=True,
            is_wide=True,
        ),
        RequestCode.UNREGISTER_CLIENT: Exchange(
            headers.UnregisterClientRequestHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SUB_GROUP,
            is_wide=True,
        ),
        RequestCode.CONSUMER_SEND_MSG_BACK: Exchange(
            headers.ConsumerSendMsgBackRequestHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            acl=AclNeed.SUB_GROUP,
            movement=Movement.RETURN,
        ),
        RequestCode.END_TRANSACTION: Exchange(
            headers.EndTransactionRequestHeader,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
            movement=Movement.SETTLE,
        ),
        RequestCode.GET_CONSUMER_LIST_BY_GROUP: Exchange(
            headers.ConsumerGroupRequestHeader,
            response_body=bodies.GetConsumerListByGroupResponseBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
            acl=AclNeed.SUB_GROUP,
            is_wide=True,
        ),
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: Exchange(
            headers.ConsumerGroupRequestHeader, answered_by=NodeRole.CLIENT, admin=OtherReason.NODES
        ),
        RequestCode.LOCK_BATCH_MQ: Exchange(
            request_body=bodies.LockBatchRequestBody,
            response_body=bodies.LockBatchResponseBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
        ),
        RequestCode.UNLOCK_BATCH_MQ: Exchange(
            request_body=bodies.LockBatchRequestBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.CLIENTS,
        ),
        RequestCode.GET_ALL_TOPIC_CONFIG: Exchange(
            response_body=bodies.TopicConfigSerializeWrapper,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_ALL_CONSUMER_OFFSET: Exchange(
            response_body=bodies.ConsumerOffsetSerializeWrapper,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_ALL_DELAY_OFFSET: Exchange(
            response_body=bodies.DelayOffsetSerializeWrapper,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Exchange(
            response_body=bodies.SubscriptionGroupTable,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_TIMER_CHECK_POINT: Exchange(
            response_body=bytes, answered_by=NodeRole.BROKER, admin=OtherReason.READS
        ),
        RequestCode.GET_TIMER_METRICS: Exchange(
            response_body=bodies.TimerMetricsSerializeWrapper, answered_by=NodeRole.BROKER, admin=OtherReason.READS
        ),
        RequestCode.QUERY_ASSIGNMENT: Exchange(
            request_body=bodies.QueryAssignmentRequestBody,
            response_body=bodies.QueryAssignmentResponseBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.CLIENTS,
            is_wide=True,
        ),
        RequestCode.SET_MESSAGE_REQUEST_MODE: Exchange(
            request_body=bodies.SetMessageRequestModeRequestBody,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.MODE,), topic="topic", group="consumerGroup"),
        ),
        RequestCode.SET_REBALANCE_MODE: Exchange(
            request_body=RebalanceSetting,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.MODE,), group="consumerGroup"),
        ),
        RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: Exchange(
            response_body=bodies.MessageRequestModeSerializeWrapper,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.CHECK_CLIENT_CONFIG: Exchange(
            request_body=bodies.CheckClientRequestBody,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
        ),
    }
)
