"""The server: dispatch of requests, answers for errors, records of administrators, requests to connected clients."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count
from typing import Protocol

import attrs
import trio

from nodes.beliefs import AdminRecord
from nodes.cause import cause
from nodes.config import RemotingServerConfig
from nodes.host import NO_CONNECTION, Channel, Host
from nodes.protocol.administration import ADMIN_REQUESTS, changes_of
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import LANGUAGE, NO_FIELDS, VERSION, Command, CommandFlag
from nodes.protocol.errors import TableFullError
from nodes.rpc.errors import RemotingError, RemotingSendRequestError, RemotingTimeoutError
from nodes.rpc.idle import IdleWatch
from nodes.values import frozen

Handler = Callable[[Channel, Command], "Command | InTask | None"]
"""Returns the answer; None if it answers later or never; or what remains to be done in a task, if it has to wait.

It is called when the request arrives, without a task.
"""


@frozen
class InTask:
    """An async handler: each request runs in its own task, so a handler that waits blocks no other request."""

    handle: Callable[[Channel, Command], Awaitable[Command | None]]


Process = Callable[[Channel, Command, Callable[[], None]], None]
"""Handles a request, and calls the function when it is answered, or held until it is answered later."""


Wake = Callable[[Channel, Command, Process], bool]
"""Gives a held request to a thread again; returns whether there was one, or a place to wait for it."""


class Executors(Protocol):
    """Threads of a server that handle requests when they can."""

    def submit(self, channel: Channel, request: Command, process: Process) -> None:
        """Have a request that has arrived processed, or refuse it."""


Handlers = Mapping[RequestCode, Handler | InTask]
"""Request code -> handler; a node passes the tables of all its parts to `RpcServer.serve`."""


class HandlerExistsError(ValueError):
    """A request code has two handlers."""

    def __init__(self, code: int) -> None:
        super().__init__(f"request code {code} has a handler already; remove one of the two")
        self.code = code


Record = Callable[[Command], None]
"""Called with the answer to a request."""


class AdminRecords:
    """Records each request by which an administrator has changed something.

    An operator's verb hands its requests to a node without a connection. They are faults, which have rows of their own.

    Args:
        broker_name: of the broker that is asked; empty: the node is none.

    Emits:
        An `AdminRecord` for each thing that the request names, when it is answered with SUCCESS.
    """

    def __init__(self, host: Host, broker_name: str) -> None:
        self._host = host
        self._broker_name = broker_name

    def begin(self, channel: Channel, request: Command) -> Record:
        """A request has arrived; returns what has to be called with its answer."""
        kind = ADMIN_REQUESTS[request.code]
        if channel.id == NO_CONNECTION or not kind.is_change(request):
            return _ignore
        return partial(self._record, channel.remote_address, request, self._host.clock.monotonic_ns())

    def _record(self, client: str, request: Command, began_ns: int, answer: Command) -> None:
        if answer.code != ResponseCode.SUCCESS:
            return
        name = RequestCode(request.code).name
        for item in changes_of(request):
            broker_name = item.broker_name or self._broker_name
            self._host.record(AdminRecord(name, item.topic, item.group, broker_name, client, began_ns, item.detail))


def _ignore(_answer: Command) -> None:
    """The request is no administrator's, or changes nothing."""


class RpcServer:
    """Answers requests; implements `nodes.host.ChannelHandler`.

    Error handling: an exception of a handler becomes a SYSTEM_ERROR answer with
    its text, as RocketMQ answers the exceptions of its processors; it is logged.
    A full table is answered with SYSTEM_BUSY.

    Args:
        answers_unknown: whether a request without handler is reported so; else it gets no answer.
        refusal: asked first for each request; returns the answer to one that is refused, else None.
        executors: the threads that handle requests; None: each is handled when it arrives.
        broker_name: of the broker that it serves; empty: it serves another node.

    Emits:
        An `AdminRecord` when a request of an administrator has been carried out.

    Mirrors:
        `org.apache.rocketmq.remoting.netty.NettyRemotingServer`, `NettyRemotingAbstract#processRequestCommand`.
    """

    def __init__(
        self,
        host: Host,
        config: RemotingServerConfig | None = None,
        *,
        on_channel_closed: Callable[[Channel], None] | None = None,
        answers_unknown: bool = True,
        refusal: Callable[[Channel, Command], Command | None] | None = None,
        broker_name: str = "",
        executors: Executors | None = None,
    ) -> None:
        self._host = host
        self._executors = executors
        self._admin_records = AdminRecords(host, broker_name)
        self._refusal = refusal
        self._answers_unknown = answers_unknown
        self._idle_watch = IdleWatch(
            host, (config or RemotingServerConfig()).server_channel_max_idle_time_seconds, self._on_idle
        )
        self.calls = ServerCalls(host)
        """Sends requests to connected clients."""
        self._handlers: dict[int, Handler] = {}
        self._handlers_in_tasks: dict[int, InTask] = {}
        self._on_channel_closed = on_channel_closed

    def shutdown(self) -> None:
        """Close all connections, without notice to those that hear of closed ones."""
        for channel in self._idle_watch.open_channels:
            channel.close()

    def serve(self, *tables: Handlers) -> None:
        """Add the handlers of all tables.

        Raises:
            HandlerExistsError: a code has two handlers.
        """
        for table in tables:
            for code, handler in table.items():
                self.register(code, handler)

    def answers(self, code: int) -> bool:
        """Whether a request code has a handler."""
        return code in self._handlers or code in self._handlers_in_tasks

    def register(self, code: int, handler: Handler | InTask) -> None:
        """Add the handler of a request code.

        Raises:
            HandlerExistsError: the code has one already.
        """
        if self.answers(code):
            raise HandlerExistsError(code)
        if code in ADMIN_REQUESTS:
            handler = self._recorded(handler)
        if isinstance(handler, InTask):
            self._handlers_in_tasks[code] = handler
        else:
            self._handlers[code] = handler

    def reply_to(self, channel: Channel, request: Command) -> Callable[[Command], None]:
        """What sends the answer to a request whose handler answers later; to be called when the request arrives."""
        if request.code not in ADMIN_REQUESTS:
            return channel.send
        record = self._admin_records.begin(channel, request)

        def reply(answer: Command) -> None:
            record(answer)
            channel.send(answer)

        return reply

    def on_open(self, channel: Channel) -> None:
        """A connection was accepted."""
        self._idle_watch.watch(channel)

    def on_command(self, channel: Channel, command: Command) -> None:
        """A frame arrived."""
        flag = command.flag
        if flag & CommandFlag.RESPONSE:
            self.calls.on_response(channel, command)
            return
        if self._executors is None:
            self._process(channel, command, None)
        else:
            self._executors.submit(channel, command, self._process)

    def _process(self, channel: Channel, command: Command, done: Callable[[], None] | None) -> None:
        """Handle a request; `done` is called when its thread is free, where there are threads."""
        is_oneway = command.flag & CommandFlag.ONEWAY
        if self._refusal is not None and (refused := self._refusal(channel, command)) is not None:
            if not is_oneway:
                channel.send(refused)
        elif (handler := self._handlers.get(command.code)) is None:
            in_task = self._handlers_in_tasks.get(command.code)
            if in_task is not None:
                self._start(in_task, channel, command, done)
                return
            if self._answers_unknown and not is_oneway:
                remark = f"request type {command.code} not supported"
                channel.send(command.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark))
        else:
            try:
                answer = handler(channel, command)
            except Exception as error:  # noqa: BLE001 - answered as RocketMQ answers it
                answer = self._failed(command, error)
            if isinstance(answer, InTask):
                self._start(answer, channel, command, done)
                return
            if answer is not None and not is_oneway:
                channel.send(answer)
        if done is not None:
            done()

    def on_close(self, channel: Channel) -> None:
        """The peer closed the channel, or it broke."""
        self.calls.on_closed(channel)
        if self._on_channel_closed is not None:
            self._on_channel_closed(channel)

    def _on_idle(self, channel: Channel) -> None:
        channel.close()
        self.on_close(channel)

    def _start(self, handler: InTask, channel: Channel, command: Command, done: Callable[[], None] | None) -> None:
        self._host.start_soon(self._run_in_task, handler, channel, command, done, name=f"request {command.code}")

    async def _run_in_task(
        self, handler: InTask, channel: Channel, command: Command, done: Callable[[], None] | None
    ) -> None:
        try:
            answer = await handler.handle(channel, command)
        except Exception as error:  # noqa: BLE001 - as above
            answer = self._failed(command, error)
        if answer is not None and not command.flag & CommandFlag.ONEWAY:
            channel.send(answer)
        if done is not None:
            done()

    def _recorded(self, handler: Handler | InTask) -> Handler | InTask:
        """A handler of a request by which an administrator changes something, with the record of that."""
        if isinstance(handler, InTask):
            return InTask(partial(self._handle_recorded, handler))
        return partial(self._answer_recorded, handler)

    def _answer_recorded(self, handler: Handler, channel: Channel, request: Command) -> Command | InTask | None:
        record = self._admin_records.begin(channel, request)
        answer = handler(channel, request)
        if isinstance(answer, InTask):
            return InTask(partial(_record_later, record, answer))
        if answer is not None:
            record(answer)
        return answer

    async def _handle_recorded(self, handler: InTask, channel: Channel, request: Command) -> Command | None:
        return await _record_later(self._admin_records.begin(channel, request), handler, channel, request)

    def _failed(self, command: Command, error: Exception) -> Command:
        if isinstance(error, TableFullError):
            return command.answer(ResponseCode.SYSTEM_BUSY, str(error))
        text = f"{type(error).__name__}: {error}"
        self._host.log.warning("request failed", code=command.code, error=text)
        return command.answer(ResponseCode.SYSTEM_ERROR, text)


async def _record_later(record: Record, handler: InTask, channel: Channel, request: Command) -> Command | None:
    answer = await handler.handle(channel, request)
    if answer is not None:
        record(answer)
    return answer


@attrs.define(eq=False)
class _WaitingCall:
    """A call that waits for its answer."""

    channel: Channel
    answered: trio.Event = attrs.field(factory=trio.Event)
    reply: Command | None = None
    cause: int = 0


class ServerCalls:
    """Sends requests to connected clients; they are rare, so each call has its own event."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._opaque = count(1)
        self._waiting: dict[tuple[int, int], _WaitingCall] = {}

    async def call(
        self,
        channel: Channel,
        code: int,
        ext_fields: Mapping[str, str] = NO_FIELDS,
        body: bytes | None = None,
        *,
        timeout_ms: int,
    ) -> Command:
        """Send a request and wait for the answer, whatever its code.

        Raises:
            RemotingSendRequestError: the channel is closed, or closed first.
            RemotingTimeoutError: no answer within `timeout_ms`; the channel stays open.
        """
        if channel.closed:
            raise _closed(channel)
        opaque = next(self._opaque)
        waiting = self._waiting[channel.id, opaque] = _WaitingCall(channel)
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
        """Send a oneway request; a closed channel drops it."""
        opaque = next(self._opaque)
        channel.send(Command(code, CommandFlag.ONEWAY, opaque, ext_fields=ext_fields, body=body, cause=cause.get()))

    def on_response(self, channel: Channel, answer: Command) -> None:
        """Handle an answer; one without waiting call is ignored."""
        waiting = self._waiting.pop((channel.id, answer.opaque), None)
        if waiting is not None:
            waiting.reply = answer
            waiting.cause = cause.get()
            waiting.answered.set()

    def on_closed(self, channel: Channel) -> None:
        """Fail the calls that wait on a closed channel."""
        for key in [key for key in self._waiting if key[0] == channel.id]:
            self._waiting.pop(key).answered.set()


def _closed(channel: Channel) -> RemotingError:
    return RemotingSendRequestError(f"send request to <{channel.remote_address}> failed: the connection is closed")
