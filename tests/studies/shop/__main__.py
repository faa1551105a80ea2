"""`python -m studies.shop`: a Spring Boot shop at the emulator and at real brokers, broken in the same way."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Self

import attrs
import typer

from studies.shop.clusters import FAULTS, ShopCluster, emulated_cluster, real_cluster

_PROJECT = Path(__file__).parents[3] / "examples" / "guests" / "java"
_HEARTBEAT_S = 40
"""So long after its start each client has sent a heartbeat to each broker, so replies find who asked."""
_COLUMNS = ("sent", "acked", "failed", "received", "lost", "twice", "late")
_FaultOption = Annotated[int, typer.Option("--fault-s", min=1, help="Length of each fault.")]
_AfterOption = Annotated[
    int, typer.Option("--after-s", min=1, help="Time after each; a JVM starts in 10 s, and is in routes 30 s later.")
]
_Table = dict[tuple[str, str], tuple[int, ...]]
"""(step, way of sending) -> numbers of messages, in the order of the columns."""


def shop(*, fault_s: _FaultOption = 20, after_s: _AfterOption = 45) -> None:
    """Print, in Markdown, what became of the shop's messages: of each step, and of each way of sending."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "java"
        shutil.copytree(_PROJECT, project, ignore=shutil.ignore_patterns("target"))
        subprocess.run(["mvn", "-q", "-f", str(project), "package", "-DskipTests"], check=True)
        jar = project / "target" / "shop.jar"
        emulated = _executed(emulated_cluster(), jar, fault_s, after_s)
        real = _executed(real_cluster(), jar, fault_s, after_s)
    steps = [step for step, way in emulated if way == "all"]
    ways = [way for step, way in emulated if step == "all"]
    _print("step", [(step, emulated[step, "all"], real[step, "all"]) for step in steps])
    _print("way", [(way, emulated["all", way], real["all", way]) for way in ways])
    for step in steps:
        typer.echo(f"\n{step}")
        _print("way", [(way, emulated[step, way], real[step, way]) for way in ways])


def _executed(cluster: AbstractContextManager[ShopCluster], jar: Path, fault_s: int, after_s: int) -> _Table:
    with cluster as broken, _Shop.opened(jar, broken.namesrv_addr) as process:
        process.step("start", _HEARTBEAT_S)
        process.step("nothing", fault_s)
        for fault in FAULTS:
            broken.begin(fault)  # mqadmin takes some seconds for it
            process.step(fault, fault_s)
            broken.end(fault)
            process.step(f"after {fault}", after_s)
        return process.table()


@attrs.frozen
class _Shop:
    """The shop's process."""

    _process: "subprocess.Popen[str]"

    @classmethod
    def opened(cls, jar: Path, namesrv_addr: str) -> "_Shop":
        """Start it, and wait until it sends."""
        command = ["java", "-Xmx256m", "-jar", str(jar), f"--rocketmq.name-server={namesrv_addr}"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if line == "open\n":
                return cls(process)
        raise RuntimeError("the shop has ended before it was open")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def step(self, name: str, for_s: float) -> None:
        """Begin a step, and let time pass."""
        assert self._process.stdin is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        time.sleep(for_s)

    def table(self) -> _Table:
        """End it, and return what it has counted."""
        reported, _ = self._process.communicate()
        rows: _Table = {}
        for line in reported.splitlines():
            words = line.split()
            if words[-1].isdigit():
                numbers, way = words[-len(_COLUMNS) :], words[-len(_COLUMNS) - 1]
                rows[" ".join(words[: -len(_COLUMNS) - 1]), way] = tuple(map(int, numbers))
        return rows


def _print(first: str, rows: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]]) -> None:
    """Each cell has the emulator's number, and the real cluster's behind a stroke."""
    typer.echo(f"\n| {first} | {' | '.join(_COLUMNS)} |")
    typer.echo("|---|" + "---:|" * len(_COLUMNS))
    for name, emulated, real in rows:
        cells = (f"{ours} / {theirs}" for ours, theirs in zip(emulated, real, strict=True))
        typer.echo(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    typer.run(shop)
