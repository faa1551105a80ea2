"""Requests of brokers about consumers, on behalf of operators: offsets and running information.

Mirrors:
    `org.apache.rocketmq.client.impl.ClientRemotingProcessor`.
"""

import json
from collections.abc import Callable, Mapping

from nodes.client.tables.offset_table import NO_OFFSET
from nodes.client.tables.process_queue import ProcessQueue
from nodes.protocol import headers_message as headers
from nodes.protocol.bodies_admin import GetConsumerStatusBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import VERSION, Command
from nodes.protocol.json_text import to_json
from nodes.protocol.model import ConsumerData, MessageQueue
from nodes.protocol.registry import decode_header
from nodes.rpc.typed import success
from nodes.values import frozen


@frozen
class InspectedConsumer:
    """What requests about a consumer need."""

    data: Callable[[], ConsumerData]
    """Its group and its subscriptions."""
    process_queues: Mapping[MessageQueue, ProcessQueue]
    """The queues that it owns."""
    read_offset: Callable[[MessageQueue], int]
    """The offset that it would commit; -1: none."""
    in_order: bool
    thread_core_size: int
    nameservers: tuple[str, ...]
    started_ms: int


class ClientRequests:
    """Answers brokers, for all consumers of one instance."""

    def __init__(self) -> None:
        self._consumers: dict[str, InspectedConsumer] = {}

    def inspect(self, consumer: InspectedConsumer) -> None:
        """Answer requests about a consumer from now on."""
        self._consumers[consumer.data().group_name] = consumer

    def answer(self, request: Command) -> Command:
        """Answer a request; CONSUME_MESSAGE_DIRECTLY and all other codes are not emulated, and are refused."""
        match request.code:
            case RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
                return self._status(request)
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                return self._running_info(request)
        remark = f"request type {request.code} not supported"
        return request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)

    def _status(self, request: Command) -> Command:
        header = decode_header(headers.GetConsumerStatusRequestHeader, request.ext_fields)
        consumer = self._consumers.get(header.group)
        if consumer is None:
            return success(request, None, GetConsumerStatusBody())
        queues = [queue for queue in consumer.process_queues if queue.topic == header.topic]
        offsets = {queue: consumer.read_offset(queue) for queue in queues if consumer.read_offset(queue) != NO_OFFSET}
        return success(request, None, GetConsumerStatusBody(offsets))

    def _running_info(self, request: Command) -> Command:
        group = decode_header(headers.GetConsumerRunningInfoRequestHeader, request.ext_fields).consumer_group
        consumer = self._consumers.get(group)
        if consumer is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            return request.answer(ResponseCode.SYSTEM_ERROR, remark)
        return request.answer(body=running_info(consumer).encode())


def running_info(consumer: InspectedConsumer) -> str:
    """Running information of a consumer, in RocketMQ's JSON with queues as keys.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.body.ConsumerRunningInfo`.
    """
    data = consumer.data()
    properties = {
        "PROP_CLIENT_VERSION": f"V{VERSION}",
        "PROP_CONSUMEORDERLY": "true" if consumer.in_order else "false",
        "PROP_CONSUMER_START_TIMESTAMP": str(consumer.started_ms),
        "PROP_CONSUME_TYPE": data.consume_type.value,
        "PROP_NAMESERVER_ADDR": ";".join(consumer.nameservers),
        "PROP_THREADPOOL_CORE_SIZE": str(consumer.thread_core_size),
    }
    queues = ",".join(f"{to_json(queue)}:{_queue_info(consumer, queue)}" for queue in sorted(consumer.process_queues))
    subscriptions = ",".join(to_json(subscription) for subscription in data.subscription_data_set)
    return (
        f'{{"mqPopTable":{{}},"mqTable":{{{queues}}},"properties":{json.dumps(properties)},'
        f'"statusTable":{{}},"subscriptionSet":[{subscriptions}],"userConsumerInfo":{{}}}}'
    )


def _queue_info(consumer: InspectedConsumer, queue: MessageQueue) -> str:
    held = consumer.process_queues[queue]
    offsets, taken = held.offsets, held.taken_offsets
    return json.dumps(
        {
            "commitOffset": max(0, consumer.read_offset(queue)),
            "cachedMsgMinOffset": offsets[0] if offsets else 0,
            "cachedMsgMaxOffset": offsets[-1] if offsets else 0,
            "cachedMsgCount": len(offsets),
            "cachedMsgSizeInMiB": held.msg_size_mib,
            "transactionMsgMinOffset": taken[0] if taken else 0,
            "transactionMsgMaxOffset": taken[-1] if taken else 0,
            "transactionMsgCount": len(taken),
            "locked": held.locked,
            "tryUnlockTimes": held.try_unlock_times,
            "lastLockTimestamp": held.last_lock_ms,
            "droped": held.dropped,
            "lastPullTimestamp": held.last_pull_ms,
            "lastConsumeTimestamp": held.last_consume_ms,
        }
    )
