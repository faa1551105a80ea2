"""A guest dials a node's port in live mode, well-behaved or not."""

import socket
import struct

import msgpack
import pytest
import trio

from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT, add_host, execute_world, process_of
from emulator.time.mode import TimeMode
from nodes.protocol.bodies import RegisterBrokerBody
from nodes.protocol.body_codec import decode_body
from nodes.protocol.command import Command, CommandFlag
from nodes.rpc.client import RpcClient
from nodes.rpc.codec import GREETING, Decoder, encode
from nodes.rpc.server import RpcServer
from support.limited import limit

ECHO, HOLD, BODY, FLOOD = 11, 12, 13, 14
PATIENCE_S = 10


class GuestSocket:
    """A program of its own: a socket and the frames that come out of it."""

    def __init__(self, sock):
        self.sock = sock
        self._decoder = Decoder()
        self._frames = []

    async def say(self, raw):
        with trio.fail_after(PATIENCE_S):
            while raw:
                raw = raw[await self.sock.send(raw) :]

    async def ask(self, *commands):
        await self.say(b"".join(encode(c) for c in commands))

    async def answer(self):
        """The next frame; None where the connection has ended."""
        with trio.fail_after(PATIENCE_S):
            while not self._frames:
                try:
                    chunk = await self.sock.recv(65_536)
                except ConnectionResetError:
                    return None
                if not chunk:
                    return None
                self._frames += self._decoder.feed(chunk)
        return self._frames.pop(0)


class DialedNode:
    """A served node in a live world, and guests that dial it."""

    def __init__(self, world):
        self.world = world
        self.sockets = []
        self.node = add_host(world, 1, "node")
        self.held = []
        process = process_of(self.node)
        self.server = RpcServer(process)
        self.server.register(ECHO, lambda _c, r: r.answer(0, None, r.ext_fields, r.body))
        self.server.register(HOLD, lambda channel, r: self.held.append((channel, r)))
        self.server.register(BODY, lambda _c, r: r.answer(0, str(decode_body(RegisterBrokerBody, r.body))))
        self.server.register(FLOOD, lambda _c, r: r.answer(0, None, body=b"x" * 1_000_000))
        process.listen(PORT, self.server)

    async def dial(self, greeting=GREETING):
        sock = trio.socket.socket()
        self.sockets.append(sock)
        await sock.connect((self.world.fabric.carrier.physical_ip(self.node.ip), PORT))
        guest = GuestSocket(sock)
        await guest.say(greeting)
        return guest

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


def test_a_guest_is_answered_in_order_and_its_frames_are_traced():
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(*(Command(ECHO, 0, n, ext_fields={"n": str(n)}, cause=99) for n in range(50)))
        return [((a := await guest.answer()).opaque, a.ext_fields["n"]) for _ in range(50)]

    executed = live(scene)

    assert executed.result == [(n, str(n)) for n in range(50)]
    requests = executed.trace.select("rpc", event="delivered", kind="request")
    answers = executed.trace.select("rpc", event="delivered", kind="response")
    assert [(r["src"], r["dst"], r["opaque"], r["cause"]) for r in requests] == [
        ("guest", "node", n, 0) for n in range(50)
    ]
    assert [(r["src"], r["dst"], r["cause"]) for r in answers] == [("node", "guest", r["seq"]) for r in requests]
    assert [r["src"] for r in executed.trace.select("rpc", event="connected")] == ["guest"]


def test_bytes_that_arrive_one_at_a_time_are_one_request():
    async def scene(stage):
        guest = await stage.dial(b"")
        for byte in GREETING + encode(Command(ECHO, 0, 5, body=b"hello")):
            await guest.say(bytes([byte]))
            await stage.world.clock.idle()
        return (await guest.answer()).body

    assert live(scene).result == b"hello"


@pytest.mark.parametrize(
    ("first_bytes", "look"),
    [
        (b"\x01\x00\x00\x01", "a frame of RocketMQ's of more than 16 MiB"),
        (b"\x16\x03\x01\x02\x00", "TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PROXY TCP4 1.2.3.4", "the PROXY protocol"),
        (b"\xc1\x02", "another version"),
        (b"\xff\xfe", "an unknown protocol"),
    ],
)
def test_who_does_not_greet_as_we_do_is_sent_away_and_the_trace_says_what_it_looked_like(first_bytes, look):
    async def scene(stage):
        guest = await stage.dial(first_bytes)
        return await guest.answer(), await stage.all_is_well()

    executed = live(scene)

    assert executed.result == (None, True)
    (detail,) = malformed(executed)
    assert look in detail
    assert first_bytes[:8].hex(" ") in detail


def frame(content):
    return struct.pack(">I", len(content)) + content


BAD_FRAMES = [
    (struct.pack(">I", 0x01000001) + b"....", "frame of 16777217 bytes announced"),
    (frame(b"\xc1\xc1"), "not msgpack"),
    (frame(b""), "not msgpack"),
    (frame(msgpack.packb({"code": 11})), "not a command"),
    (frame(msgpack.packb([11, 0, "one", 479, "PYTHON", None, {}, None, 0, 0])), "a field has the wrong type"),
    (encode(Command(2**63, 0, 1)), "a number is beyond 32 bits"),
    (encode(Command(ECHO, 0, 2**31)), "a number is beyond 32 bits"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_FRAMES)
def test_a_bad_frame_ends_its_connection_with_one_row_and_harms_no_one_else(bad, reason):
    async def scene(stage):
        neighbour = await stage.dial()
        guest = await stage.dial()
        await guest.ask(Command(HOLD, 0, 1))
        await guest.say(encode(Command(HOLD, 0, 2)) + bad + encode(Command(HOLD, 0, 3)))
        ended = await guest.answer()
        await neighbour.ask(Command(ECHO, 0, 7))
        return ended, (await neighbour.answer()).opaque, await stage.all_is_well(), [r.opaque for _, r in stage.held]

    executed = live(scene)

    assert executed.result == (None, 7, True, [1, 2])
    assert len(malformed(executed)) == 1
    assert reason in malformed(executed)[0]


@pytest.mark.parametrize("sent", [GREETING[:1], GREETING + encode(Command(ECHO))[:-1], GREETING + b"\x00"])
def test_an_end_in_the_middle_is_one_malformed_row(sent):
    async def scene(stage):
        guest = await stage.dial(sent)
        guest.sock.shutdown(trio.socket.SHUT_WR)
        return await guest.answer()

    executed = live(scene)

    assert executed.result is None
    assert len(malformed(executed)) == 1
    assert "the stream ended inside" in malformed(executed)[0]


def test_an_orderly_end_is_a_closed_connection_and_nothing_malformed():
    async def scene(stage):
        closed = trio.Event()
        stage.server._on_channel_closed = lambda _channel: closed.set()
        guest = await stage.dial()
        await guest.ask(Command(ECHO))
        await guest.answer()
        guest.sock.close()
        with trio.fail_after(PATIENCE_S):
            await closed.wait()
        return len(process_of(stage.node).endpoints)

    executed = live(scene)

    assert executed.result == 0
    assert malformed(executed) == []
    assert [r["src"] for r in executed.trace.select("rpc", event="closed")] == ["guest"]


def test_mistakes_inside_a_good_frame_are_answered():
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(
            Command(4_711, 0, 1),
            Command(BODY, 0, 2, body=b"\x93nonsense"),
            Command(ECHO, CommandFlag.ONEWAY, 3),
            Command(ECHO, 0, 4, ext_fields={"queueId": 3, "order": True}),
        )
        answers = [await guest.answer() for _ in range(3)]
        return [(a.opaque, a.code, a.remark) for a in answers], answers[2].ext_fields

    executed = live(scene)
    (unknown, bad_body, odd_header), echoed = executed.result

    assert unknown == (1, 3, "request type 4711 not supported")
    assert bad_body[:2] == (2, 1)
    assert bad_body[2].startswith("ProtocolError")
    assert odd_header[:2] == (4, 0)
    assert echoed == {"queueId": "3", "order": "true"}
    assert malformed(executed) == []


def test_a_guest_that_never_reads_is_cut_off_and_the_others_are_served():
    async def scene(stage):
        limit(stage, unsent_bytes=2_000_000)
        guest = await stage.dial()
        await guest.ask(*(Command(FLOOD, 0, n) for n in range(40)))
        with trio.fail_after(PATIENCE_S):
            while process_of(stage.node).endpoints:
                await stage.world.clock.idle()
        return await stage.all_is_well()

    executed = live(scene)

    assert executed.result is True
    assert [d.partition(":")[0] for d in malformed(executed)] == ["cut off"]


def test_a_slow_reader_gets_every_byte():
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(*(Command(FLOOD, 0, n) for n in range(8)))
        await stage.world.clock.idle()
        return [((a := await guest.answer()).opaque, len(a.body)) for _ in range(8)]

    assert live(scene).result == [(n, 1_000_000) for n in range(8)]


def test_requests_that_the_node_holds_are_bounded_per_connection():
    async def scene(stage):
        limit(stage, requests=3)
        guest = await stage.dial()
        await guest.ask(*(Command(HOLD, 0, n) for n in range(5)))
        busy = [await guest.answer() for _ in range(2)]
        channel, request = stage.held[0]
        channel.send(request.answer())
        freed = await guest.answer()
        await guest.ask(Command(HOLD, 0, 9), Command(HOLD, 0, 10))
        busy.append(await guest.answer())
        return [(b.opaque, b.code) for b in busy], freed.opaque, [r.opaque for _, r in stage.held]

    assert live(scene).result == ([(3, 2), (4, 2), (10, 2)], 0, [0, 1, 2, 9])


def test_connections_from_outside_are_bounded_per_listener():
    async def scene(stage):
        limit(stage, connections=2)
        first, second = [await stage.dial() for _ in range(2)]
        for guest in (first, second):
            await guest.ask(Command(ECHO, 0, 1))
            await guest.answer()
        turned_away = await (await stage.dial()).answer()
        first.sock.close()
        await second.ask(Command(ECHO, 0, 2))
        return turned_away, (await second.answer()).opaque, await stage.all_is_well()

    executed = live(scene)

    assert executed.result == (None, 2, True)
    assert [r["detail"].partition(": ")[2] for r in executed.trace.select("rpc", event="refused")] == [
        "more than 2 connections from outside"
    ]


def test_the_node_closes_and_the_guest_gets_what_was_sent_before():
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(Command(HOLD, 0, 1))
        with trio.fail_after(PATIENCE_S):
            while not stage.held:
                await stage.world.clock.idle()
        channel, request = stage.held[0]
        channel.send(request.answer(body=b"x" * 8_000_000))
        channel.close()
        return len((await guest.answer()).body), await guest.answer()

    assert live(scene).result == (8_000_000, None)


def test_a_guest_meets_the_faults_of_its_links():
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(Command(ECHO, 0, 1))
        await guest.answer()
        stage.world.fabric.add_rule(LinkRule("f1", LinkEffect.CUT, lambda s, d: (s, d) == ("guest", "node")))
        await guest.ask(Command(ECHO, 0, 2))
        await stage.world.sleep_until_ns(stage.world.timeline.now_ns + 100 * MS)
        stage.world.fabric.remove_rule("f1")
        await guest.ask(Command(ECHO, 0, 3))
        return (await guest.answer()).opaque

    executed = live(scene)

    assert executed.result == 3
    assert [(r["opaque"], r["detail"]) for r in executed.trace.select("rpc", event="dropped")] == [(2, "f1")]


def test_a_node_may_stop_listening_in_the_very_pass_in_which_a_guest_dials():
    async def scene(stage):
        address = stage.world.fabric.carrier.physical_ip(stage.node.ip), PORT
        for _ in range(3):
            with socket.socket() as dialing:
                dialing.setblocking(False)
                dialing.connect_ex(address)
                await trio.lowlevel.checkpoint()  # its acceptor can run now, and runs after this task
                process_of(stage.node).close_listener(PORT)
                await stage.world.clock.idle()
            process_of(stage.node).listen(PORT, stage.server)
        return await stage.all_is_well()

    assert live(scene).result


@pytest.mark.parametrize("verb", ["kill", "restart"])
def test_a_killed_node_closes_its_guests(verb):
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(Command(ECHO, 0, 1))
        await guest.answer()
        await getattr(stage.node, verb)()
        return await guest.answer()

    assert live(scene).result is None


def test_a_guest_that_waits_before_an_emulated_node_in_the_backlog_is_not_mistaken_for_it():
    async def scene(stage):
        client = process_of(add_host(stage.world, 2, "client"))
        guests = []

        def dial_in_the_turn_of_the_hub():
            sock = trio.socket.socket()
            sock._sock.setblocking(True)
            sock._sock.connect((stage.world.fabric.carrier.physical_ip(stage.node.ip), PORT))
            sock._sock.setblocking(False)
            stage.sockets.append(sock)
            guests.append(GuestSocket(sock))

        for _ in range(5):
            stage.world.timeline.call_at(stage.world.timeline.now_ns, dial_in_the_turn_of_the_hub)
            await client.connect(f"{stage.node.ip}:{PORT}", None, 5_000)
        answers = []
        for number, guest in enumerate(guests):
            await guest.say(GREETING)
            await guest.ask(Command(ECHO, 0, number))
            answers.append((await guest.answer()).opaque)
        return answers, len(client.endpoints), await stage.all_is_well()

    assert live(scene).result == (list(range(5)), 5, True)


def test_what_a_guest_sends_to_a_suspended_node_waits_in_the_kernel():
    async def scene(stage):
        guest = await stage.dial()
        await guest.ask(Command(ECHO, 0, 1))
        await guest.answer()
        await stage.node.suspend()
        await guest.ask(Command(ECHO, 0, 2), Command(ECHO, 0, 3))
        for _ in range(20):
            await stage.world.clock.idle()
        buffered = list(process_of(stage.node).inbox)
        await stage.node.resume()
        return buffered, [(await guest.answer()).opaque for _ in range(2)]

    assert live(scene).result == ([], [2, 3])


def test_in_virtual_time_no_one_from_outside_is_let_in():
    async def main(world):
        stage = DialedNode(world)
        sock = trio.socket.socket()
        sock._sock.setblocking(True)
        sock._sock.connect((world.fabric.carrier.physical_ip(stage.node.ip), PORT))
        served = await stage.all_is_well()
        sock._sock.settimeout(PATIENCE_S)
        with sock:
            return served, sock._sock.recv(1)

    assert execute_world(main, mode=TimeMode.FAST).result == (True, b"")
