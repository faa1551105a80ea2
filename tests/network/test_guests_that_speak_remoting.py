"""Programs that speak RocketMQ's own framing dial a node's port in live mode, well-behaved or not."""

import contextlib
import socket
import struct

import pytest
import trio

from emulator.cluster.effects.links import RefuseEffect
from emulator.guests.remoting import body_kinds
from emulator.guests.remoting.body_json import decode_json_body
from emulator.guests.remoting.message_binary import decode_messages
from emulator.guests.remoting.remoting_command import (
    SerializeType,
    encode_remoting,
)
from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT
from faults.catalogue import fault_of
from nodes.protocol.bodies import ClusterInfo, PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import Message
from nodes.protocol.registry import encode_body
from support.dialed_node import ECHO, HOLD, live, malformed
from support.remoting_program import PATIENCE_S, request


@pytest.mark.parametrize("form", SerializeType)
def test_requests_in_flight_are_answered_in_their_form_and_traced(form):
    async def scene(stage):
        program = await stage.dial()
        await program.ask(*(request(ECHO, n, fields={"n": str(n)}, body=b"b", form=form) for n in range(20)))
        return [await program.answer() for _ in range(20)]

    executed = live(scene)

    assert [(a.opaque, a.ext_fields, a.body, a.serialize_type) for a in executed.result] == [
        (n, {"n": str(n)}, b"b", form) for n in range(20)
    ]
    requests = executed.trace.select("rpc", event="delivered", kind="request")
    answers = executed.trace.select("rpc", event="delivered", kind="response")
    assert [(r["src"], r["dst"], r["opaque"]) for r in requests] == [("guest", "node", n) for n in range(20)]
    assert [(r["src"], r["dst"], r["cause"]) for r in answers] == [("node", "guest", r["seq"]) for r in requests]


def test_a_oneway_is_taken_and_not_answered_and_an_unknown_code_is_answered_with_3():
    async def scene(stage):
        program = await stage.dial()
        await program.ask(request(HOLD, 1, flag=CommandFlag.ONEWAY), request(9_999, 2))
        answer = await program.answer()
        return len(stage.held), answer.opaque, answer.code, answer.remark

    assert live(scene).result == (1, 2, 3, "request type 9999 not supported")


def test_a_node_sees_who_asks_and_a_body_of_its_own_kind():
    async def scene(stage):
        program = await stage.dial()
        await program.ask(
            request(RequestCode.HEART_BEAT, 1, body=b'{"clientID":"c@1","producerDataSet":[{groupName:"p"}]}')
        )
        await program.answer()
        ((requested, heartbeat),) = stage.seen
        return (
            requested.language,
            requested.version,
            heartbeat.client_id,
            [p.group_name for p in heartbeat.producer_data_set],
        )

    assert live(scene).result == ("GO", 317, "c@1", ["p"])


def test_a_body_that_is_none_is_answered_as_an_error_of_that_request_alone():
    async def scene(stage):
        program = await stage.dial()
        await program.ask(request(RequestCode.HEART_BEAT, 1, body=b"{broken"), request(ECHO, 2))
        refused, echoed = await program.answer(), await program.answer()
        return refused.opaque, refused.code, refused.remark.partition(":")[0], echoed.opaque

    executed = live(scene)

    assert executed.result == (1, 1, "ProtocolError", 2)
    assert malformed(executed) == []


def test_what_a_program_is_reported_it_can_dial():
    async def scene(stage):
        program = await stage.dial()
        await program.ask(*(request(code, code) for code in (106, 11, 310)))
        cluster, pulled, sent = [await program.answer() for _ in range(3)]
        addresses = decode_json_body(ClusterInfo, cluster.body).broker_addr_table["b"].broker_addrs
        (message,) = decode_messages(pulled.body)
        packed, port, offset = decode_message_id(sent.ext_fields["msgId"])
        return stage.physical, addresses, message, (".".join(map(str, packed)), port, offset)

    # Emulated addresses are the machine's where the first block was free; here it is not.
    with socket.socket() as neighbour:
        with contextlib.suppress(OSError):
            neighbour.bind(("127.1.255.254", 9_875))
        physical, addresses, message, message_id = live(scene).result
    assert not physical.startswith("127.1.")
    assert addresses == {0: f"{physical}:{PORT}", 1: "10.0.0.1:10911"}
    assert (message.store_host, message.born_host) == (f"{physical}:{PORT}", "127.0.0.1:5")
    assert message_id == (physical, PORT, 7)


def test_a_node_asks_a_program_and_gets_its_answer():
    async def scene(stage):
        program = await stage.dial()
        await program.ask(request(HOLD, 1))
        with trio.fail_after(PATIENCE_S):
            await stage.holds.wait()
        channel, _ = stage.held[0]
        heard, answered = [], trio.Event()

        def hear(_channel, command):
            heard.append(command)
            answered.set()

        stage.server.on_command = hear
        channel.send(
            Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, CommandFlag.ONEWAY, ext_fields={"consumerGroup": "g"})
        )
        channel.send(Command(RequestCode.GET_CONSUMER_RUNNING_INFO, 0, 5, ext_fields={"clientId": "c"}, body=None))
        channel.send(
            Command(
                RequestCode.CONSUME_MESSAGE_DIRECTLY,
                0,
                6,
                body=encode_body(PullMessageResponseBody((Message("t", 0, 0, 0, 0, 0, b"m"),))),
            )
        )
        notice, running, directly = [await program.answer() for _ in range(3)]
        info = b'{"mqTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{}}}'
        await program.ask(request(0, 5, flag=CommandFlag.RESPONSE, body=info))
        with trio.fail_after(PATIENCE_S):
            await answered.wait()
        return notice, running, directly, heard[0]

    notice, running, directly, answer = live(scene).result

    assert (notice.code, notice.flag, notice.ext_fields) == (40, CommandFlag.ONEWAY, {"consumerGroup": "g"})
    assert (running.code, running.opaque, running.ext_fields) == (307, 5, {"clientId": "c"})
    assert decode_messages(directly.body)[0].body == b"m"
    assert (answer.is_response, answer.opaque, answer.request_code) == (True, 5, 307)
    assert answer.body.startswith(b'{"mqTable":{{')


BAD = [
    (struct.pack(">I", 16 * 1024 * 1024 - 3), "frame of 16777217 bytes announced"),
    (struct.pack(">II", 8, 100) + b"abcd", "header of 100 bytes announced"),
    (struct.pack(">I", 0), "too short for a header"),
    (struct.pack(">II", 6, 2) + b"[]", "header is no JSON object"),
    (struct.pack(">II", 4, 7 << 24), "header of unknown form 7"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD)
def test_a_bad_frame_ends_its_connection_with_one_row_and_harms_no_one_else(bad, reason):
    async def scene(stage):
        neighbour, program = await stage.dial(), await stage.dial()
        await program.say(encode_remoting(request(HOLD, 1)) + bad + encode_remoting(request(HOLD, 2)))
        ended = await program.answer()
        await neighbour.ask(request(ECHO, 7))
        return ended, (await neighbour.answer()).opaque, await stage.all_is_well(), [r.opaque for _, r in stage.held]

    executed = live(scene)

    assert executed.result == (None, 7, True, [1])
    assert len(malformed(executed)) == 1
    assert reason in malformed(executed)[0]


def test_half_a_frame_and_then_the_end_is_one_row():
    async def scene(stage):
        program = await stage.dial()
        await program.say(encode_remoting(request(ECHO, 1))[:-1])
        program.sock.shutdown(trio.socket.SHUT_WR)
        return await program.answer()

    executed = live(scene)

    assert executed.result is None
    assert malformed(executed) == ["the stream ended inside a frame"]


def test_a_guest_whose_request_is_refused_gets_the_code_and_the_node_never_sees_it():
    async def scene(stage):
        program = await stage.dial()
        fault = fault_of("refuse HEART_BEAT with SYSTEM_BUSY from guest next 1")
        stage.world.fabric.add_rule(RefuseEffect.rule("refuse-1", fault))
        heartbeat = b'{"clientID":"shop@1"}'
        answers = []
        for opaque in (1, 2):
            await program.ask(request(RequestCode.HEART_BEAT, opaque, body=heartbeat))
            answers.append(await program.answer())
        return [(answer.code, answer.remark) for answer in answers], len(stage.seen), await stage.all_is_well()

    (refused, allowed), seen, is_well = live(scene).result
    assert refused == (int(ResponseCode.SYSTEM_BUSY), "refused by fault refuse-1")
    assert allowed[0] == 0
    assert (seen, is_well) == (1, True)


def test_a_program_meets_the_faults_of_its_links():
    async def scene(stage):
        program = await stage.dial()
        stage.world.fabric.add_rule(LinkRule("f1", LinkEffect.CUT, lambda s, d: (s, d) == ("guest", "node")))
        await program.ask(request(ECHO, 1))
        await stage.world.sleep_until_ns(stage.world.timeline.now_ns + 100 * MS)
        stage.world.fabric.remove_rule("f1")
        await program.ask(request(ECHO, 2))
        return (await program.answer()).opaque

    executed = live(scene)

    assert executed.result == 2
    assert [(r["opaque"], r["detail"]) for r in executed.trace.select("rpc", event="dropped")] == [(1, "f1")]


@pytest.mark.parametrize("bug", [KeyError("x"), ZeroDivisionError(), RecursionError(), OverflowError("int too big")])
def test_whatever_a_frame_makes_the_emulator_raise_ends_its_connection_alone(bug, monkeypatch):
    def fail(*_):
        raise bug

    async def scene(stage):
        other = await stage.dial()
        await other.ask(request(ECHO, 1))
        await other.answer()
        program = await stage.dial()
        with monkeypatch.context() as planted:
            planted.setattr(body_kinds, "request_from_wire", fail)
            await program.ask(request(ECHO, 1))
            ended = await program.answer()
        await other.ask(request(ECHO, 2))
        return ended, (await other.answer()).opaque, await stage.all_is_well()

    executed = live(scene)

    assert executed.result == (None, 2, True)
    (row,) = malformed(executed)
    assert row.startswith(f"a frame cannot be read: {type(bug).__name__}")


def test_an_answer_that_cannot_be_encoded_is_an_error_answer(monkeypatch):
    def fail(*_):
        raise KeyError("x")

    async def scene(stage):
        program = await stage.dial()
        with monkeypatch.context() as planted:
            planted.setattr(body_kinds, "response_to_wire", lambda code, *rest: rest[0] if rest[0] is None else fail())
            await program.ask(request(ECHO, 1, body=b"b"))
            refused = await program.answer()
        await program.ask(request(ECHO, 2, body=b"b"))
        return refused.code, refused.opaque, (await program.answer()).code

    executed = live(scene)

    assert executed.result == (ResponseCode.SYSTEM_ERROR, 1, 0)
    (row,) = malformed(executed)
    assert row.startswith("an answer was not sent: it cannot be encoded: KeyError")
