"""`python -m fuzz.crowd`: a thousand members of one group join at once and leave at once; who waits, and for how long.

A client that behaves well, in a process of its own, sends to another broker and consumes from it meanwhile.
"""

import selectors
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.terminal import tables_console
from fuzz.attack import addresses_of_brokers
from fuzz.good_client import GoodClient, Waits
from fuzz.impact import impact_of
from fuzz.sequences import CLUSTER
from network.hostile_requests import heartbeat
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller

_HEARTBEAT = 34
_SETTLED_S, _LEFT_S = 15, 10
_WAIT_MS_MAX = 300
_MIB = 1 << 20

_MembersOption = Annotated[int, typer.Option("--members", help="A port takes 1,000 connections.", max=990)]


def main(*, members: _MembersOption = 990) -> None:
    """Let a crowd join and leave, and print how long a client with it waited."""
    console = tables_console()
    with tempfile.TemporaryDirectory() as folder:
        cluster = LiveCluster(Path(folder), CLUSTER)
        brokers = addresses_of_brokers(cluster)
        good = GoodClient(brokers["good"], "good")
        crowd = [Caller(brokers["broker-a"], BROKER_PORT, 60) for _ in range(members)]
        _join(crowd)
        joined = good.stop()
        console.print(f"{members} members join at once: the good client: {joined.shown()}")
        good = GoodClient(brokers["good"], "good-2")
        time.sleep(1)
        before_bytes = cluster.memory_bytes
        for member in crowd:
            member.close()
        max_bytes = _max_bytes(cluster)
        left: Waits = good.stop()
        before, maximum, after = (item // _MIB for item in (before_bytes, max_bytes, cluster.memory_bytes))
        figures = f"memory {before} MiB before, at most {maximum}, {after} after"
        console.print(f"they leave at once: the good client: {left.shown()}; {figures}")
        impact = [*filter(None, (joined.problem, left.problem)), *impact_of(cluster)]
    console.print("\n".join(impact) or "no harm", markup=False)
    raise typer.Exit(1 if impact or left.longest_ms > _WAIT_MS_MAX else 0)


def _join(crowd: Sequence[Caller]) -> None:
    """All send a heartbeat at once, and read for a while what the broker notifies them of."""
    with selectors.DefaultSelector() as selector:
        for number, member in enumerate(crowd):
            selector.register(member.socket, selectors.EVENT_READ)
            member.send_raw(_HEARTBEAT, {}, heartbeat(1, "crowd").replace('"c1"', f'"member-{number}"').encode())
        until_s = time.perf_counter() + _SETTLED_S
        while time.perf_counter() < until_s:
            for key, _ in selector.select(0.02):
                key.fileobj.recv(1 << 20)  # type: ignore[union-attr]


def _max_bytes(cluster: LiveCluster) -> int:
    until_s, maximum = time.perf_counter() + _LEFT_S, 0
    while time.perf_counter() < until_s:
        maximum = max(maximum, cluster.memory_bytes)
        time.sleep(0.02)
    return maximum


if __name__ == "__main__":
    typer.run(main)
