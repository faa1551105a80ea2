"""A message queue as the sequences write it: `topic@brokerName@queueId`."""

from collections.abc import Iterable

from nodes.protocol.model import MessageQueue


def queue(text: str) -> MessageQueue:
    topic, broker_name, queue_id = text.split("@")
    return MessageQueue(topic, broker_name, int(queue_id))


def queues(texts: Iterable[str]) -> tuple[MessageQueue, ...]:
    return tuple(queue(text) for text in texts)


def text(requested: MessageQueue) -> str:
    return f"{requested.topic}@{requested.broker_name}@{requested.queue_id}"


def texts(requested: Iterable[MessageQueue]) -> list[str]:
    return sorted(text(item) for item in requested)
