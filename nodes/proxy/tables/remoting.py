"""What a proxy makes of requests of RocketMQ 4's clients: which broker gets them, how they change, why they fail.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.activity.AbstractRemotingActivity`, `PullMessageActivity`,
    `org.apache.rocketmq.proxy.service.route.ProxyTopicRouteData`.
"""

from collections.abc import Mapping

import attrs

from nodes.broker.tables.clients.consumers import ConsumerGroup
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import EndTransactionRequestHeader, PullMessageRequestHeader
from nodes.protocol.java import bucket_of, buckets_for
from nodes.protocol.model import MessageQueue, TopicRouteData
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.sys_flags import PullSysFlag
from nodes.protocol.v2.enums import Code
from nodes.proxy.tables.errors import (
    CallError,
    JavaExceptionError,
    ProxyExceptionError,
    TopicNotExistError,
    null_result,
)
from nodes.routes import queue_hash

REMOTING = "org.apache.rocketmq.remoting.protocol"
"""The package of requests, in texts of Java's errors."""
_HASH_BUCKETS = 16
_SHORT_NAMED = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
_CODES: Mapping[Code, ResponseCode] = {
    Code.FORBIDDEN: ResponseCode.NO_PERMISSION,
    Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE: ResponseCode.MESSAGE_ILLEGAL,
}


def response_of(error: CallError) -> tuple[int, str]:
    """The code and the remark of an answer to a request that fails."""
    match error:
        case TopicNotExistError():
            return ResponseCode.TOPIC_NOT_EXIST, str(error)
        case ProxyExceptionError():
            return _CODES.get(error.code, ResponseCode.SYSTEM_ERROR), error.message
        case JavaExceptionError():
            return ResponseCode.SYSTEM_ERROR, error.message
        case _:
            return ResponseCode.SYSTEM_ERROR, str(error)


def broker_name_of(request: Command) -> str | None:
    """The broker that a request is for; None: it names none, as those of clients before RocketMQ 5.

    Raises:
        CallError: it has no header at all.
    """
    if not request.ext_fields:
        raise null_result("java.util.HashMap.get(Object)", f"{REMOTING}.RemotingCommand.getExtFields()")
    return request.ext_fields.get("n" if request.code in _SHORT_NAMED else "bname")


def first_broker_name(queues: tuple[MessageQueue, ...]) -> str:
    """The broker of the first queue in the order of a Java hash set: all queues of a request go there."""
    buckets = buckets_for(len(queues), _HASH_BUCKETS)
    return min(queues, key=lambda queue: bucket_of(queue_hash(queue), buckets)).broker_name


def route_through(route: TopicRouteData, address: str) -> TopicRouteData:
    """The route of a topic for a client, which takes the proxy for each broker.

    Slaves have the same address, and what belongs to the topic alone is lost: its order configuration, and the mapping
    of a static topic.

    Args:
        route: as a nameserver has it.
        address: `ip:port` of the proxy.
    """
    brokers = tuple(
        attrs.evolve(
            data,
            broker_addrs=dict.fromkeys(data.broker_addrs, address),
            zone_name=None,
            enable_acting_master=False,
        )
        for data in route.broker_datas
    )
    return TopicRouteData(route.queue_datas, brokers)


def pull_header(request: Command) -> PullMessageRequestHeader:
    """The header of a pull.

    Raises:
        CallError: it has no flags: it is that of a pop, which is read as one of a pull.
        ProtocolError: it cannot be read.
    """
    if "sysFlag" not in request.ext_fields:
        raise null_result("java.lang.Integer.intValue()", f"{REMOTING}.header.PullMessageRequestHeader.getSysFlag()")
    return decode_header(PullMessageRequestHeader, request.ext_fields)


def end_transaction_header(request: Command) -> EndTransactionRequestHeader:
    """The header of the end of a transaction.

    Raises:
        CallError: it does not say how the transaction ends.
        ProtocolError: it cannot be read.
    """
    if "commitOrRollback" not in request.ext_fields:
        getter = f"{REMOTING}.header.EndTransactionRequestHeader.getCommitOrRollback()"
        raise null_result("java.lang.Integer.intValue()", getter)
    return decode_header(EndTransactionRequestHeader, request.ext_fields)


def with_subscription(
    request: Command, header: PullMessageRequestHeader, group: ConsumerGroup | None
) -> "Command | tuple[int, str]":
    """A pull with the subscription that the proxy has of its group; or why there is none, as code and remark.

    Args:
        request: the pull.
        header: its header.
        group: as the proxy knows it; None: it does not.
    """
    if header.sys_flag & PullSysFlag.SUBSCRIPTION:
        return request
    if group is None:
        return ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
    subscription = group.subscriptions.get(header.topic)
    if subscription is None:
        return ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist"
    changed = attrs.evolve(
        header,
        sys_flag=header.sys_flag | PullSysFlag.SUBSCRIPTION,
        subscription=subscription.sub_string,
        expression_type=subscription.expression_type,
    )
    return request._replace(ext_fields={**request.ext_fields, **encode_header(changed)})
