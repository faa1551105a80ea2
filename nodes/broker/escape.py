"""Where a message goes that this broker may not keep, and what its sender is told.

Mirrors:
    `org.apache.rocketmq.broker.failover.EscapeBridge`.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import attrs

from nodes.broker.put_message import PutMessageStatus
from nodes.protocol.codes import ResponseCode
from nodes.protocol.java_order import java_hash
from nodes.protocol.model import Message, MessageQueue
from nodes.protocol.properties import DELAY_TIME_LEVEL, PRODUCER_GROUP, WAIT_STORE_MSG_OK

_STATUS_OF_CODE: Mapping[int | None, PutMessageStatus] = {
    ResponseCode.SUCCESS: PutMessageStatus.PUT_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: PutMessageStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: PutMessageStatus.SLAVE_NOT_AVAILABLE,
}


class EscapeWay(Enum):
    """What may be done with a message."""

    LOCAL = "local"
    """This broker is a master: its own log."""
    REMOTE = "remote"
    """It acts for one: another broker's log."""
    NONE = "none"
    """Neither."""


def escape_way(*, is_master: bool, enable_slave_acting_master: bool, enable_remote_escape: bool) -> EscapeWay:
    """The way of every message of a broker."""
    if is_master:
        return EscapeWay.LOCAL
    return EscapeWay.REMOTE if enable_slave_acting_master and enable_remote_escape else EscapeWay.NONE


def put_status(code: int | None) -> PutMessageStatus:
    """What the answer to a send means; None: there was none."""
    return _STATUS_OF_CODE.get(code, PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL)


def specific_queue(queues: Sequence[MessageQueue], topic: str, store_host: str) -> MessageQueue:
    """The queue for everything that one broker writes about one topic.

    It depends on how many queues there are and in which order: when a broker comes or goes, it is another one.

    Args:
        store_host: `ip:port` that the message says it was stored at.
    """
    hashed = java_hash(f"{topic}/{store_host}")
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return queues[signed % len(queues)]


def producer_group(message: Message, inner: str) -> str:
    """In whose name a message is sent on: its producer's where it says so, else the broker's own."""
    return message.properties.get(PRODUCER_GROUP) or inner


def due_now(message: Message) -> Message:
    """The message as it escapes once it has waited: another broker shall not let it wait again."""
    properties = {name: value for name, value in message.properties.items() if name != DELAY_TIME_LEVEL}
    return attrs.evolve(message, properties=properties)


def not_waited_for(message: Message) -> Message:
    """The message as it escapes: who stores it waits for no replica."""
    return attrs.evolve(message, properties={**message.properties, WAIT_STORE_MSG_OK: "false"})
