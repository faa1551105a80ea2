"""Registrations of brokers: checks of the request, decoding of the body, the answer.

Mirrors:
    `org.apache.rocketmq.namesrv.processor.DefaultRequestProcessor#registerBroker`.
"""

import zlib
from collections.abc import Hashable, Iterable

import attrs

from nodes.config import NameserverConfig
from nodes.nameserver.tables.broker_groups import MinBrokerIdChange
from nodes.nameserver.tables.kv_config import KvConfigManager
from nodes.nameserver.tables.route_table import RouteTable
from nodes.protocol.bodies import KvTable, RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import require_few_queues
from nodes.protocol.headers import RegisterBrokerRequestHeader
from nodes.protocol.model import DataVersion, QueueData, TopicConfig
from nodes.protocol.names import ORDER_TOPIC_CONFIG
from nodes.protocol.registry import ProtocolError, decode_body_cached, decode_header, encode_body, encode_header
from nodes.values import frozen

V3_0_11 = 37
"""The first version whose body contains filter servers."""
_CRC_BITS = 0x7FFFFFFF


@frozen
class RegisterOutcome:
    """The answer, and the notifications to send."""

    answer: Command
    registered: RegisterBrokerRequestHeader | None = None
    """The header of an accepted registration; None: it was refused."""
    notifications: tuple[MinBrokerIdChange, ...] = ()


def register_broker(
    routes: RouteTable,
    kv_config: KvConfigManager,
    config: NameserverConfig,
    request: Command,
    *,
    channel: Hashable,
    now_ms: int,
) -> RegisterOutcome:
    """Answer REGISTER_BROKER (103).

    A malformed body is refused; so is a compressed one, because no broker sets the flag in the header.
    """
    header = decode_header(RegisterBrokerRequestHeader, request.ext_fields)
    if not config.knows_member_groups:
        header = attrs.evolve(header, heartbeat_timeout_millis=None, enable_acting_master=None, zone_name=None)
    if header.body_crc32 and header.body_crc32 != body_crc32(request.body):
        return RegisterOutcome(request.answer(ResponseCode.SYSTEM_ERROR, "crc32 not match"))
    try:
        body = _read_body(request)
    except ProtocolError:
        return RegisterOutcome(request.answer(ResponseCode.SYSTEM_ERROR, "Failed to decode RegisterBrokerBody"))
    topics = body.topic_config_serialize_wrapper.topic_config_table.values()
    require_few_queues(max_queues(topics), config.max_queues_per_topic)
    registration = routes.register_broker(header, body, channel=channel, now_ms=now_ms)
    if registration is None:
        return RegisterOutcome(request.answer(ResponseCode.SYSTEM_ERROR, "register broker failed"))
    ordered = kv_config.list_by_namespace(ORDER_TOPIC_CONFIG) if config.return_order_topic_config_to_broker else None
    content = None if ordered is None else encode_body(KvTable(ordered))
    answer = request.answer(ResponseCode.SUCCESS, None, encode_header(registration.response), content)
    return RegisterOutcome(answer, header, registration.notifications)


def max_queues(topics: Iterable[TopicConfig | QueueData]) -> int:
    """Read queues, or write queues, of the topic that has the most."""
    return max((max(topic.read_queue_nums, topic.write_queue_nums) for topic in topics), default=0)


def body_crc32(body: bytes | None) -> int:
    """The checksum of a body, as in the header."""
    return zlib.crc32(body or b"") & _CRC_BITS


def _read_body(request: Command) -> RegisterBrokerBody:
    if request.version < V3_0_11:
        return RegisterBrokerBody(_read_wrapper(request.body), None)
    if request.body is None:
        return RegisterBrokerBody(TopicConfigSerializeWrapper({}, DataVersion()))
    body = decode_body_cached(RegisterBrokerBody, request.body)
    # On the wire a missing list is an empty one, which clears the table.
    return body if body.filter_server_list is not None else attrs.evolve(body, filter_server_list=())


def _read_wrapper(body: bytes | None) -> TopicConfigSerializeWrapper:
    if body is None:
        return TopicConfigSerializeWrapper({}, DataVersion())
    return decode_body_cached(TopicConfigSerializeWrapper, body)
