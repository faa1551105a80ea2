"""An attack: sequences of steps, acted out on a live cluster."""

import queue
import re
import selectors
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import count
from random import Random

import attrs

from emulator.base.errors import UserError
from emulator.console.control_client import say
from emulator.console.control_socket import SOCKET_FILE
from emulator.guests.remoting.remoting_command import encode_remoting
from emulator.spec import loads
from emulator.spec.model.addresses import addresses
from fuzz.requests import EMULATOR, FRAMINGS, Framing, random_frame
from fuzz.steps import Act, Step
from network.hostile_requests import PULL, SEND_V2, heartbeat
from nodes.config.controller import CONTROLLER_PORT
from support.live_cluster import BROKER_PORT, NAMESERVER_PORT, LiveCluster
from support.remoting_program import Caller, request

_HEARTBEAT, _SEND, _PULL, _CLUSTER_INFO = 34, 310, 11, 106
_BYTES_SHARE = 0.01
"""Share of frames with damaged bytes: they end their connection, and what is sent behind them is lost."""
_UNSENT_BYTES_MAX = 256 * 1024
"""A guest with more bytes than that which its node has not read yet waits before it sends more."""
_WAIT_S_MAX = 0.5
_DIAL_S = 30
_HISTORY_STEPS = 20_000
_LINES_WAITING_MAX, _OPERATORS = 8, 4
_LAST_ANSWER_S = 2
_BIG_BODY = b"x" * 100_000
_OPAQUES = count(1)
_GROUPS = ",".join(f'{{"groupName":"p{number}"}}' for number in range(2_000))
_HEAVY = f'{{"clientID":"heavy","consumerDataSet":[],"producerDataSet":[{_GROUPS}]}}'.encode()
_BROKERS = re.compile(r'"([^"]+)":\{"brokerAddrs":\{[^}]*?"(127[.\d]+):10911"')


class Attacker:
    """One connection: what it sends waits for its turn, and what comes back is read, or not."""

    def __init__(self, address: tuple[str, int], framing: Framing) -> None:
        self.framing = framing
        self.reads = True
        self.answered_bytes = 0
        self.wire = socket.create_connection(address, _DIAL_S)
        self.wire.setblocking(False)
        self._unsent = bytearray(framing.greeting)

    @property
    def is_free(self) -> bool:
        """Whether its node has read nearly all that it has sent."""
        return len(self._unsent) < _UNSENT_BYTES_MAX

    def send(self, *frames: bytes) -> None:
        """Send these frames as soon as the socket takes them."""
        self._unsent += b"".join(frames)
        self.flush()

    def flush(self) -> None:
        """Send what waits."""
        try:
            while self._unsent:
                del self._unsent[: self.wire.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it is closed, which `hear` sees
            self._unsent.clear()

    def hear(self) -> bool:
        """Read what has come; returns whether the connection is still open."""
        try:
            got = self.wire.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.answered_bytes += len(got)
        return bool(got)

    def leave(self, *, reset: bool) -> None:
        """Close the connection, with a RST if asked to."""
        if reset:
            self.wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.wire.close()


class Operators:
    """Run verbs over the control socket while the guests go on, several at a time.

    A verb may wait for another one: a suspended node is restarted when it is resumed.
    """

    def __init__(self, cluster: LiveCluster) -> None:
        self.said: Counter[str] = Counter()
        self.longest_s = 0.0
        """Longest wait for the answer to a verb."""
        self.longest_line = ""
        self._socket = cluster.run / SOCKET_FILE
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._threads = [threading.Thread(target=self._print_all, daemon=True) for _ in range(_OPERATORS)]
        for thread in self._threads:
            thread.start()

    def send_soon(self, line: str) -> None:
        """Say a line as soon as an operator is free; too many lines are dropped."""
        if self._lines.qsize() < _LINES_WAITING_MAX:
            self._lines.put(line)

    def stop(self) -> None:
        """Let them end, those excepted that still wait for an answer."""
        with suppress(queue.Empty):
            while True:
                self._lines.get_nowait()
        for _ in self._threads:
            self._lines.put(None)
        until_s = time.perf_counter() + _LAST_ANSWER_S
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.perf_counter()))

    def _print_all(self) -> None:
        while (line := self._lines.get()) is not None:
            began_s = time.perf_counter()
            try:
                tuple(say(self._socket, line.split()))
                self.said[line.split()[0]] += 1
            except (UserError, OSError):  # such as: there is nothing to kill
                self.said["refused"] += 1
            if time.perf_counter() - began_s > self.longest_s:
                self.longest_s, self.longest_line = time.perf_counter() - began_s, line


@attrs.define
class Seen:
    """What an attack did and saw."""

    frames: Counter[str] = attrs.Factory(Counter)
    """Mapping framing -> frames."""
    acts: Counter[str] = attrs.Factory(Counter)
    verbs: Counter[str] = attrs.Factory(Counter)
    connections: int = 0
    answered_bytes: int = 0
    memory_bytes_max: int = 0
    longest_verb_s: float = 0.0
    longest_verb: str = ""


class Attack:
    """Acts sequences out on one cluster.

    Args:
        cluster: with the nodes of `steps.NODES` and the consumer group g.
        seen: what is counted.
    """

    def __init__(self, cluster: LiveCluster, seen: Seen) -> None:
        self.history: deque[tuple[float, Step]] = deque(maxlen=_HISTORY_STEPS)
        """(seconds since 1970, step) of the latest steps."""
        self._cluster = cluster
        self._seen = seen
        self._guests: dict[int, Attacker] = {}
        self._crowd: list[Attacker] = []
        self._selector = selectors.DefaultSelector()
        self._operators = Operators(cluster)
        self._addresses = addresses_of_nodes(cluster)

    def act(self, sequence: Iterable[Step]) -> None:
        """Act a sequence out; stops early if the cluster has ended."""
        for step in sequence:
            if self._cluster.process.poll() is not None:
                return
            self._wait_for(step)
            self.history.append((time.time(), step))
            self._do(step)
            self._seen.acts[step.act.value] += 1
            self._hear(0)
            self._seen.memory_bytes_max = max(self._seen.memory_bytes_max, self._cluster.memory_bytes)

    def end(self) -> None:
        """All guests and operators leave."""
        for attacker in (*self._guests.values(), *self._crowd):
            self._leave(attacker, reset=False)
        self._guests.clear()
        self._crowd.clear()
        self._operators.stop()
        self._selector.close()
        self._seen.verbs += self._operators.said
        if self._operators.longest_s > self._seen.longest_verb_s:
            self._seen.longest_verb_s, self._seen.longest_verb = self._operators.longest_s, self._operators.longest_line

    def _wait_for(self, step: Step) -> None:
        """Let a node read most of what a guest has sent before its next frames."""
        attacker = self._guests.get(step.guest)
        if step.act not in (Act.FRAMES, Act.SEND, Act.BEAT, Act.HOLD) or attacker is None or not attacker.reads:
            return
        until_s = time.perf_counter() + _WAIT_S_MAX
        while not attacker.is_free and time.perf_counter() < until_s and self._guests.get(step.guest) is attacker:
            self._hear(0.01)

    def _hear(self, patience_s: float) -> None:
        for attacker in (*self._guests.values(), *self._crowd):
            attacker.flush()
        for key, _ in self._selector.select(patience_s):
            if not key.data.hear():
                self._forget(key.data)

    def _forget(self, attacker: Attacker) -> None:
        self._guests = {number: other for number, other in self._guests.items() if other is not attacker}
        self._crowd = [other for other in self._crowd if other is not attacker]
        self._leave(attacker, reset=False)

    def _leave(self, attacker: Attacker, *, reset: bool) -> None:
        if attacker.reads:
            self._selector.unregister(attacker.wire)
        self._seen.answered_bytes += attacker.answered_bytes
        attacker.leave(reset=reset)

    def _dial(self, node: str, framing: Framing) -> Attacker | None:
        try:
            attacker = Attacker(self._addresses[node], framing)
        except OSError:  # its node is down
            return None
        self._selector.register(attacker.wire, selectors.EVENT_READ, attacker)
        self._seen.connections += 1
        return attacker

    def _do(self, step: Step) -> None:
        match step.act:
            case Act.VERB:
                self._operators.send_soon(step.word)
            case Act.PAUSE:
                until_s = time.perf_counter() + step.count / 1_000
                while time.perf_counter() < until_s:
                    self._hear(0.01)
            case Act.CROWD:
                self._come(step.count)
            case Act.EMPTY:
                crowd, self._crowd = self._crowd, []
                for member in crowd:
                    self._leave(member, reset=False)
            case Act.DIAL:
                self._dial_again(step)
            case _ if (attacker := self._guests.get(step.guest)) is not None:
                self._attack(step, attacker)

    def _dial_again(self, step: Step) -> None:
        old = self._guests.pop(step.guest, None)
        if old is not None:
            self._leave(old, reset=False)
        node, framing = step.word.split()
        new = self._dial(node, FRAMINGS[int(framing)])
        if new is not None:
            self._guests[step.guest] = new

    def _come(self, count: int) -> None:
        """Members of one group join, over connections of their own."""
        for _ in range(count):
            member = self._dial("broker-a", FRAMINGS[1])
            if member is None:
                return
            self._crowd.append(member)
            client_id = f'"member-{self._seen.connections}"'
            self._send(member, _frame(_HEARTBEAT, {}, heartbeat(1, "crowd").replace('"c1"', client_id).encode()))

    def _attack(self, step: Step, attacker: Attacker) -> None:
        match step.act:
            case Act.FRAMES:
                chance = Random(step.seed)
                opaques = (chance.randrange(2**31) for _ in range(step.count))
                frames = [
                    random_frame(attacker.framing, chance, opaque, bytes_share=_BYTES_SHARE) for opaque in opaques
                ]
                self._send(attacker, *frames)
            case Act.FIN | Act.RST:
                del self._guests[step.guest]
                self._leave(attacker, reset=step.act is Act.RST)
            case _ if attacker.framing is EMULATOR:
                pass  # the other acts speak RocketMQ's framing
            case Act.SEND:
                self._send(attacker, *(_frame(_SEND, SEND_V2, b"x" * 100) for _ in range(step.count)))
            case Act.BEAT:
                self._send(attacker, *(_frame(_HEARTBEAT, {}, _HEAVY) for _ in range(step.count)))
            case Act.HOLD:
                held = PULL | {"sysFlag": "2", "suspendTimeoutMillis": "15000", "queueOffset": "1000000"}
                self._send(attacker, _frame(_HEARTBEAT, {}, heartbeat(1).encode()))
                self._send(attacker, *(_frame(_PULL, held, b"") for _ in range(step.count)))
            case Act.DEAF:
                self._send(attacker, _frame(_SEND, SEND_V2, _BIG_BODY))
                self._send(attacker, *(_frame(_PULL, PULL, b"") for _ in range(step.count)))
                if attacker.reads:
                    self._selector.unregister(attacker.wire)
                    attacker.reads = False
            case Act.HALF:
                self._send(attacker, _frame(_SEND, SEND_V2, _BIG_BODY * 10)[:500_000])

    def _send(self, attacker: Attacker, *frames: bytes) -> None:
        attacker.send(*frames)
        self._seen.frames[attacker.framing.name] += len(frames)


def _frame(code: int, fields: Mapping[str, str], body: bytes) -> bytes:
    texts: dict[str | None, str | None] = {name: value for name, value in fields.items()}  # noqa: C416 - other types
    return encode_remoting(request(code, next(_OPAQUES), fields=texts, body=body))


def addresses_of_nodes(cluster: LiveCluster) -> dict[str, tuple[str, int]]:
    """Mapping node of `steps.NODES` -> address that guests dial."""
    brokers = {name: (ip, BROKER_PORT) for name, ip in addresses_of_brokers(cluster).items()}
    controller = addresses(loads((cluster.run.parents[1] / "cluster.toml").read_text(), "cluster.toml"))["controller-1"]
    return brokers | {
        "ns-1": (cluster.nameserver, NAMESERVER_PORT),
        "controller-1": (controller, CONTROLLER_PORT),
    }


def addresses_of_brokers(cluster: LiveCluster) -> dict[str, str]:
    """Mapping broker -> IP address that guests dial."""
    known = Caller(cluster.nameserver, NAMESERVER_PORT).ask_raw(_CLUSTER_INFO, {}, b"").body
    return dict(_BROKERS.findall((known or b"").decode()))
