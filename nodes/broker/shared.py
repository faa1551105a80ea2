"""What a broker shares with the other brokers of its container."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.put_message_result import PutMessageResult
from nodes.host import Channel
from nodes.protocol.command import Command
from nodes.protocol.model import Message
from nodes.rpc.client import RpcClient
from nodes.rpc.nameservers import Nameservers
from nodes.values import frozen

Put = Callable[[Message], Awaitable[PutMessageResult]]
SendBack = Callable[[MessageStore, Channel, Command], Command | None]
"""Store that has the message, channel, request -> the answer, or None if it comes later."""


@frozen
class Log:
    """What appends to the log of a broker."""

    put: Put
    """Appends a message, or puts it aside if it has to wait for its time."""
    put_due: Put
    """Appends what has waited."""


@frozen
class Master:
    """What a slave needs of a master in its container."""

    log: Log
    send_back: SendBack
    """Handles a message that a consumer sends back to the slave."""


class Shared(Protocol):
    """One container, as its brokers need it."""

    client: RpcClient
    """One connection to each address, whichever broker calls."""
    nameservers: Nameservers

    def store_of(self, broker_name: str) -> MessageStore | None:
        """The store of a broker of this name: a master's if there is one; None: the container has no such broker."""

    def peek_master(self) -> Master | None:
        """The first master of the container; None: it has no master."""
