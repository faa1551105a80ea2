"""Calls of a guest over gRPC as frames on the network, as emulated clients of RocketMQ 5 send them, and their answers.

A node answers a call with one frame, also where gRPC has a stream of messages; commands of a proxy to a client are
frames of their own.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from time import perf_counter
from typing import Any, Final, Protocol

import attrs
import trio

from emulator.guests.grpc.handlers import (
    BidirectionalMethod,
    CallContext,
    Methods,
    Requests,
    Responses,
    Serializer,
    StreamMethod,
    UnaryMethod,
)
from emulator.guests.grpc.messages import CallKind, ServiceMethod, service_methods
from emulator.guests.grpc.request_cost import TooManyValuesError
from emulator.guests.grpc.status import GrpcError, GrpcStatus
from emulator.guests.grpc.translation import IllegalTimeError, receive_message_parts, translation
from emulator.network.endpoint import BODY_BYTES_MAX, is_short
from nodes.protocol.answer_codes import STATUS_CODES
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.headers_proxy import CallMetadataHeader, GrpcErrorHeader
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_body, encode_header
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import ReceiveMessageResponse, TelemetryCommand

_BYTES: Final = Serializer(bytes, bytes)
"""Messages are translated here, because some that cannot be are answered."""
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CODES_OF_ERRORS: Mapping[int, Code] = {
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
}
"""What a call is answered that the node's server has refused; after other codes INTERNAL_SERVER_ERROR."""


class ChargedCpu(Protocol):
    """The account of the time that the connection takes."""

    def charge(self, began_s: float) -> None:
        """Work began at this reading of `time.perf_counter`, and ends now."""


@attrs.define(eq=False)
class _Waiting:
    """A call whose answer has not come."""

    has_come: trio.Event = attrs.field(factory=trio.Event)
    answer: Command | None = None
    """None: the node has closed the connection."""


@attrs.define(eq=False)
class _Stream:
    """The Telemetry call of a client."""

    client_id: str
    responses: Responses
    scope: trio.CancelScope


class CallBridge:
    """The calls of one connection.

    Args:
        send: sends a frame to the node.
        cpu: of the connection.
    """

    def __init__(self, send: Callable[[Command], None], cpu: ChargedCpu) -> None:
        self._send = send
        self._cpu = cpu
        self._opaques = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._streams: list[_Stream] = []
        """Telemetry calls, that with the latest settings last."""
        self._is_closed = False

    def methods(self) -> Methods:
        """The methods of `MessagingService`."""
        return {method.path: self._method(method) for method in service_methods()}

    def on_command(self, command: Command) -> None:
        """A frame of the node has arrived."""
        if not command.is_response:
            self._on_telemetry(command)
            return
        waiting = self._waiting.pop(command.opaque, None)
        if waiting is not None:
            waiting.answer = command
            waiting.has_come.set()

    def on_close(self) -> None:
        """The node has closed the connection: what waits for it has failed."""
        self._is_closed = True
        for waiting in self._waiting.values():
            waiting.has_come.set()
        for stream in self._streams:
            stream.scope.cancel()

    # --- methods -----------------------------------------------------------------

    def _method(self, method: ServiceMethod) -> UnaryMethod | StreamMethod | BidirectionalMethod:
        name = f"V2_{_WORDS.sub('_', method.name).upper()}"
        code = RequestCode.__members__.get(name)
        if code is None:
            return UnaryMethod(_BYTES, _unimplemented)
        if method.kind is CallKind.BIDIRECTIONAL:
            return BidirectionalMethod(_BYTES, self._telemetry)
        if method.kind is CallKind.SERVER_STREAM:
            return StreamMethod(_BYTES, self._receive_message)
        return UnaryMethod(_BYTES, _Unary(self, code))

    async def ask(self, code: RequestCode, context: CallContext, content: bytes) -> Any:
        """The answer to a call, as a value.

        Raises:
            GrpcError: the call fails with this status.
        """
        exchange = EXCHANGES[code]
        assert exchange.request_body is not None
        assert exchange.response_body is not None
        began_s = perf_counter()
        try:
            request = translation(exchange.request_body).from_bytes(content)
        except IllegalTimeError as error:
            text = f"java.lang.IllegalArgumentException: {error}"
            return exchange.response_body(Status(Code.INTERNAL_SERVER_ERROR, text))
        except TooManyValuesError as error:
            return exchange.response_body(Status(Code.PAYLOAD_TOO_LARGE, str(error)))
        command = self._command(code, context, request)
        self._cpu.charge(began_s)
        if not is_short(command.body):
            text = f"a request of {len(content)} bytes: the network of the emulator carries {BODY_BYTES_MAX} at most"
            return exchange.response_body(Status(Code.PAYLOAD_TOO_LARGE, text))
        return _value(await self._answer(command), exchange.response_body)

    def _command(self, code: RequestCode, context: CallContext, request: Any, flag: int = 0) -> Command:
        fields = encode_header(_header(context))
        return Command(int(code), flag, next(self._opaques), ext_fields=fields, body=encode_body(request))

    async def _answer(self, command: Command) -> Command:
        waiting = self._waiting[command.opaque] = _Waiting()
        if self._is_closed:
            waiting.has_come.set()
        self._send(command)
        try:
            await waiting.has_come.wait()
        finally:
            self._waiting.pop(command.opaque, None)
        if waiting.answer is None:
            raise GrpcError(GrpcStatus.UNAVAILABLE, "the proxy has closed the connection")
        return waiting.answer

    async def _receive_message(self, context: CallContext, content: bytes, responses: Responses) -> None:
        answer: ReceiveMessageResponse = await self.ask(RequestCode.V2_RECEIVE_MESSAGE, context, content)
        for part in self._parts(answer):
            responses.send(part)
            await responses.until_ready()

    def _parts(self, answer: ReceiveMessageResponse) -> Iterator[bytes]:
        parts = receive_message_parts(answer)
        began_s = perf_counter()
        for part in parts:
            self._cpu.charge(began_s)
            yield part
            began_s = perf_counter()

    # --- Telemetry ---------------------------------------------------------------

    async def _telemetry(self, context: CallContext, requests: Requests, responses: Responses) -> None:
        stream = _Stream(_client_id(context), responses, trio.CancelScope())
        self._streams.append(stream)
        if self._is_closed:
            stream.scope.cancel()
        try:
            with stream.scope:
                while (content := await requests.receive()) is not None:
                    if not await self._on_client_command(stream, context, content):
                        return
                return
        finally:
            self._streams.remove(stream)
        raise GrpcError(GrpcStatus.UNAVAILABLE, "the proxy has closed the connection")

    async def _on_client_command(self, stream: _Stream, context: CallContext, content: bytes) -> bool:
        """Pass a command of the client on; a proxy answers settings alone.

        Returns:
            Whether the stream goes on: a proxy ends it after a status without settings (`ResponseWriter`).
        """
        try:
            command = translation(TelemetryCommand).from_bytes(content)
        except IllegalTimeError as error:
            raise GrpcError(GrpcStatus.INTERNAL, str(error)) from None
        except TooManyValuesError as error:
            raise GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, str(error)) from None
        code = RequestCode.V2_TELEMETRY
        if command.settings is None:
            self._send(self._command(code, context, command, CommandFlag.ONEWAY))
            return True
        self._streams.remove(stream)
        self._streams.append(stream)
        answer = await self._answer(self._command(code, context, command))
        value: TelemetryCommand = _value(answer, TelemetryCommand)
        self._respond(stream, value)
        return value.settings is not None

    def _on_telemetry(self, frame: Command) -> None:
        """Pass a command of the proxy to the client that it names, or else to that with the latest settings."""
        if frame.code != RequestCode.V2_TELEMETRY:
            return
        client_id = decode_header(CallMetadataHeader, frame.ext_fields).client_id
        streams = [stream for stream in self._streams if client_id in (None, stream.client_id)]
        if streams:
            self._respond(streams[-1], decode_body(TelemetryCommand, frame.body))

    def _respond(self, stream: _Stream, command: TelemetryCommand) -> None:
        stream.responses.send(translation(TelemetryCommand).to_bytes(command))


class _Unary:
    """The handler of a method with one message each way."""

    def __init__(self, bridge: CallBridge, code: RequestCode) -> None:
        self._bridge = bridge
        self._code = code

    async def __call__(self, context: CallContext, content: bytes, /) -> bytes:
        answer = await self._bridge.ask(self._code, context, content)
        return translation(answer.__class__).to_bytes(answer)


async def _unimplemented(context: CallContext, _content: bytes, /) -> bytes:
    """Mirrors: the generated base class of a service, whose methods `GrpcMessagingApplication` leaves as they are."""
    raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"Method {context.head.path} is unimplemented")


def _value(answer: Command, kind: type) -> Any:
    """What the node has answered.

    Raises:
        GrpcError: the answer is a status of gRPC.
    """
    if answer.code == ResponseCode.SUCCESS or answer.code in STATUS_CODES:
        return decode_body(kind, answer.body)
    if answer.code == ResponseCode.GRPC_ERROR:
        status = decode_header(GrpcErrorHeader, answer.ext_fields).grpc_status
        raise GrpcError(GrpcStatus(status), answer.remark or "")
    code = _CODES_OF_ERRORS.get(answer.code, Code.INTERNAL_SERVER_ERROR)
    return kind(Status(code, answer.remark or ""))


def _header(context: CallContext) -> CallMetadataHeader:
    """Mirrors: `ContextInitPipeline`."""
    metadata = context.metadata
    remaining_ms = context.remaining_ms()
    return CallMetadataHeader(
        metadata.get("x-mq-client-id"),
        metadata.get("x-mq-language"),
        metadata.get("x-mq-client-version"),
        None if remaining_ms is None else int(remaining_ms),
        metadata.get("authorization"),
        metadata.get("x-mq-date-time"),
        metadata.get("x-mq-namespace"),
        metadata.get("x-mq-authorization-ak"),
    )


def _client_id(context: CallContext) -> str:
    return context.metadata.get("x-mq-client-id", "")
