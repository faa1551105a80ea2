"""The table of requests: request code -> its `Exchange`; and the codecs of their headers and bodies."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nodes.protocol.body_codec import decode_body, decode_body_cached, encode_body, encode_shared_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.errors import ProtocolError
from nodes.protocol.exchange import Exchange
from nodes.protocol.exchanges.admin import ADMIN_EXCHANGES
from nodes.protocol.exchanges.auth import AUTH_EXCHANGES
from nodes.protocol.exchanges.controllers import CONTROLLER_EXCHANGES
from nodes.protocol.exchanges.groups import GROUP_EXCHANGES
from nodes.protocol.exchanges.locks import LOCK_EXCHANGES
from nodes.protocol.exchanges.messages import MESSAGE_EXCHANGES
from nodes.protocol.exchanges.nameservers import ADDRESS_SERVER_EXCHANGES, NAMESERVER_EXCHANGES
from nodes.protocol.exchanges.pop import POP_EXCHANGES
from nodes.protocol.exchanges.proxies import PROXY_EXCHANGES
from nodes.protocol.exchanges.statefulset import STATEFULSET_EXCHANGES
from nodes.protocol.header_codec import decode_header, encode_header

__all__ = [
    "EXCHANGES",
    "ProtocolError",
    "codes_where",
    "decode_body",
    "decode_body_cached",
    "decode_header",
    "encode_body",
    "encode_header",
    "encode_shared_body",
]

EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        **MESSAGE_EXCHANGES,
        **GROUP_EXCHANGES,
        **NAMESERVER_EXCHANGES,
        **POP_EXCHANGES,
        **CONTROLLER_EXCHANGES,
        **ADMIN_EXCHANGES,
        **STATEFULSET_EXCHANGES,
        **LOCK_EXCHANGES,
        **ADDRESS_SERVER_EXCHANGES,
        **PROXY_EXCHANGES,
        **AUTH_EXCHANGES,
    }
)
"""All requests of the emulator."""


def codes_where(applies: Callable[[Exchange], bool]) -> frozenset[int]:
    """The codes of the requests to which something applies, as plain numbers: comparing those is cheap."""
    return frozenset(int(code) for code, exchange in EXCHANGES.items() if applies(exchange))
