"""Programs that speak gRPC to a node that answers calls: `grpcio` as the client, plaintext and TLS on one port."""

import sys
from contextlib import closing
from functools import partial
from threading import Event

import grpc
import pytest
import trio

from emulator.guests.grpc.messages import message_class
from nodes.protocol.v2 import definition, service
from nodes.protocol.v2.enums import Code
from support.dialed_node import malformed
from support.dialed_proxy import (
    METADATA,
    in_thread,
    live_proxy,
    method,
    plain_channel,
    telemetry,
    tls_channel,
)
from support.limited import limit

MIB = 1024 * 1024
CHANNELS = pytest.mark.parametrize("dial", [plain_channel, tls_channel])


def route_request(topic="t"):
    return message_class("QueryRouteRequest")(topic={"name": topic})


def send_request(body):
    return message_class("SendMessageRequest")(messages=[{"topic": {"name": "t"}, "body": body}])


def settings(**fields):
    return message_class("TelemetryCommand")(settings=fields)


async def _status_of(stage, name, request, **options):
    with pytest.raises(grpc.RpcError) as caught:
        await stage.call(name, request, **options)
    return caught.value.code(), caught.value.details()


@CHANNELS
def test_a_unary_call_reaches_the_node_with_its_metadata(dial):
    async def scene(stage):
        with closing(dial(stage)) as channel:
            response = await stage.call("QueryRoute", route_request(), channel=channel)
        return response, stage.headers[0]

    response, header = live_proxy(scene).result
    assert (response.status.code, response.status.message) == (Code.OK, "OK")
    assert [(queue.topic.name, queue.id) for queue in response.message_queues] == [("t", 3)]
    assert (header.client_id, header.language, header.client_version) == ("c@1", "PYTHON", "5.1.2")
    assert 9_000 < header.remaining_ms <= 10_000


@CHANNELS
def test_large_messages_pass_in_both_directions(dial):
    async def scene(stage):
        stage.body, stage.received = b"x" * (4 * MIB), 3
        with closing(dial(stage)) as channel:
            sent = await stage.call("SendMessage", send_request(b"y" * (4 * MIB)), channel=channel)
            make = partial(method(channel, "ReceiveMessage"), metadata=METADATA, timeout=20)
            parts = await in_thread(lambda: list(make(message_class("ReceiveMessageRequest")())))
        return sent.entries[0].message_id, [part.WhichOneof("content") for part in parts], parts[1].message.body

    length, kinds, body = live_proxy(scene).result
    assert length == str(4 * MIB)
    assert kinds == ["status", *["message"] * 3, "delivery_timestamp"]
    assert body == b"x" * (4 * MIB)


def test_settings_are_answered_and_commands_of_the_node_reach_the_client():
    async def scene(stage):
        send, receive = trio.open_memory_channel(10)
        with closing(plain_channel(stage)) as channel:
            ended = trio.Event()
            token = trio.lowlevel.current_trio_token()

            def commands():
                yield settings(publishing={"topics": [{"name": "t"}]}, client_type=1)
                yield message_class("TelemetryCommand")(thread_stack_trace={"nonce": "n"})
                trio.from_thread.run(ended.wait, trio_token=token)

            def read(call):
                for command in call:
                    trio.from_thread.run_sync(send.send_nowait, command, trio_token=token)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(in_thread, partial(read, telemetry(channel, commands())))
                answer = await receive.receive()
                orphan = service.RecoverOrphanedTransactionCommand(definition.Message(body=b"b"), "tx")
                stage.push(service.TelemetryCommand(recover_orphaned_transaction_command=orphan))
                pushed = await receive.receive()
                ended.set()
        return answer, pushed, stage.commands

    answer, pushed, commands = live_proxy(scene).result
    assert (answer.status.code, answer.settings.publishing.topics[0].name) == (Code.OK, "t")
    assert pushed.recover_orphaned_transaction_command.transaction_id == "tx"
    assert [command.settings is None for command in commands] == [False, True]
    assert commands[1].thread_stack_trace.nonce == "n"


def test_settings_that_are_refused_end_the_stream_with_the_status_of_the_node():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            call = telemetry(channel, iter([settings(client_type=1)]))
            with pytest.raises(grpc.RpcError) as caught:
                await in_thread(lambda: list(call))
        return caught.value.code(), caught.value.details()

    assert live_proxy(scene).result == (grpc.StatusCode.INVALID_ARGUMENT, "no publishing")


def test_settings_that_are_denied_get_a_status_and_end_the_stream_without_an_error():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            may_end, ended = Event(), []

            def commands():
                yield settings(subscription={"group": {"name": "g"}})
                ended.append(may_end.wait(5))

            call = telemetry(channel, commands())
            answers = await in_thread(lambda: list(call))
            before = list(ended)
            may_end.set()
            return answers, await in_thread(call.code), before

    (answer,), code, ended_before = live_proxy(scene).result
    assert ended_before == []  # the client had not ended its side
    assert (answer.status.code, answer.status.message) == (Code.UNAUTHORIZED, "username cannot be null.")
    assert not answer.HasField("settings")
    assert code is grpc.StatusCode.OK


def test_the_user_and_the_signature_of_a_call_reach_the_node():
    signed = (("authorization", "MQv2-HMAC-SHA1 Credential=a, Signature=00"), ("x-mq-date-time", "20250101T000000Z"))
    claims = (("x-mq-authorization-ak", "rocketmq-root"),)

    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            metadata = (*METADATA, *signed, *claims)
            await stage.call("QueryRoute", route_request(), channel=channel, metadata=metadata)
        return stage.headers[0]

    header = live_proxy(scene).result
    assert (header.authorization, header.date_time) == (signed[0][1], signed[1][1])
    assert header.authorization_ak == "rocketmq-root"


def test_a_call_whose_answer_does_not_come_ends_at_its_deadline():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            request = message_class("HeartbeatRequest")()
            status, _ = await _status_of(stage, "Heartbeat", request, channel=channel, timeout_s=0.2)
            next_one = await stage.call("QueryRoute", route_request(), channel=channel)
        return status, stage.held, next_one.status.code, await stage.all_is_well()

    assert live_proxy(scene).result == (grpc.StatusCode.DEADLINE_EXCEEDED, 1, Code.OK, True)


def test_a_call_that_is_cancelled_leaves_the_others_alone():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            call = method(channel, "Heartbeat").future(message_class("HeartbeatRequest")(), metadata=METADATA)
            while not stage.held:
                await trio.lowlevel.checkpoint()
            call.cancel()
            next_one = await stage.call("QueryRoute", route_request(), channel=channel)
        return call.code(), next_one.status.code

    assert live_proxy(scene).result == (grpc.StatusCode.CANCELLED, Code.OK)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/apache.rocketmq.v2.MessagingService/SyncLiteSubscription", "Method not found: {}"),
        ("/apache.rocketmq.v2.MessagingService/GetOffset", "Method {} is unimplemented"),
        ("/grpc.health.v1.Health/Check", "Method not found: {}"),
    ],
)
def test_methods_that_no_proxy_has_are_unimplemented(path, text):
    async def scene(stage):
        with closing(plain_channel(stage)) as channel, pytest.raises(grpc.RpcError) as caught:
            await in_thread(lambda: channel.unary_unary(path)(b"", timeout=5))
        return caught.value.code(), caught.value.details()

    assert live_proxy(scene).result == (grpc.StatusCode.UNIMPLEMENTED, text.format(path[1:]))


def test_a_request_that_the_node_s_server_refuses_is_answered_with_a_code_of_its_own():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            failed = await stage.call("AckMessage", message_class("AckMessageRequest")(), channel=channel)
            busy = await stage.call("RecallMessage", message_class("RecallMessageRequest")(), channel=channel)
            missing = await stage.call("EndTransaction", message_class("EndTransactionRequest")(), channel=channel)
        return failed.status, busy.status, missing.status

    failed, busy, missing = live_proxy(scene).result
    assert (failed.code, "boom" in failed.message) == (Code.INTERNAL_SERVER_ERROR, True)
    assert (busy.code, busy.message) == (Code.TOO_MANY_REQUESTS, "later")
    assert missing.code == Code.NOT_IMPLEMENTED


def test_a_duration_that_java_refuses_is_an_error_of_the_call():
    async def scene(stage):
        request = message_class("ChangeInvisibleDurationRequest")(invisible_duration={"seconds": 1, "nanos": -1})
        with closing(plain_channel(stage)) as channel:
            return (await stage.call("ChangeInvisibleDuration", request, channel=channel)).status

    status = live_proxy(scene).result
    assert status.code == Code.INTERNAL_SERVER_ERROR
    assert status.message == "java.lang.IllegalArgumentException: Duration is not valid: seconds 1, nanos -1"


def test_a_request_that_no_frame_of_the_network_carries_is_refused():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            refused = await stage.call("SendMessage", send_request(b"y" * (17 * MIB)), channel=channel)
            next_one = await stage.call("QueryRoute", route_request(), channel=channel)
        return refused.status, next_one.status.code

    refused, next_code = live_proxy(scene).result
    assert (refused.code, next_code) == (Code.PAYLOAD_TOO_LARGE, Code.OK)
    assert refused.message.endswith("the network of the emulator carries 16711680 at most")


@pytest.mark.parametrize("suspend", ["node", "guest"])
def test_a_call_to_or_from_a_suspended_process_is_answered_when_it_is_resumed(suspend):
    async def scene(stage):
        program = stage.world.guests.program("guest")
        with closing(plain_channel(stage)) as channel:
            await stage.call("QueryRoute", route_request(), channel=channel)
            await stage.node.suspend() if suspend == "node" else program.suspend()
            call = method(channel, "QueryRoute").future(route_request(), metadata=METADATA, timeout=10)
            await stage.other.sleep_ms(300)
            before = call.done(), len(stage.headers)
            await stage.node.resume() if suspend == "node" else program.resume(stage.world.fabric)
            response = await in_thread(call.result)
        return before, response.status.code

    assert live_proxy(scene).result == ((False, 1), Code.OK)


def test_a_call_beyond_a_limit_of_guests_is_answered_as_a_busy_proxy_does():
    async def scene(stage):
        limit(stage, cpu_debt_ms=1_000, memory_bytes=1)
        with closing(plain_channel(stage)) as channel:
            return (await stage.call("QueryRoute", route_request(), channel=channel)).status

    status = live_proxy(scene).result
    assert status.code == Code.TOO_MANY_REQUESTS
    assert "guest_limits.memory_bytes" in status.message


def test_a_node_that_ends_finishes_its_calls_as_unavailable():
    async def scene(stage):
        with closing(plain_channel(stage)) as channel:
            call = method(channel, "Heartbeat").future(message_class("HeartbeatRequest")(), metadata=METADATA)
            while not stage.held:
                await trio.lowlevel.checkpoint()
            stage.server.shutdown()
            with pytest.raises(grpc.RpcError):
                await in_thread(call.result)
        return call.code()

    assert live_proxy(scene).result is grpc.StatusCode.UNAVAILABLE


async def _read_all(stage, chunk):
    stream = await trio.open_tcp_stream(stage.physical, 8_081)
    got = b""
    async with stream:
        await stream.send_all(chunk)
        async for received in stream:
            got += received
    return got


@pytest.mark.parametrize(
    ("chunk", "row"),
    [
        (b"POST / HTTP/1.1\r\n\r\n", "looks like HTTP: begins with 50 4f 53 54 20 2f 20 48"),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "looks like the PROXY protocol: begins with 50 52 4f 58 59 20 54 43"),
        (b"PRI * HTTP/2.0\r\n\r\nNO", "not HTTP/2: ProtocolError: Invalid HTTP/2 preamble."),
        (b"\x16\x03\x01\x00\x05hello", "no handshake of TLS: "),
    ],
)
def test_bytes_of_another_protocol_end_their_connection_with_one_row(chunk, row):
    async def scene(stage):
        got = await _read_all(stage, chunk)
        return got, await stage.all_is_well()

    executed = live_proxy(scene)
    rows = malformed(executed)
    assert executed.result[1]
    assert len(rows) == 1
    assert row in rows[0]


@pytest.mark.parametrize("chunk", [b"\x16\x03\x01", b"P"])
def test_a_guest_that_stops_in_its_first_bytes_is_sent_away(chunk):
    async def scene(stage):
        limit(stage, silent_ms=50)
        with trio.move_on_after(20):
            await _read_all(stage, chunk)
            return await stage.all_is_well()

    assert live_proxy(scene).result


def test_without_the_extra_a_guest_is_refused_with_the_line_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "h2", None)

    async def scene(stage):
        return await _read_all(stage, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), await stage.all_is_well()

    executed = live_proxy(scene)
    assert executed.result == (b"", True)
    assert malformed(executed) == ["gRPC needs h2: pip install 'rocketmq-emulator[proxy]'"]


def test_other_nodes_refuse_grpc_as_before():
    async def scene(stage):
        stage.process.close_listener(8_081)
        del stage.server._handlers[900_071]
        stage.process.listen(8_081, stage.server)
        return await _read_all(stage, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

    executed = live_proxy(scene)
    assert executed.result == b""
    assert malformed(executed)[0].startswith("looks like gRPC over HTTP/2")


def test_a_bug_of_ours_ends_one_connection_and_is_logged(monkeypatch):
    def broken(*_arguments):
        raise KeyError("a bug")

    async def scene(stage):
        with closing(plain_channel(stage)) as good:
            await stage.call("QueryRoute", route_request(), channel=good)
            with monkeypatch.context() as patched:
                patched.setattr("emulator.guests.grpc.server_connection.read_call", broken)
                with closing(tls_channel(stage)) as bad:
                    status, _ = await _status_of(stage, "QueryRoute", route_request(), channel=bad, timeout_s=2)
            next_one = await stage.call("QueryRoute", route_request(), channel=good)
        return status, next_one.status.code, await stage.all_is_well()

    executed = live_proxy(scene)
    assert executed.result[1:] == (Code.OK, True)
    assert "a call cannot be served: KeyError: 'a bug'" in malformed(executed)[0]
