"""The serving side: request codes to handlers, errors to RocketMQ's answers."""

from collections.abc import Awaitable, Callable

from nodes.config import RemotingServerConfig
from nodes.host import Channel, Host
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.rpc.idle import IdleWatch
from nodes.rpc.server_calls import ServerCalls

Handler = Callable[[Channel, Command], Command | None]
AsyncHandler = Callable[[Channel, Command], Awaitable[Command | None]]
"""Handlers return the answer, or None where they answer later or never."""


class RpcServer:
    """Answers requests; implements `nodes.host.ChannelHandler`.

    A plain handler runs inline with the arrival of its frame; an async one in a
    task of its own, so a held request blocks nobody.

    Error handling: an exception of a handler becomes a SYSTEM_ERROR answer with
    its text, as RocketMQ answers the exceptions of its processors; it is logged.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyRemotingServer`, `NettyRemotingAbstract#processRequestCommand`.
    """

    def __init__(
        self,
        host: Host,
        config: RemotingServerConfig | None = None,
        *,
        on_channel_closed: Callable[[Channel], None] | None = None,
    ) -> None:
        self._host = host
        self._idle_watch = IdleWatch(
            host, (config or RemotingServerConfig()).server_channel_max_idle_time_seconds, self._on_idle
        )
        self.calls = ServerCalls(host)
        """Asks those who have connected."""
        self._handlers: dict[int, Handler] = {}
        self._async_handlers: dict[int, AsyncHandler] = {}
        self._on_channel_closed = on_channel_closed

    def register(self, code: int, handler: Handler) -> None:
        """Have `handler` answer requests of a code, inline."""
        self._handlers[code] = handler

    def register_async(self, code: int, handler: AsyncHandler) -> None:
        """Have `handler` answer requests of a code, each in a task of its own."""
        self._async_handlers[code] = handler

    def on_open(self, channel: Channel) -> None:
        """A connection was accepted."""
        self._idle_watch.watch(channel)

    def on_command(self, channel: Channel, command: Command) -> None:
        """A frame arrived."""
        flag = command.flag
        if flag & CommandFlag.RESPONSE:
            self.calls.on_response(channel, command)
            return
        handler = self._handlers.get(command.code)
        if handler is None:
            self._dispatch_rare(channel, command)
            return
        try:
            answer = handler(channel, command)
        except Exception as error:  # noqa: BLE001 - answered as RocketMQ answers it
            answer = self._failed(command, error)
        if answer is not None and not flag & CommandFlag.ONEWAY:
            channel.send(answer)

    def on_close(self, channel: Channel) -> None:
        """The peer closed the channel, or it broke."""
        self.calls.on_closed(channel)
        if self._on_channel_closed is not None:
            self._on_channel_closed(channel)

    def _on_idle(self, channel: Channel) -> None:
        channel.close()
        self.on_close(channel)

    def _dispatch_rare(self, channel: Channel, command: Command) -> None:
        if command.code in self._async_handlers:
            self._host.start_soon(self._run_async, channel, command, name=f"request {command.code}")
        elif not command.is_oneway:
            remark = f"request type {command.code} not supported"
            channel.send(command.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark))

    async def _run_async(self, channel: Channel, command: Command) -> None:
        try:
            answer = await self._async_handlers[command.code](channel, command)
        except Exception as error:  # noqa: BLE001 - as above
            answer = self._failed(command, error)
        if answer is not None and not command.is_oneway:
            channel.send(answer)

    def _failed(self, command: Command, error: Exception) -> Command:
        text = f"{type(error).__name__}: {error}"
        self._host.log.warning("request failed", code=command.code, error=text)
        return command.answer(ResponseCode.SYSTEM_ERROR, text)
