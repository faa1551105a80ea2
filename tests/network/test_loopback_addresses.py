"""The sockets of emulated addresses: two emulations side by side, and one after the other."""

import socket

import pytest

from emulator.network.loopback import LoopbackCarrier, LoopbackError
from emulator.testing.worlds import PORT, add_host, connected, execute_world, listening
from emulator.time.mode import TimeMode


def test_two_emulations_use_different_blocks_for_the_same_address():
    first, second = LoopbackCarrier(), LoopbackCarrier()
    try:
        listeners = [carrier.listen("127.1.1.1", PORT) for carrier in (first, second)]
        assert first.physical_ip("127.1.1.1") != second.physical_ip("127.1.1.1")
        assert [sock.getsockname()[0] for sock in listeners] == [c.physical_ip("127.1.1.1") for c in (first, second)]
    finally:
        first.release()
        second.release()


def test_a_port_that_another_program_holds_is_named():
    carrier = LoopbackCarrier()
    try:
        with (
            socket.create_server((carrier.physical_ip("127.1.1.1"), PORT)),
            pytest.raises(LoopbackError, match=r"cannot listen on 127\.\d+\.1\.1:10911: Address already in use"),
        ):
            carrier.listen("127.1.1.1", PORT)
    finally:
        carrier.release()


@pytest.mark.parametrize("mode", [TimeMode.FAST, TimeMode.LIVE])
def test_a_world_that_ends_leaves_no_socket_behind(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        await connected(add_host(world, 2, "client"), server)
        wires = [end.wire.socket for end in server.process.endpoints]
        return [*wires, *world.fabric.carrier._open]

    sockets = execute_world(main, mode=mode).result

    assert len(sockets) == 4
    assert [sock.fileno() for sock in sockets] == [-1] * 4
