"""Requests of operators and their tools."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import (
    bodies,
    bodies_admin,
    headers,
    headers_admin,
    headers_container,
    headers_message,
    model,
    static_topics,
)
from nodes.protocol.admin_request import CHANGES_GROUP, CHANGES_TOPIC, AdminRequest, Changed, OtherReason, sets_readable
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import AclNeed, AnswerDepth, Exchange, NodeRole

ADMIN_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC: Exchange(
            headers_admin.CreateTopicRequestHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest(CHANGES_TOPIC, topic="topic"),
            acl=AclNeed.ADMIN,
        ),
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: Exchange(
            request_body=bodies_admin.CreateTopicListRequestBody,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest(CHANGES_TOPIC, topic="topicName", entries="topicConfigList"),
            is_wide=True,
        ),
        RequestCode.DELETE_TOPIC_IN_BROKER: Exchange(
            headers_admin.TopicHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.TOPIC, Changed.QUEUES, Changed.OFFSETS, Changed.DATA), topic="topic"),
            acl=AclNeed.ADMIN,
        ),
        RequestCode.GET_TOPIC_CONFIG: Exchange(
            headers_admin.TopicHeader,
            response_body=static_topics.TopicConfigAndQueueMapping,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: Exchange(
            headers_admin.CreateTopicRequestHeader,
            request_body=static_topics.TopicQueueMappingDetail,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest(CHANGES_TOPIC, topic="topic"),
            acl=AclNeed.ADMIN,
        ),
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: Exchange(
            response_body=bodies.TopicList, answered_by=NodeRole.BROKER, admin=OtherReason.READS, is_wide=True
        ),
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Exchange(
            request_body=model.SubscriptionGroupConfig,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest(CHANGES_GROUP, group="groupName"),
            acl=AclNeed.ADMIN,
        ),
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Exchange(
            request_body=bodies_admin.SubscriptionGroupList,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest(CHANGES_GROUP, group="groupName", entries="groupConfigList"),
            is_wide=True,
        ),
        RequestCode.DELETE_SUBSCRIPTIONGROUP: Exchange(
            headers_admin.DeleteSubscriptionGroupRequestHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.GROUP, Changed.OFFSETS), group="groupName"),
            acl=AclNeed.ADMIN,
            is_wide=True,
        ),
        RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Exchange(
            headers_admin.GroupHeader,
            response_body=model.SubscriptionGroupConfig,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: Exchange(
            headers_admin.UpdateGroupForbiddenRequestHeader,
            response_body=bodies_admin.GroupForbidden,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.PERMISSION,), topic="topic", group="group", is_change=sets_readable),
        ),
        RequestCode.GET_TOPIC_STATS_INFO: Exchange(
            headers_admin.TopicHeader,
            response_body=bodies_admin.TopicStatsTable,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_CONSUME_STATS: Exchange(
            headers_admin.GetConsumeStatsRequestHeader,
            response_body=bodies_admin.ConsumeStats,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_BROKER_CONSUME_STATS: Exchange(
            headers_admin.GetConsumeStatsInBrokerHeader,
            response_body=bodies_admin.ConsumeStatsList,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.QUERY_CONSUME_TIME_SPAN: Exchange(
            headers_admin.GroupAndTopicHeader,
            response_body=bodies_admin.QueryConsumeTimeSpanBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: Exchange(
            headers_admin.TopicHeader,
            response_body=bodies_admin.GroupList,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.QUERY_TOPICS_BY_CONSUMER: Exchange(
            headers_admin.GroupHeader,
            response_body=bodies.TopicList,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: Exchange(
            headers_admin.GroupAndTopicHeader,
            response_body=bodies_admin.QuerySubscriptionResponseBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.QUERY_CORRECTION_OFFSET: Exchange(
            headers_admin.QueryCorrectionOffsetHeader,
            response_body=bodies_admin.QueryCorrectionOffsetBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.QUERY_CONSUME_QUEUE: Exchange(
            headers_admin.QueryConsumeQueueRequestHeader,
            response_body=bodies_admin.QueryConsumeQueueResponseBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.CLONE_GROUP_OFFSET: Exchange(
            headers_admin.CloneGroupOffsetRequestHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.OFFSETS,), topic="topic", group="destGroup"),
            is_wide=True,
        ),
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: Exchange(
            headers_message.ResetOffsetRequestHeader,
            response_body=bodies_admin.ResetOffsetBody,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.OFFSETS,), topic="topic", group="group"),
            is_wide=True,
        ),
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: Exchange(
            headers_message.ResetOffsetRequestHeader,
            bodies_admin.ResetOffsetBody,
            answered_by=NodeRole.CLIENT,
            admin=OtherReason.NODES,
        ),
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Exchange(
            headers_message.GetConsumerStatusRequestHeader,
            response_body=bodies_admin.GetConsumerStatusBody,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: Exchange(
            headers_message.GetConsumerStatusRequestHeader,
            response_body=bodies_admin.GetConsumerStatusBody,
            answered_by=NodeRole.CLIENT,
            admin=OtherReason.READS,
        ),
        # The answers of clients to these two are JSON, passed on unread.
        RequestCode.GET_CONSUMER_RUNNING_INFO: Exchange(
            headers_message.GetConsumerRunningInfoRequestHeader,
            response_body=bytes,
            answered_by=NodeRole.BROKER | NodeRole.CLIENT,
            admin=OtherReason.READS,
        ),
        RequestCode.CONSUME_MESSAGE_DIRECTLY: Exchange(
            headers_message.ConsumeMessageDirectlyResultRequestHeader,
            bodies.PullMessageResponseBody,
            response_body=bytes,
            answered_by=NodeRole.BROKER | NodeRole.CLIENT,
            admin=OtherReason.CONSUMES,
        ),
        RequestCode.GET_CONSUMER_CONNECTION_LIST: Exchange(
            headers.ConsumerGroupRequestHeader,
            response_body=bodies_admin.ConsumerConnection,
            answered_by=NodeRole.BROKER | NodeRole.PROXY,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_PRODUCER_CONNECTION_LIST: Exchange(
            headers_admin.ProducerGroupHeader,
            response_body=bodies_admin.ProducerConnection,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_ALL_PRODUCER_INFO: Exchange(
            response_body=bodies_admin.ProducerTableInfo,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_BROKER_RUNTIME_INFO: Exchange(
            response_body=bodies.KvTable, answered_by=NodeRole.BROKER, admin=OtherReason.READS
        ),
        # Lines of `name=value`.
        RequestCode.GET_BROKER_CONFIG: Exchange(
            response_header=headers_admin.GetBrokerConfigResponseHeader,
            response_body=bytes,
            answered_by=NodeRole.BROKER | NodeRole.CONTAINER,
            admin=OtherReason.READS,
            answers_lines=True,
        ),
        RequestCode.UPDATE_BROKER_CONFIG: Exchange(
            request_body=bytes,
            answered_by=NodeRole.BROKER | NodeRole.CONTAINER,
            admin=AdminRequest((Changed.CONFIG, Changed.PERMISSION)),
            acl=AclNeed.ADMIN,
        ),
        RequestCode.GET_NAMESRV_CONFIG: Exchange(
            response_body=bytes, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS, answers_lines=True
        ),
        RequestCode.UPDATE_NAMESRV_CONFIG: Exchange(
            request_body=bytes, answered_by=NodeRole.NAMESERVER, admin=AdminRequest((Changed.CONFIG,))
        ),
        RequestCode.VIEW_BROKER_STATS_DATA: Exchange(
            headers_admin.ViewBrokerStatsDataRequestHeader,
            response_body=bodies_admin.BrokerStatsData,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_BROKER_HA_STATUS: Exchange(
            response_body=bodies_admin.HARuntimeInfo, answered_by=NodeRole.BROKER, admin=OtherReason.READS
        ),
        RequestCode.RESET_MASTER_FLUSH_OFFSET: Exchange(
            headers_admin.ResetMasterFlushOffsetHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.DATA,)),
        ),
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: Exchange(
            answered_by=NodeRole.BROKER, admin=AdminRequest((Changed.DATA,)), depth=AnswerDepth.WITHOUT_EFFECT
        ),
        RequestCode.CLEAN_UNUSED_TOPIC: Exchange(answered_by=NodeRole.BROKER, admin=AdminRequest((Changed.DATA,))),
        RequestCode.DELETE_EXPIRED_COMMITLOG: Exchange(
            answered_by=NodeRole.BROKER, admin=AdminRequest((Changed.DATA,))
        ),
        RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG: Exchange(
            request_body=bytes,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.CONFIG,)),
            depth=AnswerDepth.WITHOUT_EFFECT,
        ),
        RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG: Exchange(
            request_body=bytes,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.CONFIG,)),
            depth=AnswerDepth.WITHOUT_EFFECT,
        ),
        RequestCode.GET_COLD_DATA_FLOW_CTR_INFO: Exchange(
            response_body=bytes,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            depth=AnswerDepth.IN_PART,
        ),
        RequestCode.SET_COMMITLOG_READ_MODE: Exchange(
            headers_admin.SetCommitLogReadModeRequestHeader,
            answered_by=NodeRole.BROKER,
            admin=AdminRequest((Changed.CONFIG,)),
            depth=AnswerDepth.WITHOUT_EFFECT,
        ),
        RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: Exchange(
            headers_admin.CheckRocksdbCqWriteProgressRequestHeader,
            response_body=bytes,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            depth=AnswerDepth.CONSTANT,
        ),
        RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON: Exchange(
            headers_admin.ExportRocksDBConfigToJsonRequestHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
            depth=AnswerDepth.WITHOUT_EFFECT,
        ),
        RequestCode.POP_ROLLBACK: Exchange(answered_by=NodeRole.BROKER, admin=AdminRequest((Changed.DATA,))),
        RequestCode.ADD_BROKER: Exchange(
            headers_container.AddBrokerRequestHeader,
            answered_by=NodeRole.CONTAINER,
            admin=AdminRequest((Changed.MEMBERSHIP,)),
        ),
        RequestCode.REMOVE_BROKER: Exchange(
            headers_container.RemoveBrokerRequestHeader,
            answered_by=NodeRole.CONTAINER,
            admin=AdminRequest((Changed.MEMBERSHIP,), broker_name="brokerName"),
        ),
    }
)
