"""Ask two real proxies of 5.3.3 the questions of `conformance.proxy_questions`, and write their answers down.

    python -m studies.proxy_answers BROKER PROXY PROXY > tests/vectors/proxy/answers.json

All three are `HOST:PORT`: the remoting port of a fresh broker named `broker-a`, and the gRPC ports of two proxies of
its cluster. The broker has `autoCreateTopicEnable = false` and `recallMessageEnable = true`.
"""

import asyncio
import json
import socket
import sys
import time
from collections.abc import Iterable
from typing import Any

import attrs
import grpc
import grpc.aio

from conformance.proxy_probe import TYPES, Probe
from conformance.proxy_questions import QUESTIONS
from emulator.guests.grpc.messages import CallKind, ServiceMethod, service_methods
from emulator.guests.grpc.translation import translation
from emulator.guests.remoting.body_json import encode_json_body
from emulator.guests.remoting.remoting_command import (
    LanguageCode,
    RemotingCommand,
    RemotingDecoder,
    SerializeType,
    encode_remoting,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import SubscriptionGroupConfig
from nodes.protocol.registry import EXCHANGES
from support.proxy_guest import GrpcFailure
from support.received_message import received_message

_Fields = dict[str | None, str | None]
_Request = tuple[RequestCode, _Fields, bytes | None]
_SETTLE_S = 3
"""Until topics have reached the nameserver."""


@attrs.define
class RealProxies:
    """Two proxies over gRPC; implements `ProxyCalls`."""

    channels: tuple[grpc.aio.Channel, ...]
    streams: dict[tuple[int, str], Any] = attrs.Factory(dict)
    """The stream of each client, which stays open."""

    async def call(
        self, code: RequestCode, request: Any, proxy: int, client_id: str, language: str, version: str, timeout_ms: int
    ) -> Any:
        """Call a method; a telemetry command goes over the stream of the client."""
        method = _methods()[code]
        form: Any = type(request)
        metadata = [("x-mq-client-id", client_id), ("x-mq-language", language), ("x-mq-client-version", version)]
        given = translation(form).to_bytes(request)
        channel, path = self.channels[proxy], f"/{method.path}"
        try:
            match method.kind:
                case CallKind.UNARY:
                    unary = channel.unary_unary(path)
                    raw = await unary(given, metadata=metadata, timeout=timeout_ms / 1_000)
                case CallKind.SERVER_STREAM:
                    stream = channel.unary_stream(path)(given, metadata=metadata, timeout=timeout_ms / 1_000)
                    return received_message([part async for part in stream])
                case CallKind.BIDIRECTIONAL:
                    raw = await self._command(channel.stream_stream(path), proxy, client_id, metadata, given)
        except grpc.aio.AioRpcError as error:
            return GrpcFailure(error.code().value[0], error.details() or "")
        kind = EXCHANGES[code].response_body
        assert kind is not None
        return translation(kind).from_bytes(raw)

    async def _command(self, open_stream: Any, proxy: int, client_id: str, metadata: Any, given: bytes) -> bytes:
        stream = open_stream(metadata=metadata)
        await stream.write(given)
        raw: bytes = await stream.read()
        if raw is grpc.aio.EOF:
            raise grpc.aio.AioRpcError(
                await stream.code(), grpc.aio.Metadata(), grpc.aio.Metadata(), await stream.details()
            )
        self.streams[proxy, client_id] = stream
        return raw

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let real time pass."""
        await asyncio.sleep(duration_ms / 1_000)

    def now_ms(self) -> int:
        """The wall clock of this machine."""
        return int(time.time() * 1_000)


def _methods() -> dict[RequestCode, ServiceMethod]:
    by_request = {method.request.DESCRIPTOR.name: method for method in service_methods()}
    return {
        code: by_request[exchange.request_body.__name__]
        for code, exchange in EXCHANGES.items()
        if code.name.startswith("V2_") and exchange.request_body is not None
    }


def topic_request(name: str, kind: str) -> _Request:
    """The request that creates a topic of one queue."""
    fields: _Fields = {
        "topic": name,
        "defaultTopic": "TBW102",
        "readQueueNums": "1",
        "writeQueueNums": "1",
        "perm": "6",
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
        "attributes": f"+message.type={kind}",
    }
    return RequestCode.UPDATE_AND_CREATE_TOPIC, fields, None


def ask_broker(broker: str, requests: Iterable[_Request]) -> None:
    """Send requests to a broker, one after the other."""
    host, port = broker.rsplit(":", 1)
    decoder = RemotingDecoder()
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for opaque, (code, fields, body) in enumerate(requests):
            form = SerializeType.JSON
            command = RemotingCommand(int(code), LanguageCode.JAVA, 475, opaque, 0, None, fields, body, form)
            connection.sendall(encode_remoting(command))
            while (answer := decoder.next()) is None:
                decoder.take(connection.recv(65_536))
            assert answer.code == ResponseCode.SUCCESS, answer


def prepare(broker: str) -> None:
    """Create the topics of all questions, and the orderly group."""
    group = encode_json_body(SubscriptionGroupConfig("orderly", consume_message_orderly=True))
    topics = [topic_request(f"{name}-{kind}", kind) for name in QUESTIONS for kind in TYPES]
    ask_broker(broker, [*topics, (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group)])


async def answers(proxies: tuple[str, ...]) -> dict[str, Any]:
    """The answers to all questions, which are asked at the same time."""
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    calls = RealProxies(tuple(grpc.aio.insecure_channel(address, options) for address in proxies))
    probes = {name: Probe(calls, name) for name in QUESTIONS}
    await asyncio.gather(*(QUESTIONS[name](probe) for name, probe in probes.items()))
    return {name: probe.answers for name, probe in probes.items()}


def main() -> None:
    """Prepare the broker, ask, and print."""
    broker, *proxies = sys.argv[1:]
    prepare(broker)
    time.sleep(_SETTLE_S)
    json.dump(asyncio.run(answers(tuple(proxies))), sys.stdout, indent=1, sort_keys=True, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
