"""What concerns applications, and what only proxies: the topic in which they report their clients to each other."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

from nodes.beliefs import Delivery
from nodes.protocol.names import HEARTBEAT_SYNCER_TOPIC

DELIVERED_BY_PROXY = f'"delivery":"{Delivery.PROXY}"'
"""Part of the value of SUBSCRIPTION, of clients that get messages from proxies."""


class _OfTopic(Protocol):
    @property
    def topic(self) -> str: ...


_Item = TypeVar("_Item", bound=_OfTopic)


def of_applications(items: Iterable[_Item]) -> Iterator[_Item]:
    """Those of topics that applications read.

    No application waits for what a proxy has not read yet. What it does not know for that shows as a disagreement of
    proxies (V20).
    """
    return (item for item in items if item.topic != HEARTBEAT_SYNCER_TOPIC)
