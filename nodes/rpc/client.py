"""The calling side: one channel per address, calls paired with answers by `opaque`.

A caller parks until the reader of its channel wakes it; there is no event, no
lock and no task per call. Time-outs are swept from one queue per time-out value,
since calls of one value expire in the order in which they were made.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count

import attrs
import trio

from nodes.beliefs import CallTimedOut
from nodes.cause import cause
from nodes.config import RemotingClientConfig
from nodes.host import Channel, ChannelHandler, ConnectError, Host
from nodes.parking import park, unpark
from nodes.protocol.command import LANGUAGE, NO_FIELDS, VERSION, Command, CommandFlag, new_tuple
from nodes.rpc.errors import RemotingConnectError, RemotingError, RemotingSendRequestError, RemotingTimeoutError
from nodes.rpc.idle import IdleWatch
from nodes.units import NS_PER_MS

Reply = Command | RemotingError
ReplyCallback = Callable[[Reply], None]
_LEFT_MIN_CLOSE_MS = 100
"""Mirrors `NettyRemotingClient#MIN_CLOSE_TIMEOUT_MILLIS`."""


class _Pending:
    """A call that waits for its answer: a task of ours, or a callback."""

    __slots__ = ("address", "callback", "cause", "channel", "closes_on_timeout", "code", "deadline_ns", "reply", "task")

    def __init__(self, address: str, code: int, callback: ReplyCallback | None, closes_on_timeout: bool) -> None:  # noqa: FBT001 - hot
        self.address = address
        self.code = code
        self.callback = callback
        self.closes_on_timeout = closes_on_timeout
        self.cause = cause.get()
        """Of the call; once it has been settled, of its reply."""
        self.channel: Channel | None = None
        self.deadline_ns = 0
        self.task: trio.lowlevel.Task | None = None
        self.reply: Reply | None = None

    def settle(self, reply: Reply) -> None:
        """Wake the caller with the reply or the error."""
        if self.callback is not None:
            self.callback(reply)
        elif self.task is not None:
            self.reply = reply
            self.cause = cause.get()
            unpark(self.task)
            self.task = None


@attrs.define
class _Deadlines:
    """Calls of one time-out value, by deadline."""

    queue: deque[tuple[int, int]] = attrs.Factory(deque)
    armed: bool = False


Sign = Callable[[Mapping[str, str], bytes | None], Mapping[str, str]]


class RpcClient:
    """Calls other nodes.

    Resource handling: channels are opened on first use, kept, and closed by
    `close` or with the process. A synchronous call that times out closes its
    channel if `clientCloseSocketIfTimeout`.

    Args:
        on_request: handles requests of the peer over a channel that this side has opened.
        on_channel_active: called with the address whenever a channel was opened.
        sign: returns the header of a request with its signature, from its header and its body; None: none is signed.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyRemotingClient`.
    """

    def __init__(
        self,
        host: Host,
        config: RemotingClientConfig | None = None,
        *,
        on_request: Callable[[Channel, Command], None] | None = None,
        on_channel_active: Callable[[str], None] | None = None,
        on_channel_closed: Callable[[str], None] | None = None,
        sign: Sign | None = None,
    ) -> None:
        self._host = host
        self._sign = sign
        self._now_ns = host.clock.monotonic_ns
        self._config = config = config or RemotingClientConfig()
        self._on_channel_active = on_channel_active
        self._on_channel_closed = on_channel_closed
        self._idle_watch = IdleWatch(host, config.client_channel_max_idle_time_seconds, self._on_idle)
        self._channels: dict[str, Channel] = {}
        self._connecting: dict[str, list[Callable[[Channel | RemotingError], None]]] = {}
        self._pending: dict[int, _Pending] = {}
        self._handler = _ClientHandler(self, self._pending, on_request)
        self._deadlines: dict[int, _Deadlines] = {}
        self._opaque = count(1)

    def channel(self, address: str) -> Channel | None:
        """The open channel to an address, None if there is none."""
        found = self._channels.get(address)
        return found if found is not None and not found.closed else None

    async def call(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str] = NO_FIELDS,
        body: bytes | None = None,
        *,
        timeout_ms: int,
    ) -> Command:
        """Send a request and wait for the answer (`invokeSync`).

        Raises:
            RemotingConnectError: no channel could be opened.
            RemotingSendRequestError: the channel closed first.
            RemotingTimeoutError: no answer within `timeout_ms`, connecting included. An attempt to connect is not cut
                short for that: it ends by its own time-out.
        """
        opaque = next(self._opaque)
        pending = _Pending(address, code, None, self._config.client_close_socket_if_timeout)
        pending.task = trio.lowlevel.current_task()
        self._begin(opaque, pending, ext_fields, body, timeout_ms)

        def abort(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            pending.task = None
            self._pending.pop(opaque, None)
            return trio.lowlevel.Abort.SUCCEEDED

        await park(abort)
        reply = pending.reply
        cause.set(pending.cause)
        if type(reply) is Command:
            return reply
        assert isinstance(reply, RemotingError)
        raise reply

    def call_async(
        self,
        address: str,
        code: int,
        ext_fields: Mapping[str, str],
        body: bytes | None,
        *,
        timeout_ms: int,
        callback: ReplyCallback,
    ) -> None:
        """Send a request; `callback` gets the answer or the error, never inside this call (`invokeAsync`)."""
        pending = _Pending(address, code, callback, False)
        self._begin(next(self._opaque), pending, ext_fields, body, timeout_ms)

    def oneway(
        self, address: str, code: int, ext_fields: Mapping[str, str] = NO_FIELDS, body: bytes | None = None
    ) -> None:
        """Send a oneway request (`invokeOneway`); a channel is opened if there is none."""
        if self._sign is not None:
            ext_fields = self._sign(ext_fields, body)
        begin = (code, CommandFlag.ONEWAY, next(self._opaque), VERSION, LANGUAGE, None)
        command: Command = new_tuple(Command, (*begin, ext_fields, body, cause.get(), 0))
        channel = self._channels.get(address)
        if channel is not None and not channel.closed:
            channel.send(command)
        else:
            self._open_channel(address, lambda got: None if isinstance(got, RemotingError) else got.send(command))

    async def reach(self, address: str) -> bool:
        """Open a channel to an address if there is none; returns whether there is one (`isAddressReachable`)."""
        if self.channel(address) is not None:
            return True
        opened: list[Channel | RemotingError] = []
        tried = trio.Event()

        def take(got: Channel | RemotingError) -> None:
            opened.append(got)
            tried.set()

        self._open_channel(address, take)
        await tried.wait()
        return not isinstance(opened[0], RemotingError)

    def close(self, address: str) -> None:
        """Close the channel to an address; calls that wait on it fail."""
        channel = self._channels.pop(address, None)
        if channel is not None and not channel.closed:
            channel.close()
            self._fail_calls(channel)

    def close_all(self) -> None:
        """Close every channel."""
        for address in list(self._channels):
            self.close(address)

    def _begin(
        self, opaque: int, pending: _Pending, ext_fields: Mapping[str, str], body: bytes | None, timeout_ms: int
    ) -> None:
        self._pending[opaque] = pending
        deadlines = self._deadlines.get(timeout_ms)
        if deadlines is None:
            deadlines = self._deadlines[timeout_ms] = _Deadlines()
        pending.deadline_ns = deadline_ns = self._now_ns() + timeout_ms * NS_PER_MS
        deadlines.queue.append((deadline_ns, opaque))
        if not deadlines.armed:
            self._sweep_later(deadlines, timeout_ms)
        if self._sign is not None:
            ext_fields = self._sign(ext_fields, body)
        fields = (pending.code, 0, opaque, VERSION, LANGUAGE, None, ext_fields, body, pending.cause, 0)
        command: Command = new_tuple(Command, fields)
        channel = self._channels.get(pending.address)
        if channel is not None and not channel.closed:
            pending.channel = channel
            channel.send(command)
        else:
            self._open_channel(pending.address, lambda got: self._send(opaque, command, timeout_ms, got))

    def _send(self, opaque: int, command: Command, timeout_ms: int, got: Channel | RemotingError) -> None:
        """Send the frame of a call that has waited for a channel."""
        pending = self._pending.get(opaque)
        if pending is None:
            return
        left_ms = (pending.deadline_ns - self._now_ns()) / NS_PER_MS
        if isinstance(got, RemotingError):
            del self._pending[opaque]
            if left_ms <= 0:
                self._record_time_out(opaque, pending)
            pending.settle(got)
        elif left_ms <= 0:
            del self._pending[opaque]
            self._time_out(opaque, pending)
        else:
            if left_ms <= _LEFT_MIN_CLOSE_MS and left_ms <= timeout_ms / 4:
                pending.closes_on_timeout = False  # a channel that has just been opened is not to blame
            pending.channel = got
            got.send(command)

    def _open_channel(self, address: str, use: Callable[[Channel | RemotingError], None]) -> None:
        waiting = self._connecting.get(address)
        if waiting is not None:
            waiting.append(use)
            return
        self._connecting[address] = [use]
        take = partial(self._opened, address)
        self._host.dial(address, self._handler, take, self._config.connect_timeout_millis)

    def _opened(self, address: str, opened: Channel | ConnectError) -> None:
        if isinstance(opened, ConnectError):
            # Behind the threads that wake at this instant, whose calls share it: in RocketMQ an attempt lasts a little
            # longer than its time-out.
            error = RemotingConnectError(str(opened))
            self._host.start_soon(self._give_up, address, error, name=f"no connection to {address}")
            return
        self._channels[address] = opened
        self._idle_watch.watch(opened)
        if self._on_channel_active is not None:
            self._on_channel_active(address)
        self._end_waiting(address, opened)

    async def _give_up(self, address: str, error: RemotingConnectError) -> None:
        self._end_waiting(address, error)

    def _end_waiting(self, address: str, got: Channel | RemotingError) -> None:
        for use in self._connecting.pop(address):
            use(got)

    def _sweep_later(self, deadlines: _Deadlines, delay_ms: float) -> None:
        deadlines.armed = True
        self._host.call_later_ms(delay_ms, lambda: self._sweep(deadlines))

    def _sweep(self, deadlines: _Deadlines) -> None:
        now_ns = self._host.clock.monotonic_ns()
        queue = deadlines.queue
        while queue and (queue[0][0] <= now_ns or queue[0][1] not in self._pending):
            opaque = queue.popleft()[1]
            pending = self._pending.get(opaque)
            if pending is not None and pending.channel is not None:  # else `_send` sees that it is too late
                del self._pending[opaque]
                self._time_out(opaque, pending)
        deadlines.armed = False
        if queue:
            self._sweep_later(deadlines, (queue[0][0] - now_ns) / NS_PER_MS)

    def settle_async(self, opaque: int, pending: _Pending, callback: ReplyCallback, answer: Command) -> None:
        """Call the callback; a process that was frozen handles expired calls before frames that arrived meanwhile."""
        if pending.deadline_ns < self._now_ns():
            self._time_out(opaque, pending)
        else:
            callback(answer)

    def _time_out(self, opaque: int, pending: _Pending) -> None:
        cause.set(pending.cause)
        self._record_time_out(opaque, pending)
        if pending.closes_on_timeout and pending.channel is self._channels.get(pending.address):
            self.close(pending.address)
        pending.settle(RemotingTimeoutError(f"no answer from {pending.address} to request {pending.code}"))

    def _record_time_out(self, opaque: int, pending: _Pending) -> None:
        channel_id = pending.channel.id if pending.channel is not None else 0
        self._host.record(CallTimedOut(channel_id, pending.address, pending.code, opaque))

    def _fail_calls(self, channel: Channel) -> None:
        for opaque in [o for o, p in self._pending.items() if p.channel is channel]:
            pending = self._pending.pop(opaque)
            pending.settle(RemotingSendRequestError(f"the connection to {pending.address} was closed"))

    def on_peer_closed(self, channel: Channel) -> None:
        """Handle the end of a channel that this side has opened."""
        if self._channels.get(channel.remote_address) is channel:
            del self._channels[channel.remote_address]
        self._fail_calls(channel)
        if self._on_channel_closed is not None:
            self._on_channel_closed(channel.remote_address)

    def _on_idle(self, channel: Channel) -> None:
        channel.close()
        self.on_peer_closed(channel)


class _ClientHandler(ChannelHandler):
    """Dispatches frames: answers to their calls, requests to the handler."""

    __slots__ = ("_client", "_on_request", "_pending")

    def __init__(
        self,
        client: RpcClient,
        pending: dict[int, _Pending],
        on_request: Callable[[Channel, Command], None] | None,
    ) -> None:
        self._client = client
        self._pending = pending
        self._on_request = on_request

    def on_open(self, channel: Channel) -> None:
        """Never called: a client accepts no connection."""

    def on_command(self, channel: Channel, command: Command) -> None:
        if command.flag & CommandFlag.RESPONSE:
            pending = self._pending.pop(command.opaque, None)
            if pending is None:  # the call has timed out
                return
            if pending.callback is None:
                pending.settle(command)
            else:
                self._client.settle_async(command.opaque, pending, pending.callback, command)
        elif self._on_request is not None:
            self._on_request(channel, command)

    def on_close(self, channel: Channel) -> None:
        self._client.on_peer_closed(channel)
