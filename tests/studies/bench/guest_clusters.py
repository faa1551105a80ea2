"""One nameserver and one broker for guests: emulated, and RocketMQ's own."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from emulator.trace.schema import TraceLevel
from studies.bench.guest_java import class_path
from studies.bench.trial import TrialError

_SCENARIO = """
[scenario]
name = "bench"
run_for_s = 1

[network]
delay_ms = 0

[nameserver]
count = 1

[[broker]]
name = "broker-a"
"""
_HEAP = ("-Xms256m", "-Xmx256m", "-XX:MaxDirectMemorySize=128m")
"""The shipped scripts ask for 4 and 8 GiB."""
_SMALL_FILES = """
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=600000
maxHashSlotNum=50000
maxIndexNum=200000
"""
_PORTS, _BROKER_PORTS = (20_000, 30_000), 4
_ADDRESS_LINE = "namesrvAddr="


@attrs.frozen
class GuestCluster:
    """A running cluster, as a guest sees it."""

    namesrv_addr: str
    processes: "tuple[subprocess.Popen[str], ...]"

    def memory_mib(self) -> float:
        """What its processes take, with a share of what several map (PSS)."""
        return sum(_pss_kib(process.pid) for process in self.processes) / 1024


@contextmanager
def emulated_cluster(level: TraceLevel = TraceLevel.FULL) -> Iterator[GuestCluster]:
    """`rmqemu up`, with its trace; it is there when it has said so."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scenario = Path(folder) / "bench.toml"
        scenario.write_text(_SCENARIO, encoding="utf-8")
        command = [sys.executable, "-m", "emulator.cli", "up", str(scenario), "--runs", folder, "--trace", level]
        process = stack.enter_context(_child(command, folder, subprocess.PIPE))
        yield GuestCluster(_printed_namesrv_addr(process), (process,))


@contextmanager
def real_cluster() -> Iterator[GuestCluster]:
    """RocketMQ 5.3.3 with heaps of 256 MiB and small files; it may take seconds until it is there.

    Raises:
        NotHereError: see `class_path`.
    """
    jars = class_path()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        namesrv_port, listen_port = _free_ports()
        address = f"127.0.0.1:{namesrv_port}"
        (Path(folder) / "namesrv.conf").write_text(f"listenPort={namesrv_port}\n", encoding="utf-8")
        (Path(folder) / "broker.conf").write_text(
            f"brokerClusterName=DefaultCluster\nbrokerName=broker-a\nbrokerIP1=127.0.0.1\nlistenPort={listen_port}\n"
            f"namesrvAddr={address}\nstorePathRootDir={folder}/store\n{_SMALL_FILES}",
            encoding="utf-8",
        )
        java = ["java", *_HEAP, f"-Duser.home={folder}", "-cp", jars]
        processes = tuple(
            stack.enter_context(
                _child([*java, f"org.apache.rocketmq.{main}", "-c", config], folder, subprocess.DEVNULL)
            )
            for main, config in (
                ("namesrv.NamesrvStartup", "namesrv.conf"),
                ("broker.BrokerStartup", "broker.conf"),
            )
        )
        yield GuestCluster(address, processes)


@contextmanager
def _child(command: list[str], folder: str, stdout: int) -> "Iterator[subprocess.Popen[str]]":
    """A process that is killed in the end: no one needs what it has written."""
    environment = {**os.environ, "ROCKETMQ_HOME": folder}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.DEVNULL, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def _printed_namesrv_addr(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_ADDRESS_LINE):
            return line.removeprefix(_ADDRESS_LINE).strip()
    raise TrialError("the emulated cluster has ended before it was ready")


def _pss_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise TrialError(f"the kernel does not report what process {pid} takes")


def _free_ports() -> tuple[int, int]:
    """One for a nameserver, and one for a broker, which also listens two below and one above."""
    for port in range(*_PORTS, _BROKER_PORTS + 1):
        try:
            with ExitStack() as stack:
                for number in range(port, port + _BROKER_PORTS + 1):
                    stack.enter_context(socket.create_server(("127.0.0.1", number)))
        except OSError:
            continue
        return port, port + 3
    raise TrialError(f"no ports are free between {_PORTS[0]} and {_PORTS[1]}")
