"""An emulated node that is suspended and a real process under SIGSTOP look the same to their peer."""

import os
import signal
import socket
import struct
import subprocess
import sys

import msgpack
import pytest
import trio

from emulator.testing.worlds import MS, PORT, VIRTUAL, add_host, execute_world, process_of
from emulator.time.mode import TimeMode
from nodes.host import ChannelHandler
from nodes.protocol.command import Command
from nodes.rpc.server import RpcServer

ECHO = 11
SILENCE_S = 0.25
PATIENCE_S = 10
REAL_SERVER = r"""
import socket, struct, sys, threading, msgpack

def take(sock, size):
    got = b""
    while len(got) < size:
        chunk = sock.recv(size - len(got))
        if not chunk:
            raise EOFError
        got += chunk
    return got

def serve(sock):
    try:
        take(sock, 2)
        while True:
            code, flag, opaque, *_ = msgpack.unpackb(take(sock, *struct.unpack(">I", take(sock, 4))))
            answer = msgpack.packb([0, 1, opaque, 479, "PYTHON", None, {}, None, 0, code])
            sock.sendall(struct.pack(">I", len(answer)) + answer)
    except (EOFError, OSError):
        pass

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


class Peer:
    """A client with blocking sockets and an msgpack of its own."""

    def __init__(self, address):
        self._sock = socket.create_connection(address, timeout=PATIENCE_S)
        self._sock.sendall(b"\xc1\x01")
        self._got = b""

    def ask(self, *opaques):
        for opaque in opaques:
            request = msgpack.packb([ECHO, 0, opaque, 479, "PYTHON", None, {}, None, 0, 0])
            self._sock.sendall(struct.pack(">I", len(request)) + request)

    def close(self):
        self._sock.close()

    def hear(self, patience_s=PATIENCE_S):
        """The opaque of the next answer, or what there was instead of one."""
        self._sock.settimeout(patience_s)
        try:
            while len(self._got) < 4 or len(self._got) < 4 + struct.unpack(">I", self._got[:4])[0]:
                chunk = self._sock.recv(4096)
                if not chunk:
                    return "FIN"
                self._got += chunk
        except TimeoutError:
            return "silence"
        except ConnectionResetError:
            return "RST"
        end = 4 + struct.unpack(">I", self._got[:4])[0]
        frame, self._got = self._got[4:end], self._got[end:]
        return msgpack.unpackb(frame)[2]


def observe(address, stop, go_on):
    """All that a peer sees of a server that is stopped and continued."""
    old = Peer(address)
    old.ask(1)
    seen = [old.hear()]
    stop()
    old.ask(2, 3, 4)
    seen.append(old.hear(SILENCE_S))
    new = Peer(address)
    seen.append("connected")
    new.ask(5, 6)
    seen.append(new.hear(SILENCE_S))
    seen.append(old.hear(SILENCE_S))
    go_on()
    seen += [old.hear() for _ in range(3)]
    seen += [new.hear() for _ in range(2)]
    old.ask(7)
    seen.append(old.hear())
    for peer in (old, new):
        peer.close()
    return seen


def of_a_real_process():
    with subprocess.Popen([sys.executable, "-c", REAL_SERVER], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = ("127.0.0.1", int(server.stdout.readline()))

            def stop():
                server.send_signal(signal.SIGSTOP)
                os.waitpid(server.pid, os.WUNTRACED)

            return observe(address, stop, lambda: server.send_signal(signal.SIGCONT))
        finally:
            server.kill()


def of_an_emulated_node():
    async def main(world):
        node = add_host(world, 1, "node")
        server = RpcServer(process_of(node))
        server.register(ECHO, lambda _channel, request: request.answer())
        process_of(node).listen(PORT, server)
        address = (world.fabric.carrier.physical_ip(node.ip), PORT)
        return await trio.to_thread.run_sync(
            observe,
            address,
            lambda: trio.from_thread.run(node.suspend),
            lambda: trio.from_thread.run(node.resume),
        )

    return execute_world(main, mode=TimeMode.LIVE).result


class Answers(ChannelHandler):
    """What an emulated peer hears."""

    def __init__(self):
        self.heard = []

    def on_command(self, channel, command):
        self.heard.append(command.opaque)

    def on_close(self, channel):
        self.heard.append("FIN")


def of_an_emulated_node_as_another_one_sees_it(mode):
    """The same deeds as in `observe`, by a node of the same world."""

    async def main(world):
        server, client = add_host(world, 1, "node"), add_host(world, 2, "client")
        rpc = RpcServer(process_of(server))
        rpc.register(ECHO, lambda _channel, request: request.answer())
        process_of(server).listen(PORT, rpc)
        seen = []

        async def dial():
            answers = Answers()
            return await process_of(client).connect(f"{server.ip}:{PORT}", answers, PATIENCE_S * 1_000), answers.heard

        def ask(channel, *opaques):
            for opaque in opaques:
                channel.send(Command(ECHO, opaque=opaque))

        async def hear(heard):
            await world.sleep_until_ns(world.timeline.now_ns + int(SILENCE_S * 1_000) * MS)
            seen.extend(heard or ["silence"])
            heard.clear()

        old, from_old = await dial()
        ask(old, 1)
        await hear(from_old)
        await server.suspend()
        ask(old, 2, 3, 4)
        await hear(from_old)
        new, from_new = await dial()
        seen.append("connected")
        ask(new, 5, 6)
        await hear(from_new)
        await hear(from_old)
        await server.resume()
        await hear(from_old)
        await hear(from_new)
        ask(old, 7)
        await hear(from_old)
        return seen

    return execute_world(main, mode=mode, delay_ms=1).result


SEEN = [1, "silence", "connected", "silence", "silence", 2, 3, 4, 5, 6, 7]


def test_a_peer_cannot_distinguish_a_suspended_node_from_a_stopped_process():
    assert of_a_real_process() == SEEN
    assert of_an_emulated_node() == SEEN


@pytest.mark.parametrize("mode", VIRTUAL)
def test_a_node_sees_of_a_suspended_one_what_a_peer_sees_of_a_stopped_process(mode):
    assert of_an_emulated_node_as_another_one_sees_it(mode) == SEEN
