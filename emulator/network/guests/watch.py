"""Who looks over the shoulder of a program outside: at its end of the wire, and only at what tells of its views.

Both tables are asked first, for every frame: what a producer sends and is answered costs one look into each.
"""

from typing import Protocol

from emulator.network.endpoint import Listener
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command

SAID = frozenset(
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
        ),
    )
)
"""Codes of a guest's requests that are watched."""
TOLD = frozenset(
    map(
        int,
        (
            RequestCode.PULL_MESSAGE,
            RequestCode.LITE_PULL_MESSAGE,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
            RequestCode.LOCK_BATCH_MQ,
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
        ),
    )
)
"""Codes of what a guest is told: of its requests that were answered, and of a node's own."""


class GuestWatch(Protocol):
    """Watches one connection of a guest; it changes nothing of what passes but its cause."""

    def said(self, command: Command) -> Command:
        """The guest asks, whatever will become of the frame; returns it with what led to it, where that is known."""

    def told(self, command: Command) -> None:
        """A frame of the node has arrived at the guest."""

    def ended(self, *, by_node: bool) -> None:
        """The connection is over; `by_node`: it was not the guest that closed it."""


class WatchGuest(Protocol):
    """Gives every connection of a guest somebody who watches it."""

    def __call__(self, guest: str, listener: Listener, /) -> GuestWatch:
        """The program of this name has dialled a node's port."""


class _Nobody:
    def said(self, command: Command) -> Command:
        return command

    def told(self, command: Command) -> None:
        pass

    def ended(self, *, by_node: bool) -> None:
        pass


def unwatched(_guest: str, _listener: Listener) -> GuestWatch:
    """Nobody looks."""
    return _Nobody()
