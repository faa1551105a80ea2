"""The watch of one connection of a guest: each frame is handled by its code."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

import attrs

from emulator.guests.views.calls import WatchedCalls, keep_unanswered
from emulator.guests.views.client import GuestClient, queue_of
from emulator.history.rows.queues import GroupQueue
from nodes.cause import NO_CAUSE, cause
from nodes.protocol import bodies, headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import RETRY_TOPIC_PREFIX, HeartbeatData, TopicRouteData
from nodes.protocol.registry import decode_body_cached, decode_header

_NOT_RETRY = len(RETRY_TOPIC_PREFIX)


@attrs.frozen
class ReceivedRoute:
    """A route in the answer of a nameserver."""

    route: TopicRouteData
    source: str
    cause: int
    """Seq of the answer."""


class Clients(Protocol):
    """All clients of all guests, as one connection sees them."""

    @property
    def now_ms(self) -> int:
        """Milliseconds since the run began."""

    def bind_to(self, connection: "WatchedConnection", client_id: str, *, is_new: bool = False) -> None:
        """Bind a connection to the client that it names."""

    def join(self, connection: "WatchedConnection", client_id: str, *, is_new: bool) -> GuestClient | None:
        """Add the client that a call names to those of a connection; None: it is unknown, and not to be created."""

    def guess_client(self, connection: "WatchedConnection", group: str) -> None:
        """Bind a connection without a client, if only one client can have opened it."""

    def settle_routes(self, program: str) -> None:
        """Pass received routes to their clients, as soon as these are known."""

    def unsupported_requests(self, program: str, value: object, reported: str) -> None:
        """A guest has asked for what is not emulated."""

    def ended(self, connection: "WatchedConnection", *, by_node: bool) -> None:
        """A connection has ended."""


class WatchedConnection:
    """The watch of the frames between one guest and one node.

    A malformed frame is ignored here; the node refuses it.

    Args:
        clients: of all guests.
        program: node name of the guest.
        node: name of the node that it has dialed.
        address: of that node, `ip:port`.
        broker_name: of that node; empty for a nameserver.
    """

    def __init__(self, clients: Clients, program: str, node: str, address: str, broker_name: str) -> None:
        self.program = program
        self.node = node
        self.broker_name = broker_name
        self.client: GuestClient | None = None
        """The client of this connection, once it is known; of calls, that which has called last."""
        self.callers: dict[str, GuestClient] = {}
        """Mapping client id -> client that makes calls."""
        self.routes: dict[str, ReceivedRoute] = {}
        self.unsettled: dict[str, None] = {}
        """Topics whose routes wait until the client of the connection is known."""
        self.retry_groups: dict[str, None] = {}
        """Consumer groups whose retry topics it requested; they distinguish connections to a nameserver."""
        self._clients = clients
        self._address = address
        self._pulls: dict[int, GroupQueue] = {}
        self._requested: dict[int, str] = {}
        """Mapping opaque -> requested group or topic."""
        self._locks: dict[int, tuple[GroupQueue, ...]] = {}
        self.calls = WatchedCalls(address, self._caller)
        self._request_handlers: Mapping[int, Callable[[Command], int]] = {
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._commit,
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._ask_members,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._ask_route,
            **self.calls.request_handlers,
        }
        """Mapping code -> handler of a request; returns the seq of its cause, if known."""
        self._frame_handlers: Mapping[int, Callable[[Command], None]] = {
            RequestCode.PULL_MESSAGE: self._pulled,
            RequestCode.LITE_PULL_MESSAGE: self._pulled,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._members,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._changed,
            RequestCode.LOCK_BATCH_MQ: self._locked,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            **self.calls.frame_handlers,
        }

    def on_request(self, command: Command) -> Command:
        """A request of the guest."""
        if command.is_response or command.code not in self._request_handlers:
            return command
        try:
            cause_seq = self._request_handlers[command.code](command)
        except ProtocolError:
            return command
        if self.client is not None:
            self.client.last_request_ms = self._clients.now_ms
        return command._replace(cause=cause_seq) if cause_seq else command

    def on_frame(self, command: Command) -> None:
        """An answer or a request of the node."""
        handler = self._frame_handlers.get(command.request_code or command.code)
        if handler is not None:
            with suppress(ProtocolError):
                handler(command)

    def on_not_emulated(self, value: object, reported: str) -> None:
        """The guest has asked for what is not emulated."""
        self._clients.unsupported_requests(self.program, value, reported)

    def on_end(self, *, by_node: bool) -> None:
        """The connection has ended; a client that still holds queues of this broker opens a new one."""
        if self.client is not None:
            for opaque, queue in self._pulls.items():
                self.client.holds.answered(queue, (self, opaque), self._clients.now_ms, with_messages=False)
        self._clients.ended(self, by_node=by_node)

    # --- requests -----------------------------------------------------------------

    def _heartbeat(self, command: Command) -> int:
        data = decode_body_cached(HeartbeatData, command.body)
        self._clients.bind_to(self, data.client_id, is_new=True)
        if self.client is not None:
            self.client.heartbeat(data)
        self._clients.settle_routes(self.program)
        return NO_CAUSE

    def _unregister(self, command: Command) -> int:
        header = decode_header(headers.UnregisterClientRequestHeader, command.ext_fields)
        self._clients.bind_to(self, header.client_id)
        if self.client is not None:
            self.client.unregister(header.producer_group, header.consumer_group)
        return NO_CAUSE

    def _pull(self, command: Command) -> int:
        header = decode_header(headers.PullMessageRequestHeader, command.ext_fields)
        client = self._client_of(header.consumer_group)
        if client is not None and client.owns_of(header.consumer_group, header.topic):
            queue = self._queue(header)
            keep_unanswered(self._pulls, command.opaque, queue)
            client.pull(queue, (self, command.opaque), header.queue_offset, self._clients.now_ms)
        return NO_CAUSE

    def _commit(self, command: Command) -> int:
        header = decode_header(headers.UpdateConsumerOffsetRequestHeader, command.ext_fields)
        client = self._client_of(header.consumer_group)
        if client is not None and header.queue_id is not None and header.commit_offset is not None:
            client.holds.commit(self._queue(header), header.commit_offset, self._clients.now_ms)
        return NO_CAUSE

    def _ask_members(self, command: Command) -> int:
        group = decode_header(headers.ConsumerGroupRequestHeader, command.ext_fields).consumer_group
        keep_unanswered(self._requested, command.opaque, group)
        client = self._client_of(group)
        return NO_CAUSE if client is None else client.cause_of_pass(group, self._clients.now_ms)

    def _lock(self, command: Command) -> int:
        body = decode_body_cached(bodies.LockBatchRequestBody, command.body)
        self._clients.bind_to(self, body.client_id)
        queues = tuple(queue_of(body.consumer_group, queue) for queue in body.mq_set)
        keep_unanswered(self._locks, command.opaque, queues)
        if self.client is not None:
            for queue in queues:
                self.client.holds.lock(queue, self._clients.now_ms)
        return NO_CAUSE

    def _unlock(self, command: Command) -> int:
        body = decode_body_cached(bodies.LockBatchRequestBody, command.body)
        self._clients.bind_to(self, body.client_id)
        if self.client is not None:
            for queue in body.mq_set:
                self.client.unlock(queue_of(body.consumer_group, queue))
        return NO_CAUSE

    def _ask_route(self, command: Command) -> int:
        topic = decode_header(headers.GetRouteInfoRequestHeader, command.ext_fields).topic
        keep_unanswered(self._requested, command.opaque, topic)
        if topic.startswith(RETRY_TOPIC_PREFIX):
            self.retry_groups[topic[_NOT_RETRY:]] = None
        return NO_CAUSE

    # --- answers and notifications ------------------------------------------------------------

    def _pulled(self, command: Command) -> None:
        queue = self._pulls.pop(command.opaque, None)
        if queue is not None and self.client is not None:
            found = command.code == ResponseCode.SUCCESS
            self.client.holds.answered(queue, (self, command.opaque), self._clients.now_ms, with_messages=found)

    def _members(self, command: Command) -> None:
        group = self._requested.pop(command.opaque, None)
        if group is not None and self.client is not None and command.code == ResponseCode.SUCCESS:
            listed = decode_body_cached(bodies.GetConsumerListByGroupResponseBody, command.body)
            self.client.on_members(group, listed.consumer_id_list, self._address, cause.get())

    def _changed(self, command: Command) -> None:
        group = decode_header(headers.ConsumerGroupRequestHeader, command.ext_fields).consumer_group
        if self.client is not None:
            self.client.on_members_changed(group, cause.get(), self._clients.now_ms)

    def _locked(self, command: Command) -> None:
        requested = self._locks.pop(command.opaque, None)
        if requested and self.client is not None and command.code == ResponseCode.SUCCESS:
            granted = decode_body_cached(bodies.LockBatchResponseBody, command.body).lock_ok_mq_set
            self.client.on_locks(requested, (queue_of(requested[0].group, queue) for queue in granted), cause.get())

    def _route(self, command: Command) -> None:
        topic = self._requested.pop(command.opaque, None)
        if topic is not None and command.code == ResponseCode.SUCCESS:
            route = decode_body_cached(TopicRouteData, command.body)
            self.unsettled[topic] = None
            self.routes[topic] = ReceivedRoute(route, self._address, cause.get())
            self._clients.settle_routes(self.program)

    def _caller(self, client_id: str, is_new: bool) -> GuestClient | None:  # noqa: FBT001 - a `Join`
        client = self._clients.join(self, client_id, is_new=is_new)
        if client is not None:
            self.client = client
        return client

    def _client_of(self, group: str) -> GuestClient | None:
        """The client behind a request for a group; pulls and commits do not name it."""
        if self.client is None:
            self._clients.guess_client(self, group)
        return self.client

    def _queue(
        self, header: headers.PullMessageRequestHeader | headers.UpdateConsumerOffsetRequestHeader
    ) -> GroupQueue:
        # Clients of 4.x do not send the brokerName; a slave has that of its master.
        broker_name = header.bname or self.broker_name
        return GroupQueue(header.consumer_group, header.topic, broker_name, header.queue_id or 0)
