"""Programs that speak RocketMQ's own framing dial a node's port in live mode, well-behaved or not."""

import contextlib
import itertools
import os
import socket
import struct
import time

import pytest
import trio

from emulator.cluster.effects.links import RefuseEffect
from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT, add_host, execute_world, process_of
from emulator.time.mode import TimeMode
from faults.catalogue import fault_of
from nodes.protocol.bodies import ClusterInfo, PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.message_id import create_message_id, decode_message_id
from nodes.protocol.model import BrokerData, HeartbeatData, Message
from nodes.protocol.registry import decode_body, encode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from nodes.wire import body_kinds
from nodes.wire.body_json import decode_json_body
from nodes.wire.message_binary import decode_messages
from nodes.wire.remoting_command import (
    SerializeType,
    encode_remoting,
)
from support.limited import limit
from support.remoting_program import PATIENCE_S, Program, request

ECHO, HOLD, BURN = 4_711, 4_712, 4_713
HEARTBEAT = b'{"clientID":"c@1","producerDataSet":[{"groupName":"p"}]}'


def _burn(duration_s):
    until_s = time.perf_counter() + duration_s
    while time.perf_counter() < until_s:
        pass


class DialedNode:
    """A served node in a live world, and programs that dial it."""

    def __init__(self, world):
        self.world = world
        self.sockets = []
        self.node = add_host(world, 1, "node")
        self.physical = world.fabric.carrier.physical_ip(self.node.ip)
        self.held, self.seen = [], []
        self.holds = trio.Event()
        process = process_of(self.node)
        self.work_s = 0.0
        """What a heartbeat takes, and the end of a connection."""
        self.order = []
        """What was handled, in order: echo, heartbeat, close."""
        self.server = RpcServer(process, on_channel_closed=lambda _channel: self._close())
        self.server.register(ECHO, self._echo)
        self.server.register(HOLD, self._hold)
        self.server.register(BURN, self._burn)
        self.server.register(RequestCode.HEART_BEAT, self._heartbeat)
        self.server.register(RequestCode.GET_BROKER_CLUSTER_INFO, self._cluster_info)
        self.server.register(RequestCode.PULL_MESSAGE, self._pull)
        self.server.register(RequestCode.SEND_MESSAGE_V2, self._send)
        process.listen(PORT, self.server)

    def _echo(self, _channel, requested):
        self.order.append("echo")
        return requested.answer(0, None, requested.ext_fields, requested.body)

    def _hold(self, channel, requested):
        self.held.append((channel, requested))
        self.holds.set()

    def _burn(self, _channel, requested):
        _burn(0.1)
        return requested.answer()

    def _close(self):
        self._work("close")

    def _work(self, subject):
        """Take as long as a broker does that notifies some hundred members."""
        self.order.append(subject)
        _burn(self.work_s)

    def _heartbeat(self, _channel, requested):
        self._work("heartbeat")
        self.seen.append((requested, decode_body(HeartbeatData, requested.body)))
        return requested.answer()

    def _cluster_info(self, _channel, requested):
        data = BrokerData("c", "b", {0: f"{self.node.ip}:{PORT}", 1: "10.0.0.1:10911"})
        return requested.answer(body=encode_body(ClusterInfo({"b": data}, {"c": ("b",)})))

    def _pull(self, _channel, requested):
        message = Message("t", 0, 0, 0, 0, 0, b"x", born_host="127.0.0.1:5", store_host=f"{self.node.ip}:{PORT}")
        return requested.answer(body=encode_body(PullMessageResponseBody((message,))))

    def _send(self, _channel, requested):
        packed = bytes(map(int, self.node.ip.split(".")))
        return requested.answer(0, None, {"msgId": create_message_id(packed, PORT, 7)}, None)

    async def dial(self):
        sock = trio.socket.socket()
        self.sockets.append(sock)
        await sock.connect((self.physical, PORT))
        return Program(sock)

    async def all_is_well(self):
        """Whether an emulated client is served all the same."""
        client = RpcClient(process_of(add_host(self.world, 9, "client")))
        await self.world.clock.idle()
        answer = await client.call(f"{self.node.ip}:{PORT}", ECHO, timeout_ms=5_000)
        return answer.code == 0 and self.node.power_state == "running"


def live(scene):
    async def main(world):
        stage = DialedNode(world)
        try:
            return await scene(stage)
        finally:
            for sock in stage.sockets:
                sock.close()

    return execute_world(main, mode=TimeMode.LIVE)


def malformed(executed):
    return [r["detail"].partition(": ")[2] for r in executed.trace.select("rpc", event="malformed")]


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


def test_who_says_nothing_is_sent_away_in_the_end_with_one_row_each():
    async def scene(stage):
        limit(stage, silent_ms=50)
        silent = [await stage.dial() for _ in range(20)]
        speaking = await stage.dial()
        await speaking.ask(request(ECHO, 1))
        await speaking.answer()
        ended = [await program.answer() for program in silent]
        await speaking.ask(request(ECHO, 2))
        return ended, (await speaking.answer()).opaque

    executed = live(scene)

    assert executed.result == ([None] * 20, 2)
    assert malformed(executed) == ["said nothing for 50 ms"] * 20


def test_the_silent_make_room_for_those_who_speak():
    async def scene(stage):
        limit(stage, connections=3)
        speaking = await stage.dial()
        await speaking.ask(request(ECHO, 1))
        await speaking.answer()
        silent = [await stage.dial() for _ in range(4)]
        ended = [await program.answer() for program in silent[:2]]
        await speaking.ask(request(ECHO, 2))
        await silent[3].ask(request(ECHO, 3))
        return ended, (await speaking.answer()).opaque, (await silent[3].answer()).opaque

    executed = live(scene)

    assert executed.result == ([None, None], 2, 3)
    assert malformed(executed) == ["said nothing, and others want to come in"] * 2


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


def test_a_guest_is_not_served_while_the_process_has_too_much_memory():
    async def scene(stage):
        limit(stage, memory_bytes=1)
        program = await stage.dial()
        await program.ask(request(ECHO, 1))
        return await program.answer(), await stage.all_is_well()

    answer, is_well = live(scene).result
    assert (answer.code, is_well) == (ResponseCode.SYSTEM_BUSY, True)
    assert "guest_limits.memory_bytes" in answer.remark


def test_a_connection_that_takes_more_than_its_share_of_the_cpu_is_answered_busy_and_the_others_are_served():
    async def scene(stage):
        limit(stage, cpu_percent=10, cpu_debt_ms=50)
        greedy, other = await stage.dial(), await stage.dial()
        await greedy.ask(*(request(BURN, n) for n in range(1, 9)))
        await other.ask(request(ECHO, 1))
        assert (await other.answer()).code == 0
        return [(await greedy.answer()).code for _ in range(8)]

    codes = live(scene).result
    assert codes[0] == 0
    assert ResponseCode.SYSTEM_BUSY in codes[1:]


def test_a_connection_that_has_taken_more_than_its_share_goes_on_while_no_one_else_needs_the_time():
    async def scene(stage):
        limit(stage, cpu_percent=1, cpu_debt_ms=60_000)
        program, codes = await stage.dial(), []
        with trio.fail_after(PATIENCE_S):  # a hundredth of the time would be 9.9 s for each request
            for number in range(1, 6):
                await program.ask(request(BURN, number))
                codes.append((await program.answer()).code)
        return codes

    assert live(scene).result == [0] * 5


async def _join(stage, count):
    """Programs that have sent their heartbeats, as consumers of a group do."""
    members = [await stage.dial() for _ in range(count)]
    for member in members:
        await member.ask(request(RequestCode.HEART_BEAT, 1, body=HEARTBEAT))
        await member.answer()
    return members


async def _ask_until_done(stage, other, subject, count):
    """Ask for echoes until so much else was handled; returns the most that was handled between two echoes."""
    stage.order.clear()
    opaques = itertools.count(1)
    while stage.order.count(subject) < count:
        await other.ask(request(ECHO, next(opaques)))
        await other.answer()
    assert stage.order.count(subject) == count
    return max(sum(1 for _ in run) for name, run in itertools.groupby(stage.order) if name == subject)


MEMBERS = 120


def test_guests_that_leave_at_once_leave_one_after_the_other_and_others_are_served_in_between():
    async def scene(stage):
        members, other, stage.work_s = await _join(stage, MEMBERS), await stage.dial(), 0.003
        for member in members:
            member.sock.close()
        return await _ask_until_done(stage, other, "close", MEMBERS)

    assert live(scene).result < MEMBERS / 4


def test_heartbeats_of_many_guests_are_handled_one_after_the_other_and_others_are_served_in_between():
    async def scene(stage):
        members, other, stage.work_s = await _join(stage, MEMBERS), await stage.dial(), 0.003
        beat = encode_remoting(request(RequestCode.HEART_BEAT, 2, body=HEARTBEAT))
        for member in members:
            os.write(member.sock.fileno(), beat)  # no checkpoint: all of them wait when the first is read
        return await _ask_until_done(stage, other, "heartbeat", MEMBERS)

    assert live(scene).result < MEMBERS / 4


def test_answers_that_no_one_reads_share_a_budget():
    async def scene(stage):
        limit(stage, unsent_bytes=50_000_000, all_unsent_bytes=9_000_000)
        programs = [await stage.dial() for _ in range(3)]
        for program in programs:
            await program.ask(*(request(ECHO, n, body=b"x" * 1_000_000) for n in range(16)))
        with trio.fail_after(PATIENCE_S):
            while len(process_of(stage.node).endpoints) >= len(programs):
                await stage.world.sleep_until_ns(stage.world.timeline.now_ns + 10 * MS)
        return await stage.all_is_well()

    executed = live(scene)

    assert executed.result is True
    assert all(
        "guests hold more than 9000000 bytes of frames that they do not read" in row for row in malformed(executed)
    )
