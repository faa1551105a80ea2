"""A node in a live world that answers calls of RocketMQ 5 clients as a proxy does, and `grpcio` as their client."""

import ssl
from functools import partial
from importlib.resources import files

import grpc
import trio

from emulator.guests.grpc.messages import message_class
from emulator.testing.worlds import add_host, execute_world, process_of
from emulator.time.mode import TimeMode
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_proxy import CallMetadataHeader, GrpcErrorHeader
from nodes.protocol.registry import decode_body, decode_header, encode_body, encode_header
from nodes.protocol.v2 import definition, service
from nodes.protocol.v2.enums import Code
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer

GRPC_PORT = 8_081
SERVICE = "/apache.rocketmq.v2.MessagingService/"
METADATA = (("x-mq-client-id", "c@1"), ("x-mq-language", "PYTHON"), ("x-mq-client-version", "5.1.2"))
OK = definition.Status(Code.OK, "OK")
CERTIFICATE = (files("emulator.guests") / "tls" / "certificate.pem").read_bytes()


class DialedProxy:
    """The node, and how programs dial it."""

    def __init__(self, world):
        self.world = world
        self.node = add_host(world, 1, "proxy")
        self.process = process_of(self.node)
        self.other = process_of(add_host(world, 2, "other"))
        """A process that is never suspended."""
        self.physical = world.fabric.carrier.physical_ip(self.node.ip)
        self.headers, self.commands, self.observers = [], [], []
        self.held = 0
        self.body = b""
        """Of the messages that are received."""
        self.received = 2
        self.server = RpcServer(self.process)
        for code, handler in {
            RequestCode.V2_QUERY_ROUTE: self._query_route,
            RequestCode.V2_SEND_MESSAGE: self._send_message,
            RequestCode.V2_RECEIVE_MESSAGE: self._receive_message,
            RequestCode.V2_HEARTBEAT: self._hold,
            RequestCode.V2_TELEMETRY: self._telemetry,
            RequestCode.V2_ACK_MESSAGE: self._fail,
            RequestCode.V2_RECALL_MESSAGE: self._refuse,
        }.items():
            self.server.register(code, handler)
        self.process.listen(GRPC_PORT, self.server)

    @property
    def address(self):
        return f"{self.physical}:{GRPC_PORT}"

    def _query_route(self, _channel, request):
        self.headers.append(decode_header(CallMetadataHeader, request.ext_fields))
        body = decode_body(service.QueryRouteRequest, request.body)
        queue = definition.MessageQueue(body.topic, 3)
        return request.answer(body=encode_body(service.QueryRouteResponse(OK, (queue,))))

    def _send_message(self, _channel, request):
        message = decode_body(service.SendMessageRequest, request.body).messages[0]
        entry = service.SendResultEntry(OK, str(len(message.body)))
        return request.answer(body=encode_body(service.SendMessageResponse(OK, (entry,))))

    def _receive_message(self, _channel, request):
        message = definition.Message(definition.Resource("t"), {"k": "v"}, body=self.body)
        response = service.ReceiveMessageResponse(OK, (message,) * self.received, 1_500)
        return request.answer(body=encode_body(response))

    def _hold(self, _channel, _request):
        self.held += 1

    def _telemetry(self, channel, request):
        command = decode_body(service.TelemetryCommand, request.body)
        self.commands.append(command)
        if command.settings is None:
            return None
        if command.settings.subscription is not None:
            denied = definition.Status(Code.UNAUTHORIZED, "username cannot be null.")
            return request.answer(body=encode_body(service.TelemetryCommand(denied)))
        if command.settings.publishing is None:
            return request.answer(ResponseCode.GRPC_ERROR, "no publishing", encode_header(GrpcErrorHeader(3)))
        self.observers.append(channel)
        return request.answer(body=encode_body(service.TelemetryCommand(OK, command.settings)))

    def push(self, command):
        """Send a command to the client with the latest settings."""
        body = encode_body(command)
        self.server.calls.oneway(self.observers[-1], int(RequestCode.V2_TELEMETRY), body=body)

    def _fail(self, _channel, _request):
        raise ValueError("boom")

    def _refuse(self, _channel, request):
        return request.answer(ResponseCode.SYSTEM_BUSY, "later")

    async def call(self, name, request, *, channel, timeout_s=10, metadata=METADATA):
        """Make a call with `grpcio`; returns the response."""
        make = method(channel, name)
        return await in_thread(partial(make, request, timeout=timeout_s, metadata=metadata))

    async def all_is_well(self):
        """Whether an emulated client is served all the same."""
        client = RpcClient(process_of(add_host(self.world, 9, "client")))
        await self.world.clock.idle()
        body = encode_body(service.QueryRouteRequest(definition.Resource("t")))
        fields = encode_header(CallMetadataHeader("e"))
        code = int(RequestCode.V2_QUERY_ROUTE)
        answer = await client.call(f"{self.node.ip}:{GRPC_PORT}", code, fields, body, timeout_ms=5_000)
        return answer.code == 0 and self.node.power_state == "running"


def method(channel, name):
    """A method of the service, with the messages of the definitions."""
    response = message_class(f"{name}Response")
    make = channel.unary_stream if name == "ReceiveMessage" else channel.unary_unary
    return make(SERVICE + name, lambda message: message.SerializeToString(), response.FromString)


def telemetry(channel, commands):
    """The Telemetry call of a client that sends these."""
    command = message_class("TelemetryCommand")
    make = channel.stream_stream(SERVICE + "Telemetry", lambda message: message.SerializeToString(), command.FromString)
    return make(commands, metadata=METADATA)


async def in_thread(call):
    return await trio.to_thread.run_sync(call, abandon_on_cancel=True)


def tls_context():
    """What a program needs to trust the test certificate."""
    context = ssl.create_default_context(cadata=CERTIFICATE.decode())
    context.set_alpn_protocols(["h2"])
    return context


OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]


def plain_channel(stage):
    return grpc.insecure_channel(stage.address, OPTIONS)


def tls_channel(stage):
    name = ("grpc.ssl_target_name_override", "localhost")
    return grpc.secure_channel(stage.address, grpc.ssl_channel_credentials(CERTIFICATE), [*OPTIONS, name])


def live_proxy(scene):
    async def main(world):
        stage = DialedProxy(world)
        return await scene(stage)

    return execute_world(main, mode=TimeMode.LIVE)
