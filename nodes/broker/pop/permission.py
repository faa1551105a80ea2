"""Whether a group may pop, peek or wait for messages of a topic."""

from nodes.broker.context import BrokerContext
from nodes.broker.part import RequestRefusedError
from nodes.host import Channel
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import TopicConfig, is_readable


def require_readable_broker(broker: BrokerContext, verb: str) -> None:
    """Refuse requests of a broker that may not be read.

    Raises:
        RequestRefusedError: it may not.
    """
    if not is_readable(broker.config.broker_permission):
        remark = f"the broker[{broker.ip}] {verb} message is forbidden"
        raise RequestRefusedError(ResponseCode.NO_PERMISSION, remark)


def readable_topic(broker: BrokerContext, channel: Channel, topic: str, queue_id: int, group: str) -> TopicConfig:
    """The topic, if the group may read this queue of it, or with a negative queue id any.

    Raises:
        RequestRefusedError: a check fails; they are made in RocketMQ's order.
    """
    config = broker.topics.select_topic_config(topic)
    if config is None:
        raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!")
    if not is_readable(config.perm):
        raise RequestRefusedError(ResponseCode.NO_PERMISSION, f"the topic[{topic}] peeking message is forbidden")
    if queue_id >= config.read_queue_nums:
        raise RequestRefusedError(ResponseCode.INVALID_PARAMETER, illegal_queue(channel, config, queue_id))
    found = broker.groups.find_subscription_group_config(group, now_ms=broker.host.clock.now_ms())
    if found is None:
        remark = f"subscription group [{group}] does not exist"
        raise RequestRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    if not found.consume_enable:
        raise RequestRefusedError(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
    return config


def illegal_queue(channel: Channel, config: TopicConfig, queue_id: int) -> str:
    """The remark about a queue that the topic does not have."""
    count = config.read_queue_nums
    return (
        f"queueId[{queue_id}] is illegal, topic:[{config.topic_name}] topicConfig.readQueueNums:[{count}] "
        f"consumer:[{channel.remote_address}]"
    )


def require_queue_of_handle(broker: BrokerContext, channel: Channel, topic: str, queue_id: int) -> None:
    """Refuse an acknowledgement, or a change of the invisible time, in a queue that is not there.

    Raises:
        RequestRefusedError: there is no such topic or queue.
    """
    config = broker.topics.select_topic_config(topic)
    if config is None:
        raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!")
    if not 0 <= queue_id < config.read_queue_nums:
        raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, illegal_queue(channel, config, queue_id))
