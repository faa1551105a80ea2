"""Requests that RocketMQ does not have: those to the address server."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import headers_address_server
from nodes.protocol.admin_request import OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

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
