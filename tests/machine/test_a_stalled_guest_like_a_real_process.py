"""A guest whose host is suspended and a program that got a real SIGSTOP look the same to their peers."""

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import msgpack
import trio

from emulator.guests.budget import GuestBudget
from emulator.spec.model.guest_limits import GuestLimits
from emulator.spec.model.scenario import GUEST
from emulator.testing.worlds import PORT, add_host, execute_world, process_of
from emulator.time.mode import TimeMode
from nodes.host import ChannelHandler
from nodes.protocol.command import Command, CommandFlag

ECHO, DIAL = 11, 12
SILENCE_S = 0.25
PATIENCE_S = 10
# Answers what it is asked; asked to dial, it opens another connection and says its number there.
CLIENT = r"""
import socket, struct, sys, threading, msgpack

address = (sys.argv[1], int(sys.argv[2]))

def take(sock, size):
    got = b""
    while len(got) < size:
        chunk = sock.recv(size - len(got))
        if not chunk:
            raise EOFError
        got += chunk
    return got

def say(sock, *command):
    frame = msgpack.packb(command)
    sock.sendall(struct.pack(">I", len(frame)) + frame)

def dial(number):
    sock = socket.create_connection(address)
    sock.sendall(b"\xc1\x01")
    say(sock, 11, 2, number, 479, "PYTHON", None, {}, None, 0, 0)
    threading.Thread(target=serve, args=(sock,), daemon=True).start()

def serve(sock):
    try:
        while True:
            code, flag, opaque, *_ = msgpack.unpackb(take(sock, *struct.unpack(">I", take(sock, 4))))
            if code == 12:
                dial(opaque)
            else:
                say(sock, 0, 1, opaque, 479, "PYTHON", None, {}, None, 0, code)
    except (EOFError, OSError):
        pass

dial(1)
threading.Event().wait()
"""
# It is asked for 20, 21 and to dial and say 2 while it stands still.
SEEN = [1, 10, "silence", "silence", 20, 21, 2, 30]


def by_connection(numbers):
    """What was said over the second connection comes last: between the two there is no order."""
    return sorted(numbers, key=lambda number: number < 10)


def a_client(address: tuple[str, int]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", CLIENT, address[0], str(address[1])])


def of_a_real_process():
    """What a server hears of a process that is stopped and continued."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sockets: dict[socket.socket, bytes] = {}

        def hear(count, patience_s=PATIENCE_S):
            """So many numbers, in their order, or silence."""
            deadline, found = time.monotonic() + patience_s, []
            while len(found) < count and (left_s := deadline - time.monotonic()) > 0:
                for ready in select.select([listener, *sockets], [], [], left_s)[0]:
                    if ready is listener:
                        sockets[listener.accept()[0]] = b""
                        continue
                    sockets[ready] += ready.recv(4096)
                    while (numbers := _first(sockets[ready])) is not None:
                        number, sockets[ready] = numbers
                        found.append(number)
            heard.extend(by_connection(found) or ["silence"])

        def ask(code, *numbers):
            first = next(iter(sockets))
            for number in numbers:
                frame = msgpack.packb([code, 0, number, 479, "PYTHON", None, {}, None, 0, 0])
                first.sendall(struct.pack(">I", len(frame)) + frame)

        with a_client(listener.getsockname()) as client:
            try:
                hear(1)
                ask(ECHO, 10)
                hear(1)
                client.send_signal(signal.SIGSTOP)
                os.waitpid(client.pid, os.WUNTRACED)
                ask(ECHO, 20, 21)
                hear(1, SILENCE_S)
                ask(DIAL, 2)
                hear(1, SILENCE_S)
                client.send_signal(signal.SIGCONT)
                hear(3)
                ask(ECHO, 30)
                hear(1)
            finally:
                client.kill()
        for sock in sockets:
            sock.close()
    return heard


def _first(stream):
    """(number of the first frame, the bytes behind it); None where it is not complete."""
    stream = stream.removeprefix(b"\xc1\x01")
    if len(stream) < 4 or len(stream) < 4 + struct.unpack(">I", stream[:4])[0]:
        return None
    end = 4 + struct.unpack(">I", stream[:4])[0]
    return msgpack.unpackb(stream[4:end])[2], stream[end:]


class Heard(ChannelHandler):
    """What a node hears of its guests."""

    def __init__(self):
        self.numbers, self.channels = [], []
        self.said = trio.Event()
        """Set with the next number."""

    def on_open(self, channel):
        self.channels.append(channel)

    def on_command(self, channel, command):
        assert command.flag in (CommandFlag.RESPONSE, CommandFlag.ONEWAY)
        self.numbers.append(command.opaque)
        self.said.set()
        self.said = trio.Event()

    def on_close(self, channel):
        self.numbers.append("closed")


def of_a_guest(deeds):
    """Run `deeds(world, node's machine, Heard)` in a live world with the same guest."""

    async def main(world):
        node = add_host(world, 1, "node")
        heard = Heard()
        process_of(node).listen(PORT, heard)
        client = a_client((world.fabric.carrier.physical_ip(node.ip), PORT))
        try:
            return await deeds(world, node, heard)
        finally:
            client.kill()
            client.wait()

    return execute_world(main, mode=TimeMode.LIVE)


async def until(heard, count):
    with trio.fail_after(PATIENCE_S):
        while len(heard.numbers) < count:
            await heard.said.wait()


async def as_the_real_one(world, _node, heard):
    program, seen = world.guests.program(GUEST), []

    async def hear(count, patience_s=PATIENCE_S):
        with trio.move_on_after(patience_s):
            await until(heard, count)
        seen.extend(by_connection(heard.numbers) or ["silence"])
        heard.numbers.clear()

    def ask(code, *numbers):
        for number in numbers:
            heard.channels[0].send(Command(code, opaque=number))

    await hear(1)
    ask(ECHO, 10)
    await hear(1)
    program.suspend()
    ask(ECHO, 20, 21)
    await hear(1, SILENCE_S)
    ask(DIAL, 2)
    await hear(1, SILENCE_S)
    assert len(heard.channels) == 1
    program.resume(world.fabric)
    await hear(3)
    ask(ECHO, 30)
    await hear(1)
    return seen


def test_a_node_cannot_distinguish_a_stalled_guest_from_a_stopped_process():
    assert of_a_real_process() == SEEN
    assert of_a_guest(as_the_real_one).result == SEEN


def frames(*numbers):
    packed = [msgpack.packb([ECHO, 2, number, 479, "PYTHON", None, {}, None, 0, 0]) for number in numbers]
    return b"".join(struct.pack(">I", len(frame)) + frame for frame in packed)


def dialed(world, node):
    sock = socket.create_connection((world.fabric.carrier.physical_ip(node.ip), PORT))
    sock.setblocking(False)
    sock.sendall(b"\xc1\x01")
    return sock


def test_nothing_passes_in_either_direction_until_it_goes_on():
    async def deeds(world, node, heard):
        program = world.guests.program(GUEST)
        await until(heard, 1)
        with dialed(world, node) as old:
            old.sendall(frames(40))
            await until(heard, 2)
            program.suspend()
            heard.channels[1].send(Command(ECHO, opaque=50))
            old.sendall(frames(41))
            with dialed(world, node) as new:
                new.sendall(frames(42))
                await trio.sleep(SILENCE_S)
                assert heard.numbers == [1, 40]
                assert select.select([old], [], [], 0)[0] == []
                program.resume(world.fabric)
                await until(heard, 4)
                await trio.lowlevel.wait_readable(old)
                assert _first(old.recv(4096)) == (50, b"")
        return sorted(heard.numbers)

    assert of_a_guest(deeds).result == [1, 40, 41, 42]


def test_who_dials_meanwhile_has_said_nothing_only_since_it_goes_on():
    async def deeds(world, node, heard):
        world.guests.budget = GuestBudget(GuestLimits(silent_ms=1_000))
        program = world.guests.program(GUEST)
        await until(heard, 1)
        program.suspend()
        with dialed(world, node) as new:
            await trio.sleep(1.2)
            program.resume(world.fabric)
            await trio.sleep(0.05)
            new.sendall(frames(42))
            await until(heard, 2)

    of_a_guest(deeds)


def test_what_waits_to_be_written_to_one_that_reads_slowly_waits_longer():
    async def deeds(world, node, heard):
        program = world.guests.program(GUEST)
        await until(heard, 1)
        with dialed(world, node) as slow:
            slow.sendall(frames(40))
            await until(heard, 2)
            for number in range(8):
                heard.channels[1].send(Command(ECHO, opaque=number, body=bytes(1_000_000)))
            await trio.sleep(SILENCE_S)
            program.suspend()
            got = 0
            with trio.move_on_after(SILENCE_S):
                while True:
                    await trio.lowlevel.wait_readable(slow)
                    got += len(slow.recv(1_000_000))
            assert got < 8_000_000
            program.resume(world.fabric)
            with trio.fail_after(PATIENCE_S):
                while got < 8_000_000:
                    await trio.lowlevel.wait_readable(slow)
                    got += len(slow.recv(1_000_000))

    of_a_guest(deeds)


def test_a_connection_that_the_node_closed_meanwhile_ends_when_it_goes_on_after_what_was_sent_before():
    async def deeds(world, _node, heard):
        program = world.guests.program(GUEST)
        await until(heard, 1)
        program.suspend()
        channel = heard.channels[0]
        channel.send(Command(DIAL, opaque=50))
        channel.close()
        await trio.sleep(SILENCE_S)
        open_before = len(program.connections)
        program.resume(world.fabric)
        await until(heard, 2)
        with trio.fail_after(PATIENCE_S):
            while len(program.connections) > 1:
                await world.clock.idle()
        return open_before, heard.numbers, len(program.connections)

    assert of_a_guest(deeds).result == (1, [1, 50], 1)
