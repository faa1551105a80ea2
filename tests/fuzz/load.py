"""`python -m fuzz.load`: what a live cluster can hold for its guests, and what each further object costs."""

import selectors
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.table import Table

from emulator.cli.terminal import progress_bar, tables_console
from fuzz.impact import MEMORY_BYTES_MAX, impact_of
from network.hostile_requests import PULL, SEND_V2, TOPIC, heartbeat
from support.live_cluster import BROKER_PORT, LiveCluster
from support.remoting_program import Caller

CLUSTER = f"""
[scenario]
name = "loaded"
run_for_s = 86_400

[network]
delay_ms = 0

[guest_limits]
connections = 6_000
memory_bytes = {2 * MEMORY_BYTES_MAX}

[nameserver]
count = 1

[[broker]]
name = "b"
"""
_TENTHS = 10
_GET_CONSUMER_LIST, _UPDATE_TOPIC, _HEARTBEAT, _SEND, _PULL = 38, 17, 34, 310, 11
_BODY_BYTES = 100_000
_NO_CODE = 99_999
_PATIENCE_S = 600
"""A broker that reports thousands of members about thousands of others answers late."""

Adding = Callable[[LiveCluster, int], Iterator[None]]


@attrs.frozen
class Load:
    """Many objects of one kind."""

    what: str
    count: int
    add: Adding
    """Adds so many objects to a cluster, and yields after each."""
    remark: str = ""


@attrs.frozen
class Held:
    """What it cost to add them."""

    load: Load
    took_s: float
    cpu_s: float
    first_ms: float
    """CPU time of the cluster for one object of the first tenth, in ms."""
    last_ms: float
    """The same for the last tenth."""
    memory_bytes: int
    problems: list[str]


def groups(cluster: LiveCluster, count: int) -> Iterator[None]:
    """One client joins group after group."""
    caller = Caller(cluster.broker, BROKER_PORT)
    for number in range(count):
        assert caller.ask_raw(_HEARTBEAT, {}, heartbeat(1, f"group-{number}").encode()).code == 0
        yield


def topics(cluster: LiveCluster, count: int) -> Iterator[None]:
    """One client creates topic after topic."""
    caller = Caller(cluster.broker, BROKER_PORT)
    for number in range(count):
        assert caller.ask_raw(_UPDATE_TOPIC, TOPIC | {"topic": f"topic-{number}"}, b"").code == 0
        yield


def members(cluster: LiveCluster, count: int) -> Iterator[None]:
    """Client after client joins one group; each is reported about all later ones."""
    asking = Caller(cluster.broker, BROKER_PORT, _PATIENCE_S)
    with selectors.DefaultSelector() as reported:
        joined = []
        for number in range(count):
            member = Caller(cluster.broker, BROKER_PORT, _PATIENCE_S)
            member.send_raw(_HEARTBEAT, {}, heartbeat(1, "big").replace('"c1"', f'"member-{number}"').encode())
            reported.register(member.socket, selectors.EVENT_READ)
            joined.append(member)
            if number % 50 == 49 or number == count - 1:
                _while_reading(reported, lambda: asking.ask_raw(_GET_CONSUMER_LIST, {"consumerGroup": "big"}, b""))
            yield


def _while_reading(base_selector: selectors.BaseSelector, ask: Callable[[], object]) -> None:
    asking = threading.Thread(target=ask)
    asking.start()
    while asking.is_alive():
        for key, _ in base_selector.select(0.02):
            key.fileobj.recv(1 << 20)  # type: ignore[union-attr]


def unread_answers(cluster: LiveCluster, count: int) -> Iterator[None]:
    """A client asks for the same 100 kB again and again, and never reads; then another one."""
    caller = Caller(cluster.broker, BROKER_PORT)
    assert caller.ask_raw(_HEARTBEAT, {}, heartbeat(1).encode()).code == 0
    assert caller.ask_raw(_SEND, SEND_V2, b"x" * _BODY_BYTES).code == 0
    asking = Caller(cluster.broker, BROKER_PORT)
    for _ in range(count):
        try:
            asking.send_raw(_PULL, PULL, b"")
        except OSError:  # it was cut off
            asking = Caller(cluster.broker, BROKER_PORT)
        yield


LOADS = (
    Load("consumer groups", 10_000, groups),
    Load("topics", 50_000, topics),
    Load("members of one group", 5_000, members, "each is reported about each later one: quadratic in RocketMQ, too"),
    Load("answers of 100 kB that no one reads", 5_000, unread_answers, "a connection is cut off beyond 16 MiB"),
)


def measure(load: Load, count: int, progress: Callable[[float], None]) -> Held:
    """Add the objects to a cluster of their own."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = LiveCluster(Path(folder), CLUSTER)
        began_s, before_bytes, max_bytes = time.perf_counter(), cluster.memory_bytes, 0
        marks = [cluster.cpu_s]
        for number, _ in enumerate(load.add(cluster, count), start=1):
            if number % max(1, count // _TENTHS) == 0:
                assert (
                    Caller(cluster.broker, BROKER_PORT, _PATIENCE_S).ask_raw(_NO_CODE, {}, b"").code != 0
                )  # it has caught up
                marks.append(cluster.cpu_s)
                max_bytes = max(max_bytes, cluster.memory_bytes)
                progress(number / count)
        took_s = time.perf_counter() - began_s
        tenth_ms = [(end - begin) * 1_000 / (count / _TENTHS) for begin, end in pairwise(marks)]
        problems = impact_of(cluster)
    return Held(load, took_s, marks[-1] - marks[0], tenth_ms[0], tenth_ms[-1], max_bytes - before_bytes, problems)


_ShareOption = Annotated[float, typer.Option("--share", help="Of the objects: 0.1 adds a tenth of them.")]


def main(*, share: _ShareOption = 1.0) -> None:
    """Fill live clusters, and print what it cost."""
    table = Table(box=None)
    for title in ("objects", "", "seconds", "CPU s", "ms each, first tenth", "last tenth", "MiB", "remark"):
        table.add_column(title, justify="left" if title in ("", "remark") else "right")
    failed = False
    for load in LOADS:
        count = max(_TENTHS, int(load.count * share))
        with progress_bar(load.what) as progress:
            held = measure(load, count, progress)
        figures = (held.took_s, held.cpu_s, held.first_ms, held.last_ms)
        table.add_row(
            f"{count:,}", load.what, *(f"{figure:.2f}" for figure in figures), str(held.memory_bytes >> 20), load.remark
        )
        for problem in held.problems:
            failed = True
            tables_console().print(f"{load.what}: {problem}", markup=False)
    tables_console().print(table)
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    typer.run(main)
