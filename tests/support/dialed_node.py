"""A node in a live world that programs dial: it echoes, holds and works, and records what it handled."""

import time

import trio

from emulator.testing.worlds import PORT, add_host, execute_world, process_of
from emulator.time.mode import TimeMode
from nodes.protocol.bodies import ClusterInfo, PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import BrokerData, HeartbeatData, Message
from nodes.protocol.registry import decode_body, encode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from support.remoting_program import Program

ECHO, HOLD, BURN = 4_711, 4_712, 4_713
HEARTBEAT = b'{"clientID":"c@1","producerDataSet":[{"groupName":"p"}]}'


def burn(duration_s):
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
        self.burn_s = 0.1
        self.work_s = 0.0
        """What a heartbeat takes, and the end of a connection."""
        self.order = []
        """What was handled, in order: echo, heartbeat, close, burn."""
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
        self.order.append("burn")
        burn(self.burn_s)
        return requested.answer()

    def _close(self):
        self._work("close")

    def _work(self, subject):
        """Take as long as a broker does that notifies some hundred members."""
        self.order.append(subject)
        burn(self.work_s)

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
        return requested.answer(0, None, {"msgId": offset_message_id(f"{self.node.ip}:{PORT}", 7)}, None)

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
