"""`python -m fuzz.calls`: random HTTP/2 on the port of a node that answers calls, next to a client that behaves well.

Several guests send random frames over connections of their own, read the answers or do not, and come again when they
were sent away; others read no answers, or say nothing. Nothing may end the node, make it log a bug of its own, make it
use more memory than its limits, or keep the client that behaves well waiting while it takes more CPU time than forty
loops of a million steps: how long that lasts is a matter of the machine, and of what else it does.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random, SystemRandom
from typing import Annotated, Any

import attrs
import typer

from emulator.cli.terminal import progress_bar, tables_console
from emulator.guests.grpc.messages import service_methods
from fuzz.good_client import Waits
from fuzz.http2_frames import MARK, RandomClient, frames_in, unread_calls

_TESTS = Path(__file__).parents[1]
_GUESTS = 8
_DEAF_SHARE = 0.01
"""Batches behind which a guest reads nothing any more."""
_ANSWER_S = 1.0
"""After so long without an answer a guest dials again."""
_BATCH = 20
"""Draws of a guest in its turn."""
_PATIENCE_S = 60
_CROWD_GUESTS, _CROWD_CALLS = 40, 900
_SILENT_GUESTS = 200
_HALF_HANDSHAKE = bytes.fromhex("16030102000100 01fc0303")
"""The begin of TLS: a ClientHello of 508 bytes, of which two arrive."""
_NODE_LOOPS_MAX = 40
"""Of all waits in a million frames, where a loop took 15 ms; the longest took 374 and 528 ms, and 199 at the 99th
percentile."""
_LOOP_STEPS = 1_000_000
_MEMORY_BYTES_MAX = 192 * 1_024 * 1_024


class _Guest:
    """One guest with one connection at a time; a PING frame behind its frames shows when the node has read them."""

    def __init__(self, address: tuple[str, int], chance: Random) -> None:
        self.frames = 0
        """That the node has read."""
        self.connections = 0
        self._address = address
        self._chance = chance
        self._client = RandomClient(chance)
        self._wire: socket.socket | None = None
        self._unsent = b""
        self._unread_frames = 0
        self._got = b""
        self._until_s = 0.0

    def act(self) -> None:
        """Send some frames if those before were read, and read what has come."""
        if self._wire is None or self._client.is_used_up or time.perf_counter() > self._until_s:
            self._dial()
        elif not self._unread_frames:
            self._say()
        self._exchange()

    def leave(self) -> None:
        """Close the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _dial(self) -> None:
        self.leave()
        self._wire = socket.create_connection(self._address, _PATIENCE_S)
        self._wire.setblocking(False)
        self._unsent = self._client.begin()
        self.connections += 1
        self._say()

    def _say(self) -> None:
        frames = b"".join(self._client.frames() for _ in range(_BATCH))
        self._unread_frames = frames_in(frames)
        self._unsent += frames + self._client.ping()
        self._until_s = time.perf_counter() + _ANSWER_S
        self._is_deaf = self._chance.random() < _DEAF_SHARE

    def _exchange(self) -> None:
        assert self._wire is not None
        try:
            with suppress(BlockingIOError):
                self._unsent = self._unsent[self._wire.send(self._unsent) :]
            with suppress(BlockingIOError):
                if not self._is_deaf:
                    self._read(self._wire.recv(1 << 20))
        except OSError:
            self.leave()

    def _read(self, got: bytes) -> None:
        if not got:
            self.leave()
        if MARK in self._got[-len(MARK) :] + got:
            self.frames += self._unread_frames
            self._unread_frames = 0
            got = b""
        self._got = got


def _started(module: str, *words: str) -> subprocess.Popen[str]:
    places = os.pathsep.join(filter(None, (str(_TESTS), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": places},
    )


def _ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    answer, _ = process.communicate(timeout=_PATIENCE_S)
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found


@attrs.frozen
class Fuzzed:
    """What an attack did and saw."""

    frames: int
    connections: int
    proxy: dict[str, Any]
    waits: Waits
    node_cpu_ms_max: float
    """The most CPU time that the node took during a call of the client that behaves well."""
    loop_cpu_ms: float
    """The CPU time of a loop of a million steps on this machine, while it was slowest."""

    def impact(self) -> list[str]:
        """What is wrong."""
        found = [f"logged: {line}" for line in self.proxy["errors"]]
        if not self.proxy["is_well"]:
            found.append("an emulated client is not served any more")
        if self.waits.problem:
            found.append(f"the good client: {self.waits.problem}")
        if self.node_cpu_ms_max > _NODE_LOOPS_MAX * self.loop_cpu_ms:
            took = f"{self.node_cpu_ms_max:.0f} ms of CPU time, where a loop takes {self.loop_cpu_ms:.0f}"
            found.append(f"the good client waited while the node took {took}")
        if self.proxy["memory_bytes_max"] > _MEMORY_BYTES_MAX:
            found.append(f"it used {self.proxy['memory_bytes_max']} bytes of memory")
        return found


class _Silent:
    """Guests that dial and say nothing, or begin a handshake of TLS and stop."""

    def __init__(self, address: tuple[str, int], guests: int) -> None:
        self._wires = [socket.create_connection(address, _PATIENCE_S) for _ in range(guests)]
        for wire in self._wires[::2]:
            wire.sendall(_HALF_HANDSHAKE)

    def leave(self) -> None:
        """Close the connections."""
        for wire in self._wires:
            wire.close()


class _Crowd:
    """Guests that make many calls at once and read no answer."""

    def __init__(self, address: tuple[str, int], guests: int) -> None:
        query = next(method for method in service_methods() if method.name == "QueryRoute")
        route = query.request(topic={"name": "t"})
        self._unsent = memoryview(unread_calls(query.path, route.SerializeToString(), _CROWD_CALLS))
        self._wires = {socket.create_connection(address, _PATIENCE_S): self._unsent for _ in range(guests)}
        for wire in self._wires:
            wire.setblocking(False)

    def act(self) -> None:
        """Send what the node takes."""
        for wire, unsent in self._wires.items():
            with suppress(OSError):
                self._wires[wire] = unsent[wire.send(unsent) :]

    @property
    def has_sent_all(self) -> bool:
        """Whether the node has taken all calls."""
        return not any(map(len, self._wires.values()))

    def leave(self) -> None:
        """Close the connections."""
        for wire in self._wires:
            wire.close()


def _loop_cpu_ms() -> float:
    begin_s = time.process_time()
    for _ in range(_LOOP_STEPS):
        pass
    return (time.process_time() - begin_s) * 1_000


def attack(frames: int, seed: str, *, crowd: int = _CROWD_GUESTS) -> Fuzzed:
    """Send at least so many frames to a node of its own, next to a crowd that makes calls at once."""
    proxy = _started("fuzz.called_proxy")
    assert proxy.stdout is not None
    ip, _, port = proxy.stdout.readline().strip().partition(":")
    good = _started("fuzz.calling_client", f"{ip}:{port}", str(proxy.pid))
    assert good.stdout is not None
    good.stdout.readline()  # its first call was answered
    loop_cpu_ms = _loop_cpu_ms()
    guests = [_Guest((ip, int(port)), Random(f"{seed} {number}")) for number in range(_GUESTS)]
    unread, silent = _Crowd((ip, int(port)), crowd), _Silent((ip, int(port)), _SILENT_GUESTS)
    with progress_bar("frames") as progress:
        while not unread.has_sent_all and proxy.poll() is None:
            unread.act()
        while (sent := sum(guest.frames for guest in guests)) < frames and proxy.poll() is None:
            for guest in guests:
                guest.act()
            progress(min(1.0, sent / frames))
    unread.leave()
    silent.leave()
    for guest in guests:
        guest.leave()
    loop_cpu_ms = max(loop_cpu_ms, _loop_cpu_ms())
    seen, connections = _ended(good), sum(guest.connections for guest in guests)
    sent = sum(guest.frames for guest in guests)
    waits = Waits(**seen["waits"])
    return Fuzzed(sent, connections, _ended(proxy), waits, seen["node_cpu_ms_max"], loop_cpu_ms)


_FramesOption = Annotated[int, typer.Option("--frames", help="Frames to send, at least.")]
_SeedOption = Annotated[int | None, typer.Option("--seed", help="The same seed makes the same frames.")]


def main(*, frames: _FramesOption = 1_000_000, seed: _SeedOption = None) -> None:
    """Send random frames to a node that answers calls, and print what harm they did."""
    drawn = SystemRandom().randrange(2**31) if seed is None else seed
    console, began_s = tables_console(), time.perf_counter()
    console.print(f"seed {drawn}")
    fuzzed = attack(frames, str(drawn))
    took_s, rows = time.perf_counter() - began_s, fuzzed.proxy["malformed"]
    console.print(f"{fuzzed.frames} frames over {fuzzed.connections} connections in {took_s:.0f} s")
    memory_mib = fuzzed.proxy["memory_bytes_max"] >> 20
    console.print(f"node: {fuzzed.proxy['cpu_s']:.0f} s of CPU, at most {memory_mib} MiB, {len(rows)} malformed rows")
    for text, number in Counter(row[:40] for row in rows).most_common(8):
        console.print(f"{number:8} {text}", markup=False)
    console.print(f"good client: {fuzzed.waits.shown()}; {fuzzed.node_cpu_ms_max:.0f} ms of the node's CPU at most")
    impact = fuzzed.impact()
    console.print("\n".join(impact) or "no harm", markup=False)
    if impact:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
