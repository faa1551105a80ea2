"""The part of `nodes.protocol.registry` that operators and their tools speak."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, headers, headers_message, model
from nodes.protocol import bodies_admin as admin
from nodes.protocol import headers_admin as asked
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange

_C = RequestCode
_EMPTY = headers.EmptyHeader

ADMIN_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        _C.UPDATE_AND_CREATE_TOPIC: Exchange(asked.CreateTopicRequestHeader),
        _C.UPDATE_AND_CREATE_TOPIC_LIST: Exchange(_EMPTY, admin.CreateTopicListRequestBody),
        _C.DELETE_TOPIC_IN_BROKER: Exchange(asked.TopicHeader),
        _C.GET_TOPIC_CONFIG: Exchange(asked.TopicHeader, None, _EMPTY, model.TopicConfig),
        _C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: Exchange(response_body=bodies.TopicList),
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Exchange(_EMPTY, model.SubscriptionGroupConfig),
        _C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Exchange(_EMPTY, admin.SubscriptionGroupList),
        _C.DELETE_SUBSCRIPTIONGROUP: Exchange(asked.DeleteSubscriptionGroupRequestHeader),
        _C.GET_SUBSCRIPTIONGROUP_CONFIG: Exchange(asked.GroupHeader, None, _EMPTY, model.SubscriptionGroupConfig),
        _C.UPDATE_AND_GET_GROUP_FORBIDDEN: Exchange(
            asked.UpdateGroupForbiddenRequestHeader, None, _EMPTY, admin.GroupForbidden
        ),
        _C.GET_TOPIC_STATS_INFO: Exchange(asked.TopicHeader, None, _EMPTY, admin.TopicStatsTable),
        _C.GET_CONSUME_STATS: Exchange(asked.GetConsumeStatsRequestHeader, None, _EMPTY, admin.ConsumeStats),
        _C.GET_BROKER_CONSUME_STATS: Exchange(
            asked.GetConsumeStatsInBrokerHeader, None, _EMPTY, admin.ConsumeStatsList
        ),
        _C.QUERY_CONSUME_TIME_SPAN: Exchange(asked.GroupAndTopicHeader, None, _EMPTY, admin.QueryConsumeTimeSpanBody),
        _C.QUERY_TOPIC_CONSUME_BY_WHO: Exchange(asked.TopicHeader, None, _EMPTY, admin.GroupList),
        _C.QUERY_TOPICS_BY_CONSUMER: Exchange(asked.GroupHeader, None, _EMPTY, bodies.TopicList),
        _C.QUERY_SUBSCRIPTION_BY_CONSUMER: Exchange(
            asked.GroupAndTopicHeader, None, _EMPTY, admin.QuerySubscriptionResponseBody
        ),
        _C.QUERY_CORRECTION_OFFSET: Exchange(
            asked.QueryCorrectionOffsetHeader, None, _EMPTY, admin.QueryCorrectionOffsetBody
        ),
        _C.QUERY_CONSUME_QUEUE: Exchange(
            asked.QueryConsumeQueueRequestHeader, None, _EMPTY, admin.QueryConsumeQueueResponseBody
        ),
        _C.CLONE_GROUP_OFFSET: Exchange(asked.CloneGroupOffsetRequestHeader),
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
        # What clients answer to these two is JSON of their own making, passed on byte for byte.
        _C.GET_CONSUMER_RUNNING_INFO: Exchange(
            headers_message.GetConsumerRunningInfoRequestHeader, None, _EMPTY, bytes
        ),
        _C.CONSUME_MESSAGE_DIRECTLY: Exchange(
            headers_message.ConsumeMessageDirectlyResultRequestHeader, bodies.PullMessageResponseBody, _EMPTY, bytes
        ),
        _C.GET_CONSUMER_CONNECTION_LIST: Exchange(
            headers.ConsumerGroupRequestHeader, None, _EMPTY, admin.ConsumerConnection
        ),
        _C.GET_PRODUCER_CONNECTION_LIST: Exchange(asked.ProducerGroupHeader, None, _EMPTY, admin.ProducerConnection),
        _C.GET_ALL_PRODUCER_INFO: Exchange(response_body=admin.ProducerTableInfo),
        _C.GET_BROKER_RUNTIME_INFO: Exchange(response_body=bodies.KvTable),
        # Lines of `name=value`.
        _C.GET_BROKER_CONFIG: Exchange(_EMPTY, None, asked.GetBrokerConfigResponseHeader, bytes),
        _C.UPDATE_BROKER_CONFIG: Exchange(_EMPTY, bytes),
        _C.GET_NAMESRV_CONFIG: Exchange(_EMPTY, None, _EMPTY, bytes),
        _C.UPDATE_NAMESRV_CONFIG: Exchange(_EMPTY, bytes),
        _C.VIEW_BROKER_STATS_DATA: Exchange(
            asked.ViewBrokerStatsDataRequestHeader, None, _EMPTY, admin.BrokerStatsData
        ),
        _C.GET_BROKER_HA_STATUS: Exchange(response_body=admin.HARuntimeInfo),
        _C.GET_BROKER_EPOCH_CACHE: Exchange(),
        _C.CLEAN_EXPIRED_CONSUMEQUEUE: Exchange(),
        _C.DELETE_EXPIRED_COMMITLOG: Exchange(),
        _C.CLEAN_UNUSED_TOPIC: Exchange(),
    }
)
"""Every request of theirs that the emulator answers."""
