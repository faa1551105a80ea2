"""`python -m fuzz.frames`: random frames on a live cluster, beside a client that behaves well.

The cluster runs in a process of its own. Nothing that is sent may end it, make it log a bug of its own, or let it use
more memory than its limit; the client beside has to get every answer, and its latencies are printed beside those at a
cluster that is left alone. Frames after which something was wrong are looked for among the last ones and kept.
"""

import selectors
import socket
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from random import Random, SystemRandom
from typing import Annotated

import attrs
import typer

from emulator.cli.terminal import progress_bar, tables_console
from emulator.trace.run_directory import table_rows
from emulator.trace.schema import RPC
from fuzz.requests import FRAMINGS, Framing, random_frame
from support.live_cluster import BROKER_PORT, INTERRUPTED, NAMESERVER_PORT, LiveCluster
from support.well_behaved import WellBehaved

MEMORY_BYTES_MAX = 1024 * 1024 * 1024
CLUSTER = f"""
[scenario]
name = "fuzzed"
run_for_s = 86_400

[network]
delay_ms = 0

[guest_limits]
memory_bytes = {MEMORY_BYTES_MAX}

[nameserver]
count = 1

[[broker]]
name = "b"
options = {{ enablePropertyFilter = true }}
"""
KEPT = Path(__file__).parent / "corpus"
_CONNECTIONS, _BURST, _LAST_FRAMES = 24, 48, 60
_ALONE_S = 10
_PAUSE_S = 0.02
_MESSAGES_PER_HEARTBEAT = 500
_BYTES_SHARE = 0.01
"""Frames with damaged bytes end their connection, and what is sent behind them is lost."""
_ANSWER_S = 0.5
"""A connection goes on after this time without an answer: not every frame has one."""
_PATIENCE_S = 30


class GoodClient(threading.Thread):
    """Sends a message, pulls it, and notes how long both took, again and again."""

    def __init__(self, broker: str, name: str) -> None:
        super().__init__(daemon=True)
        self.latencies_s: list[float] = []
        self.problem = ""
        self.address = ""
        self._broker = broker
        self._name = name
        self._over = threading.Event()

    def run(self) -> None:
        """Go on until it is stopped."""
        try:
            self._consume()
        except (AssertionError, OSError, KeyError) as error:
            self.problem = f"{type(error).__name__}: {error}"

    def stop(self) -> None:
        """End after the current message."""
        self._over.set()
        self.join(_PATIENCE_S)

    def _consume(self) -> None:
        client, number = WellBehaved(self._broker, self._name), 0
        self.address = client.address
        while not self._over.wait(_PAUSE_S):
            if number % _MESSAGES_PER_HEARTBEAT == 0:  # a broker closes a member that is silent for two minutes
                client.beat()
            began = time.perf_counter()
            client.notices_nothing()
            self.latencies_s.append(time.perf_counter() - began)
            number += 1

    def shown(self) -> str:
        """Median and 99th percentile in milliseconds."""
        ordered = sorted(self.latencies_s)
        if not ordered:
            return "no answer"
        p50, p99 = (ordered[int(len(ordered) * share)] * 1_000 for share in (0.5, 0.99))
        return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms of {len(ordered)}"


class Attacker:
    """One connection that sends random frames, and reads what comes back."""

    def __init__(self, address: tuple[str, int], framing: Framing) -> None:
        self.framing = framing
        self.last: deque[bytes] = deque(maxlen=_LAST_FRAMES)
        self.answered_bytes = 0
        self._due_s = 0.0
        self.wire = socket.create_connection(address, _PATIENCE_S)
        self.wire.setblocking(False)
        self._unsent = bytearray(framing.greeting)

    def say(self, chance: Random, frames: int) -> int:
        """Send some frames once the earlier ones were answered, or had their time; returns how many."""
        self._flush()
        if self._unsent or time.perf_counter() < self._due_s:
            return 0
        for _ in range(frames):
            frame = random_frame(self.framing, chance, chance.randrange(2**31), bytes_share=_BYTES_SHARE)
            self.last.append(frame)
            self._unsent += frame
        self._due_s = time.perf_counter() + _ANSWER_S
        self._flush()
        return frames

    def hear(self) -> bool:
        """Read what has come; returns whether the connection is still open."""
        try:
            got = self.wire.recv(1 << 20)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.answered_bytes += len(got)
        self._due_s = 0.0
        return bool(got)

    def _flush(self) -> None:
        try:
            del self._unsent[: self.wire.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it is closed, which `hear` tells
            self._unsent.clear()


@attrs.define
class Fuzzed:
    """What a fuzzing session saw."""

    frames: Counter[str] = attrs.Factory(Counter)
    connections: int = 0
    answered_bytes: int = 0
    memory_bytes_max: int = 0
    last: list[bytes] = attrs.Factory(list)
    """The latest frames of every connection, with their greetings."""


def attack(cluster: LiveCluster, frames: int, seed: int, progress: Callable[[float], None]) -> Fuzzed:
    """Send random frames to a cluster over several connections at once."""
    chance, seen = Random(seed), Fuzzed()
    addresses = ((cluster.broker, BROKER_PORT), (cluster.broker, BROKER_PORT), (cluster.nameserver, NAMESERVER_PORT))
    finished: deque[Attacker] = deque(maxlen=_CONNECTIONS)
    with selectors.DefaultSelector() as selector:
        attackers: list[Attacker] = []
        while seen.frames.total() < frames and cluster.process.poll() is None:
            while len(attackers) < _CONNECTIONS:
                attackers.append(Attacker(chance.choice(addresses), chance.choice(FRAMINGS)))
                selector.register(attackers[-1].wire, selectors.EVENT_READ, attackers[-1])
                seen.connections += 1
            for attacker in attackers:
                seen.frames[attacker.framing.name] += attacker.say(chance, chance.randrange(1, _BURST))
            for key, _ in selector.select(0.01):
                if not key.data.hear():
                    selector.unregister(key.fileobj)
                    attackers.remove(key.data)
                    finished.append(key.data)
                    seen.answered_bytes += key.data.answered_bytes
                    key.data.wire.close()
            seen.memory_bytes_max = max(seen.memory_bytes_max, cluster.memory_bytes)
            progress(seen.frames.total() / frames)
    seen.answered_bytes += sum(attacker.answered_bytes for attacker in attackers)
    seen.last = [one.framing.greeting + frame for one in (*finished, *attackers) for frame in one.last]
    for attacker in attackers:
        attacker.wire.close()
    return seen


def problems_of(cluster: LiveCluster, seen: Fuzzed | None = None) -> list[str]:
    """End a cluster, and what is wrong with it."""
    died = cluster.process.poll()
    said = cluster.end()
    problems = [] if died is None else [f"the cluster ended with status {died}: {said.strip()[-300:]}"]
    if died is None and cluster.process.returncode != INTERRUPTED:
        problems.append(f"it ended with status {cluster.process.returncode} after Ctrl-C: {said.strip()[-300:]}")
    if "Traceback" in said:
        problems.append(f"it printed a traceback: {said.strip()[-600:]}")
    if not (cluster.run / "manifest.json").exists():
        problems.append("it left no manifest")
    problems += [f"logged: {line}" for line in cluster.log() if line["level"] == "error"][:5]
    if seen is not None and seen.memory_bytes_max > MEMORY_BYTES_MAX * 1.2:
        problems.append(f"it used {seen.memory_bytes_max} bytes of memory")
    return problems


def harmful(frames: list[bytes]) -> list[bytes]:
    """The fewest of the frames after which something is wrong, found by halving; empty if they do no harm."""

    def harm(some: list[bytes]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            cluster = LiveCluster(Path(folder), CLUSTER)
            for stream in some:
                with socket.create_connection((cluster.broker, BROKER_PORT), _PATIENCE_S) as wire:
                    wire.sendall(stream)
            time.sleep(1)
            return bool(problems_of(cluster))

    if not harm(frames):
        return []
    while len(frames) > 1:
        half = len(frames) // 2
        frames, rest = (frames[:half], frames[half:])
        if not harm(frames):
            if not harm(rest):
                return frames + rest
            frames = rest
    return frames


_FramesOption = Annotated[int, typer.Option("--frames", help="Frames to send.")]
_SeedOption = Annotated[
    int | None,
    typer.Option("--seed", help="The same seed makes the same frames, sent in another order; else one is drawn."),
]
_OutOption = Annotated[Path | None, typer.Option("--out", help="Keep the run here.", file_okay=False)]


def main(*, frames: _FramesOption = 1_000_000, seed: _SeedOption = None, out: _OutOption = None) -> None:
    """Send random frames to a live cluster, and tell what harm they did."""
    drawn = SystemRandom().randrange(2**31) if seed is None else seed
    tables_console().print(f"seed {drawn}")
    with tempfile.TemporaryDirectory() as folder:
        if out is not None:
            out.mkdir(parents=True)
        problems, last = _session(out or Path(folder), frames, drawn)
    if problems:
        tables_console().print("\n".join(problems), markup=False)
        _keep(harmful(last))
        raise typer.Exit(1)
    tables_console().print("no harm")


def _session(folder: Path, frames: int, seed: int) -> tuple[list[str], list[bytes]]:
    """Send the frames, and print what was measured; returns what was wrong, and the latest frames."""
    cluster = LiveCluster(folder, CLUSTER)
    alone, beside = GoodClient(cluster.broker, "alone"), GoodClient(cluster.broker, "good")
    alone.start()
    time.sleep(_ALONE_S)
    alone.stop()
    before_bytes = cluster.memory_bytes
    beside.start()
    began = time.perf_counter()
    with progress_bar("frames") as progress:
        seen = attack(cluster, frames, seed, progress)
    beside.stop()
    took_s, cpu_s = time.perf_counter() - began, cluster.cpu_s if cluster.process.poll() is None else 0.0
    problems = [f"the good client: {one.problem}" for one in (alone, beside) if one.problem]
    problems += problems_of(cluster, seen)
    closed = [row["detail"] for row in table_rows(cluster.run, RPC) if row["event"] == "malformed"]
    problems += [f"the good client: {detail}" for detail in closed if detail.startswith(f"{beside.address}:")][:5]
    kinds = Counter(str(line.get("error", "")).partition(":")[0] for line in cluster.log())
    console = tables_console()
    total, most = seen.frames.total(), seen.memory_bytes_max >> 20
    console.print(f"{total} frames in {took_s:.0f} s over {seen.connections} connections: {dict(seen.frames)}")
    console.print(f"{len(closed)} malformed rows, {seen.answered_bytes >> 20} MiB of answers")
    console.print(f"cluster: {cpu_s:.0f} s of CPU, {before_bytes >> 20} MiB before, at most {most} MiB")
    console.print(f"good client alone: {alone.shown()}; beside the frames: {beside.shown()}")
    console.print(f"errors that handlers answered: {dict(kinds.most_common(6))}")
    return problems, seen.last


def _keep(frames: list[bytes]) -> None:
    KEPT.mkdir(exist_ok=True)
    for frame in frames:
        path = KEPT / f"{abs(hash(frame)) % 10**10:010d}.frame"
        path.write_bytes(frame)
        sys.stderr.write(f"kept {path}\n")


if __name__ == "__main__":
    typer.run(main)
