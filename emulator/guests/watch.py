"""The interface of watches: they see the frames at a guest's end that reveal what the guest believes.

The two tables of codes come first because they are checked for every frame, also those of producers.
"""

from typing import Protocol

from emulator.network.endpoint import Listener
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command

WATCHED_REQUESTS = frozenset(
    map(
        int,
        (
            RequestCode.PULL_MESSAGE,
            RequestCode.LITE_PULL_MESSAGE,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            RequestCode.HEART_BEAT,
            RequestCode.UNREGISTER_CLIENT,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            RequestCode.LOCK_BATCH_MQ,
            RequestCode.UNLOCK_BATCH_MQ,
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RequestCode.V2_TELEMETRY,
            RequestCode.V2_HEARTBEAT,
            RequestCode.V2_QUERY_ROUTE,
            RequestCode.V2_RECEIVE_MESSAGE,
            RequestCode.V2_NOTIFY_CLIENT_TERMINATION,
        ),
    )
)
"""Codes of requests of a guest that are watched."""
WATCHED_FRAMES = frozenset(
    map(
        int,
        (
            RequestCode.PULL_MESSAGE,
            RequestCode.LITE_PULL_MESSAGE,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
            RequestCode.LOCK_BATCH_MQ,
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RequestCode.V2_TELEMETRY,
            RequestCode.V2_QUERY_ROUTE,
        ),
    )
)
"""Codes of frames to a guest that are watched: answers to its requests, and requests of a node."""


class GuestWatch(Protocol):
    """Watches one connection of a guest; changes nothing but the cause of a frame."""

    def on_request(self, command: Command) -> Command:
        """The guest has sent a request, whatever its fate; returns it with its cause, if that is known."""

    def on_frame(self, command: Command) -> None:
        """A frame of the node has arrived at the guest."""

    def on_not_emulated(self, value: object, reported: str) -> None:
        """The guest has asked for what is not emulated: `what` it is, and how that is `reported`."""

    def on_end(self, *, by_node: bool) -> None:
        """The connection has ended; `by_node`: the node closed it."""


class WatchGuest(Protocol):
    """Makes the watch of a connection of a guest."""

    def __call__(self, guest: str, listener: Listener, /) -> GuestWatch:
        """The guest of this name has dialed a node's port."""


class _NoWatch:
    def on_request(self, command: Command) -> Command:
        return command

    def on_frame(self, command: Command) -> None:
        pass

    def on_not_emulated(self, value: object, reported: str) -> None:
        pass

    def on_end(self, *, by_node: bool) -> None:
        pass


def unwatched(_guest: str, _listener: Listener) -> GuestWatch:
    """A watch that does nothing."""
    return _NoWatch()
