"""Request and response headers, one class per RocketMQ header class.

A field with a default of None may be absent. The other fields are always sent;
should one be missing all the same, it decodes to "", 0 or False.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.header.**`.
"""

from nodes.protocol.headers_client import (
    BoundaryType,
    ConsumerGroupRequestHeader,
    ConsumerSendMsgBackRequestHeader,
    EmptyHeader,
    EndTransactionRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    HeartbeatResponseHeader,
    OffsetResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from nodes.protocol.headers_group import (
    BrokerHeartbeatRequestHeader,
    ExchangeHaInfoHeader,
    GetBrokerMemberGroupRequestHeader,
    NotifyMinBrokerIdChangeRequestHeader,
    QueryDataVersionRequestHeader,
    QueryDataVersionResponseHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.headers_namesrv import (
    AddWritePermResponseHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetKvConfigResponseHeader,
    GetKvListByNamespaceRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
    KvConfigRequestHeader,
    PutKvConfigRequestHeader,
    RegisterTopicRequestHeader,
    WipeWritePermResponseHeader,
    WritePermRequestHeader,
)

__all__ = [
    "AddWritePermResponseHeader",
    "BoundaryType",
    "BrokerHeartbeatRequestHeader",
    "ConsumerGroupRequestHeader",
    "ConsumerSendMsgBackRequestHeader",
    "DeleteTopicFromNamesrvRequestHeader",
    "EmptyHeader",
    "EndTransactionRequestHeader",
    "ExchangeHaInfoHeader",
    "GetBrokerMemberGroupRequestHeader",
    "GetKvConfigResponseHeader",
    "GetKvListByNamespaceRequestHeader",
    "GetMaxOffsetRequestHeader",
    "GetMinOffsetRequestHeader",
    "GetRouteInfoRequestHeader",
    "GetTopicsByClusterRequestHeader",
    "HeartbeatResponseHeader",
    "KvConfigRequestHeader",
    "NotifyMinBrokerIdChangeRequestHeader",
    "OffsetResponseHeader",
    "PullMessageRequestHeader",
    "PullMessageResponseHeader",
    "PutKvConfigRequestHeader",
    "QueryConsumerOffsetRequestHeader",
    "QueryDataVersionRequestHeader",
    "QueryDataVersionResponseHeader",
    "RegisterBrokerRequestHeader",
    "RegisterBrokerResponseHeader",
    "RegisterTopicRequestHeader",
    "SearchOffsetRequestHeader",
    "SendMessageRequestHeader",
    "SendMessageRequestHeaderV2",
    "SendMessageResponseHeader",
    "UnregisterBrokerRequestHeader",
    "UnregisterClientRequestHeader",
    "UpdateConsumerOffsetRequestHeader",
    "WipeWritePermResponseHeader",
    "WritePermRequestHeader",
]
