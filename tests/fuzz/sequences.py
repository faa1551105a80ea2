"""`python -m fuzz.sequences`: sequences of steps on live clusters, next to a client that behaves well.

Several guests send frames of all codes, exceed their budgets, leave in every way and come again, while an operator says
verbs. Each cluster runs in a process of its own for some dozens of sequences. Nothing may end it, make it log a bug of
its own, print a traceback, use more memory than its limit, or keep the client that behaves well waiting for more than a
second. A sequence after which something is wrong is acted out again on clusters of its own with fewer and fewer steps,
and the shortest one that still does harm is retained.
"""

import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from random import Random, SystemRandom
from typing import Annotated

import attrs
import typer

from emulator.cli.terminal import progress_bar, tables_console
from emulator.trace.schema import RPC
from fuzz.attack import Attack, Seen, addresses_of_brokers, addresses_of_nodes
from fuzz.good_client import GoodClient, Waits
from fuzz.impact import MEMORY_BYTES_MAX, impact_of
from fuzz.requests import FRAMINGS, frame_of_each_code
from fuzz.steps import Step, random_sequence, save, shortened
from support.live_cluster import LiveCluster
from support.run_rows import table_rows

LIMITS = f"memory_bytes = {MEMORY_BYTES_MAX}\nrequests = 200\nunsent_bytes = 2_000_000\nall_unsent_bytes = 8_000_000\n"
CLUSTER = f"""
[scenario]
name = "fuzzed"
run_for_s = 86_400

[network]
delay_ms = 0

[guest_limits]
{LIMITS}unfinished_bytes = 2_000_000

[nameserver]
count = 1

[[broker]]
name = "good"
options = {{ enablePropertyFilter = true }}

[[broker]]
name = "broker-a"
options = {{ enablePropertyFilter = true }}

[[broker]]
name = "broker-b"
options = {{ enablePropertyFilter = true }}

[[broker]]
name = "guarded"
[broker.options]
authenticationEnabled = true
authorizationEnabled = true
authenticationMetadataProvider = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
authorizationMetadataProvider = "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"
initAuthenticationUser = "rocketmq-root"

[[account]]
access_key = "rocketmq-root"
secret_key = "secret-of-root"

[controller]
count = 1

[[topic]]
name = "orders"
queues = 4
brokers = ["broker-b"]

[[consumer]]
group = "g"
count = 2
topics = ["orders"]
options = {{ clientRebalance = false }}
"""
CORPUS = Path(__file__).parent / "corpus"
_SEQUENCES_PER_CLUSTER = 60
_SUSPECTS = 3
"""Latest sequences that are acted out again when something is wrong."""
_ALONE_S = 10
_WAIT_MS_MAX = 1_000
_ANSWER_S = 5
_BEFORE_S = 0.3


@attrs.define
class Session:
    """All clusters of one session."""

    wait_ms_max: float = _WAIT_MS_MAX
    """Longest wait of the client that behaves well that is no harm."""
    seen: Seen = attrs.Factory(Seen)
    waits: list[Waits] = attrs.Factory(list)
    """Of the client that behaves well, one for each cluster."""
    clusters: int = 0
    sequences: int = 0
    malformed: int = 0
    cpu_s: float = 0.0
    impact: list[str] = attrs.Factory(list)
    suspects: deque[tuple[Step, ...]] = attrs.Factory(lambda: deque(maxlen=_SUSPECTS))
    """The latest sequences."""


def send_each_code(cluster: LiveCluster, seen: Seen) -> None:
    """Send one valid frame of each code in each framing to brokers without and with ACL, nameserver and controller."""
    chance = Random(0)
    of_nodes = addresses_of_nodes(cluster)
    for address in (of_nodes[name] for name in ("broker-a", "guarded", "ns-1", "controller-1")):
        for framing in FRAMINGS:
            for frame in frame_of_each_code(framing, chance):
                with socket.create_connection(address, _ANSWER_S) as wire:
                    wire.sendall(framing.greeting + frame)
                seen.frames[framing.name] += 1


def act_out(session: Session, sequences: Sequence[tuple[Step, ...]], progress: Callable[[], None]) -> None:
    """Act sequences out on one cluster, and note what harm they did."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = LiveCluster(Path(folder), CLUSTER)
        good = GoodClient(addresses_of_brokers(cluster)["good"], "good")
        send_each_code(cluster, session.seen)
        attack = Attack(cluster, session.seen)
        for sequence in sequences:
            session.suspects.append(sequence)
            session.sequences += 1
            attack.act(sequence)
            progress()
            if cluster.process.poll() is not None:
                break
        attack.end()
        waits = good.stop()
        session.cpu_s += cluster.cpu_s if cluster.process.poll() is None else 0.0
        session.impact += [
            *_impact_on(waits, attack, session.wait_ms_max),
            *impact_of(cluster, session.seen.memory_bytes_max),
        ]
        malformed = [row for row in table_rows(cluster.run, RPC) if row["event"] == "malformed"]
        # Other guests may have the same port of this machine at other nodes.
        own = [row["detail"] for row in malformed if row["dst"] == "good"]
        session.impact += [f"the good client: {item}" for item in own if item.startswith(f"{waits.address}:")][:5]
        session.malformed += len(malformed)
        session.waits.append(waits)
        session.clusters += 1


def _impact_on(waits: Waits, attack: Attack, wait_ms_max: float) -> list[str]:
    impact = [f"the good client: {waits.problem}"] if waits.problem else []
    if waits.longest_ms > wait_ms_max:
        since_s = waits.longest_at_s - waits.longest_ms / 1_000 - _BEFORE_S
        steps = [
            f"{at_s - since_s:.3f} s {step}" for at_s, step in attack.history if since_s < at_s < waits.longest_at_s
        ]
        impact += [f"the good client waited for {waits.longest_ms:.0f} ms, while and before these steps:", *steps]
    return impact


def has_impact(sequence: Sequence[Step]) -> bool:
    """Whether a sequence does harm to a cluster of its own."""
    session = Session()
    act_out(session, [tuple(sequence)], lambda: None)
    return bool(session.impact)


_FramesOption = Annotated[int, typer.Option("--frames", help="Frames to send, at least.")]
_SeedOption = Annotated[
    int | None, typer.Option("--seed", help="The same seed makes the same steps; else one is drawn.")
]


def main(*, frames: _FramesOption = 1_000_000, seed: _SeedOption = None) -> None:
    """Act random sequences out on live clusters, and print what harm they did."""
    drawn = SystemRandom().randrange(2**31) if seed is None else seed
    tables_console().print(f"seed {drawn}")
    session, began_s, alone = Session(), time.perf_counter(), _alone()
    with progress_bar("frames") as progress:
        number = 0
        while session.seen.frames.total() < frames and not session.impact:
            sequences = [random_sequence(Random(f"{drawn} {number + item}")) for item in range(_SEQUENCES_PER_CLUSTER)]
            number += len(sequences)
            act_out(session, sequences, lambda: progress(min(1.0, session.seen.frames.total() / frames)))
    _print(session, alone, time.perf_counter() - began_s)
    if session.impact:
        _keep(session)
        raise typer.Exit(1)
    tables_console().print("no harm")


def _alone() -> Waits:
    """What the client that behaves well sees at a cluster that is left alone."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = LiveCluster(Path(folder), CLUSTER)
        good = GoodClient(addresses_of_brokers(cluster)["good"], "good")
        time.sleep(_ALONE_S)
        waits = good.stop()
        cluster.end()
    return waits


def _print(session: Session, alone: Waits, took_s: float) -> None:
    console, seen = tables_console(), session.seen
    where = f"{session.sequences} sequences on {session.clusters} clusters"
    console.print(f"{seen.frames.total()} frames in {where}, {took_s:.0f} s: {dict(seen.frames)}")
    console.print(f"steps: {dict(seen.acts)}")
    console.print(f"verbs: {dict(seen.verbs)}; longest {seen.longest_verb_s:.1f} s: {seen.longest_verb}")
    figures = f"{session.malformed} malformed rows, {seen.answered_bytes >> 20} MiB of answers"
    console.print(f"{seen.connections} connections, {figures}")
    console.print(f"clusters: {session.cpu_s:.0f} s of CPU, at most {seen.memory_bytes_max >> 20} MiB")
    worst = max(session.waits, key=lambda waits: waits.longest_ms)
    console.print(f"good client alone: {alone.shown()}; next to the sequences, at the worst cluster: {worst.shown()}")


def _keep(session: Session) -> None:
    """Print the harm, find the steps that did it, and write them to the corpus."""
    console = tables_console()
    console.print("\n".join(session.impact), markup=False)
    for sequence in reversed(session.suspects):
        retained = shortened(sequence, has_impact)
        if has_impact(retained):
            path = CORPUS / f"{blake2b(repr(retained).encode(), digest_size=5).hexdigest()}.sequence"
            save(path, retained)
            console.print(f"{len(retained)} steps do harm: {path}", markup=False)
            return
    console.print("none of the latest sequences does harm alone")


if __name__ == "__main__":
    typer.run(main)
