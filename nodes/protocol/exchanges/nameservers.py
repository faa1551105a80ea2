"""Requests to nameservers, those between the brokers of a broker group, and those about the list of nameservers."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies, headers, headers_address_server, model
from nodes.protocol.admin_request import CHANGES_TOPIC, AdminRequest, Changed, OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

NAMESERVER_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.REGISTER_BROKER: Exchange(
            headers.RegisterBrokerRequestHeader,
            bodies.RegisterBrokerBody,
            headers.RegisterBrokerResponseHeader,
            bodies.KvTable,
            answered_by=NodeRole.NAMESERVER,
            admin=OtherReason.NODES,
            is_heartbeat=True,
            is_wide=True,
        ),
        RequestCode.UNREGISTER_BROKER: Exchange(
            headers.UnregisterBrokerRequestHeader, answered_by=NodeRole.NAMESERVER, admin=OtherReason.NODES
        ),
        RequestCode.GET_ROUTEINFO_BY_TOPIC: Exchange(
            headers.GetRouteInfoRequestHeader,
            response_body=model.TopicRouteData,
            answered_by=NodeRole.NAMESERVER | NodeRole.PROXY,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_BROKER_CLUSTER_INFO: Exchange(
            response_body=bodies.ClusterInfo, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS
        ),
        RequestCode.PUT_KV_CONFIG: Exchange(
            headers.PutKvConfigRequestHeader, answered_by=NodeRole.NAMESERVER, admin=AdminRequest((Changed.CONFIG,))
        ),
        RequestCode.GET_KV_CONFIG: Exchange(
            headers.KvConfigRequestHeader,
            response_header=headers.GetKvConfigResponseHeader,
            answered_by=NodeRole.NAMESERVER,
            admin=OtherReason.READS,
        ),
        RequestCode.DELETE_KV_CONFIG: Exchange(
            headers.KvConfigRequestHeader, answered_by=NodeRole.NAMESERVER, admin=AdminRequest((Changed.CONFIG,))
        ),
        RequestCode.GET_KVLIST_BY_NAMESPACE: Exchange(
            headers.GetKvListByNamespaceRequestHeader,
            response_body=bodies.KvTable,
            answered_by=NodeRole.NAMESERVER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: Exchange(
            response_body=bodies.TopicList, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS, is_wide=True
        ),
        RequestCode.GET_TOPICS_BY_CLUSTER: Exchange(
            headers.GetTopicsByClusterRequestHeader,
            response_body=bodies.TopicList,
            answered_by=NodeRole.NAMESERVER,
            admin=OtherReason.READS,
            is_wide=True,
        ),
        RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: Exchange(
            response_body=bodies.TopicList, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS
        ),
        RequestCode.GET_UNIT_TOPIC_LIST: Exchange(
            response_body=bodies.TopicList, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS, is_wide=True
        ),
        RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: Exchange(
            response_body=bodies.TopicList, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS, is_wide=True
        ),
        RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: Exchange(
            response_body=bodies.TopicList, answered_by=NodeRole.NAMESERVER, admin=OtherReason.READS, is_wide=True
        ),
        RequestCode.WIPE_WRITE_PERM_OF_BROKER: Exchange(
            headers.WritePermRequestHeader,
            response_header=headers.WipeWritePermResponseHeader,
            answered_by=NodeRole.NAMESERVER,
            admin=AdminRequest((Changed.PERMISSION,), broker_name="brokerName"),
        ),
        RequestCode.ADD_WRITE_PERM_OF_BROKER: Exchange(
            headers.WritePermRequestHeader,
            response_header=headers.AddWritePermResponseHeader,
            answered_by=NodeRole.NAMESERVER,
            admin=AdminRequest((Changed.PERMISSION,), broker_name="brokerName"),
        ),
        RequestCode.DELETE_TOPIC_IN_NAMESRV: Exchange(
            headers.DeleteTopicFromNamesrvRequestHeader,
            answered_by=NodeRole.NAMESERVER,
            admin=AdminRequest((Changed.TOPIC, Changed.QUEUES), topic="topic"),
        ),
        # Brokers of RocketMQ send it with the option enableSingleTopicRegister, those of the emulator never.
        RequestCode.REGISTER_TOPIC_IN_NAMESRV: Exchange(
            headers.RegisterTopicRequestHeader,
            model.TopicRouteData,
            answered_by=NodeRole.NAMESERVER,
            admin=AdminRequest(CHANGES_TOPIC, topic="topic"),
            since_5_0=True,
        ),
        RequestCode.QUERY_DATA_VERSION: Exchange(
            headers.QueryDataVersionRequestHeader,
            model.DataVersion,
            headers.QueryDataVersionResponseHeader,
            model.DataVersion,
            answered_by=NodeRole.NAMESERVER,
            admin=OtherReason.NODES,
            is_heartbeat=True,
        ),
        RequestCode.GET_BROKER_MEMBER_GROUP: Exchange(
            headers.GetBrokerMemberGroupRequestHeader,
            response_body=bodies.GetBrokerMemberGroupResponseBody,
            answered_by=NodeRole.NAMESERVER,
            admin=OtherReason.READS,
            since_5_0=True,
        ),
        RequestCode.BROKER_HEARTBEAT: Exchange(
            headers.BrokerHeartbeatRequestHeader,
            answered_by=NodeRole.NAMESERVER | NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
            is_heartbeat=True,
            since_5_0=True,
        ),
        RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE: Exchange(
            headers.NotifyMinBrokerIdChangeRequestHeader, answered_by=NodeRole.BROKER, admin=OtherReason.NODES
        ),
        RequestCode.EXCHANGE_BROKER_HA_INFO: Exchange(
            headers.ExchangeHaInfoHeader,
            response_header=headers.ExchangeHaInfoHeader,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.NODES,
        ),
    }
)


ADDRESS_SERVER_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.GET_NAMESERVER_LIST: Exchange(
            response_header=headers_address_server.NameserverListHeader,
            answered_by=NodeRole.ADDRESS_SERVER,
            admin=OtherReason.READS,
        ),
        RequestCode.PUT_NAMESERVER_LIST: Exchange(
            headers_address_server.NameserverListHeader,
            answered_by=NodeRole.ADDRESS_SERVER,
            admin=OtherReason.ADDRESS_SERVER,
        ),
    }
)
"""Requests to the address server, which RocketMQ does not have."""
