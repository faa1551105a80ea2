"""Pulls of groups whose queues have a single active consumer: who waits, and who is active next."""

from collections.abc import Callable, Hashable

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.context import BrokerContext
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.single_active import SingleActiveQueue
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import CancelConsumerRequestHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success


class SingleActive:
    """Registers consumers by their pulls, and passes a queue on when its active consumer cancels or is gone.

    Emits:
        ACTIVE_CONSUMER whenever a queue has another active consumer.
    """

    def __init__(
        self, broker: BrokerContext, tables: ClientTables, on_activated: Callable[[str, int, Hashable], None]
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._table = tables.single_active
        self._on_activated = on_activated

    def handlers(self) -> Handlers:
        """The request of a consumer that has finished with a queue."""
        return {RequestCode.CANCEL_CONSUMER: self._cancel}

    def is_active(self, channel: Channel, header: headers.PullMessageRequestHeader) -> bool:
        """Whether a pull may get messages; its consumer is registered. In other groups every pull may."""
        group = header.consumer_group
        if group not in self._table.groups:
            return True
        queue = SingleActiveQueue(group, header.topic, header.queue_id)
        before = self._table.active(queue)
        is_active = self._table.register(queue, channel.id, self._client_id(group, channel))
        if before is None:
            self._believe(queue)
        return is_active

    def has_left(self, channel: Channel, header: headers.PullMessageRequestHeader) -> bool:
        """Whether the consumer of a pull that is held has cancelled since."""
        queue = SingleActiveQueue(header.consumer_group, header.topic, header.queue_id)
        return queue.group in self._table.groups and not self._table.is_registered(queue, channel.id)

    def restart_offset(self, header: headers.PullMessageRequestHeader) -> int | None:
        """Where a consumer that has just become active has to begin; None: where it wants to.

        It read its offset before it began to wait; the consumer before it has committed since.
        """
        queue = SingleActiveQueue(header.consumer_group, header.topic, header.queue_id)
        if queue.group not in self._table.groups or not self._table.begins_to_read(queue):
            return None
        committed = self.committed(header)
        return committed if committed > header.queue_offset else None

    def committed(self, header: headers.PullMessageRequestHeader) -> int:
        """The offset of the group; below 0: it has none."""
        return self._tables.offsets.query_offset(header.consumer_group, header.topic, header.queue_id)

    def on_left(self, channel: Hashable, group: str | None = None) -> None:
        """A connection is gone, or the consumer of a group behind it has unregistered."""
        for queue in self._table.queues_of(channel, group):
            self._remove(queue, channel)

    def _cancel(self, channel: Channel, request: Command) -> Command:
        header = decode_header(CancelConsumerRequestHeader, request.ext_fields)
        self._remove(SingleActiveQueue(header.consumer_group, header.topic, header.queue_id), channel.id)
        return success(request)

    def _remove(self, queue: SingleActiveQueue, channel: Hashable) -> None:
        if self._table.cancel(queue, channel):
            self._believe(queue)
            following = self._table.active(queue)
            if following is not None:
                self._on_activated(queue.topic, queue.queue_id, following[0])

    def _client_id(self, group: str, channel: Channel) -> str:
        known = self._tables.consumers.group(group)
        member = None if known is None else known.channels.get(channel.id)
        return channel.remote_address if member is None else member.client_id

    def _believe(self, queue: SingleActiveQueue) -> None:
        active = self._table.active(queue)
        subject = f"{queue.group}/{queue.topic}/{self._broker.broker_name}/{queue.queue_id}"
        self._broker.host.record(Belief(BeliefKind.ACTIVE_CONSUMER, subject, None if active is None else active[1]))
