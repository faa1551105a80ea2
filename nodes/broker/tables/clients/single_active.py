"""Single active consumer: of all consumers of a queue one gets messages, the others wait in their order.

RocketMQ has no such thing; this is RabbitMQ's `x-single-active-consumer`, carried over to a queue of a group. The first
pull of a consumer registers it. It stays active until it cancels or its connection is gone.
"""

from collections.abc import Hashable
from typing import NamedTuple

import attrs

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.errors import require_room


class SingleActiveQueue(NamedTuple):
    """A queue of this broker, as one group consumes it."""

    group: str
    topic: str
    queue_id: int


@attrs.define
class _Registered:
    """The consumers of one queue, and whether the active one has had its first answer."""

    clients: dict[Hashable, str] = attrs.Factory(dict)
    """Channel -> client id, in the order of registration: the first one is active."""
    has_read: bool = False


class SingleActiveConsumers:
    """The consumers that are registered for each queue; in memory, never copied.

    Args:
        groups: whose queues have a single active consumer.
    """

    def __init__(self, groups: tuple[str, ...] = (), *, max_queues: int = MAX_QUEUES) -> None:
        self.groups = frozenset(groups)
        """Groups whose queues have a single active consumer."""
        self._max_queues = max_queues
        self._queues: dict[SingleActiveQueue, _Registered] = {}

    def active(self, queue: SingleActiveQueue) -> tuple[Hashable, str] | None:
        """Channel and client id of the active consumer; None: no one is registered."""
        known = self._queues.get(queue)
        return None if known is None else next(iter(known.clients.items()))

    def is_registered(self, queue: SingleActiveQueue, channel: Hashable) -> bool:
        """Whether a consumer of a queue is registered, active or not."""
        known = self._queues.get(queue)
        return known is not None and channel in known.clients

    def register(self, queue: SingleActiveQueue, channel: Hashable, client_id: str) -> bool:
        """Register a consumer behind those that are registered; returns whether it is active."""
        known = self._queues.get(queue)
        if known is None:
            require_room(self._queues, queue, self._max_queues, "queues with an active consumer")
            known = self._queues[queue] = _Registered()
        known.clients.setdefault(channel, client_id)
        return next(iter(known.clients)) == channel

    def begins_to_read(self, queue: SingleActiveQueue) -> bool:
        """Whether the active consumer asks for the first time since it became active; later it does not."""
        known = self._queues[queue]
        begins, known.has_read = not known.has_read, True
        return begins

    def may_commit(self, queue: SingleActiveQueue, channel: Hashable) -> bool:
        """Whether a commit counts: a waiting consumer would commit where it was when it began to wait."""
        active = self.active(queue)
        return active is None or active[0] == channel

    def cancel(self, queue: SingleActiveQueue, channel: Hashable) -> bool:
        """Remove a consumer; returns whether it was active, so that the next one is now."""
        known = self._queues.get(queue)
        if known is None or channel not in known.clients:
            return False
        was_active = next(iter(known.clients)) == channel
        del known.clients[channel]
        if not known.clients:
            del self._queues[queue]
        elif was_active:
            known.has_read = False
        return was_active

    def queues_of(self, channel: Hashable, group: str | None = None) -> list[SingleActiveQueue]:
        """The queues for which a channel is registered, of one group or of all."""
        return [
            queue for queue, known in self._queues.items() if channel in known.clients and group in (None, queue.group)
        ]
