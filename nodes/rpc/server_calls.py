"""Calls in the other direction: the side that was connected to asks over a channel that its peer has opened.

Mirrors:
    `org.apache.rocketmq.remoting.netty.NettyRemotingServer#invokeSync`, `#invokeOneway`.
"""

from collections.abc import Mapping
from itertools import count

import attrs
import trio

from nodes.cause import cause
from nodes.host import Channel, Host
from nodes.protocol.command import LANGUAGE, NO_FIELDS, VERSION, Command, CommandFlag
from nodes.rpc.errors import RemotingError, RemotingSendRequestError, RemotingTimeoutError


@attrs.define(eq=False)
class _Waiting:
    """A call without an answer so far."""

    channel: Channel
    answered: trio.Event = attrs.field(factory=trio.Event)
    reply: Command | None = None
    cause: int = 0


class ServerCalls:
    """Asks peers; they are few, so each call has an event of its own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._opaque = count(1)
        self._waiting: dict[tuple[int, int], _Waiting] = {}

    async def call(
        self,
        channel: Channel,
        code: int,
        ext_fields: Mapping[str, str] = NO_FIELDS,
        body: bytes | None = None,
        *,
        timeout_ms: int,
    ) -> Command:
        """Ask and wait for the answer, whatever its code.

        Raises:
            RemotingSendRequestError: the channel is closed, or closed first.
            RemotingTimeoutError: no answer within `timeout_ms`; the channel stays open.
        """
        if channel.closed:
            raise _closed(channel)
        opaque = next(self._opaque)
        waiting = self._waiting[channel.id, opaque] = _Waiting(channel)
        channel.send(Command(code, 0, opaque, VERSION, LANGUAGE, None, ext_fields, body, cause.get()))
        try:
            with self._host.timeout_ms(timeout_ms):
                await waiting.answered.wait()
        except trio.TooSlowError:
            remark = f"wait response on the channel <{channel.remote_address}> timeout, {timeout_ms}(ms)"
            raise RemotingTimeoutError(remark) from None
        finally:
            self._waiting.pop((channel.id, opaque), None)
        if waiting.reply is None:
            raise _closed(channel)
        cause.set(waiting.cause)
        return waiting.reply

    def oneway(
        self, channel: Channel, code: int, ext_fields: Mapping[str, str] = NO_FIELDS, body: bytes | None = None
    ) -> None:
        """Send and forget; over a closed channel nothing is sent."""
        opaque = next(self._opaque)
        channel.send(Command(code, CommandFlag.ONEWAY, opaque, ext_fields=ext_fields, body=body, cause=cause.get()))

    def on_response(self, channel: Channel, answer: Command) -> None:
        """An answer has come; one that nobody waits for is forgotten."""
        waiting = self._waiting.pop((channel.id, answer.opaque), None)
        if waiting is not None:
            waiting.reply = answer
            waiting.cause = cause.get()
            waiting.answered.set()

    def on_closed(self, channel: Channel) -> None:
        """A channel is gone, and with it the answers that were waited for."""
        for key in [key for key in self._waiting if key[0] == channel.id]:
            self._waiting.pop(key).answered.set()


def _closed(channel: Channel) -> RemotingError:
    return RemotingSendRequestError(f"send request to <{channel.remote_address}> failed: the connection is closed")
