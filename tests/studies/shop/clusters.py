"""Two masters that can be broken in four ways: emulated, and RocketMQ's own on loopback."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import emulator
from emulator.notebook.handle import ClusterHandle
from studies.bench.guest_java import class_path
from studies.shop import relay

_SCENARIO = "shop"
FAULTS = ("kill", "cut", "freeze", "read only")
"""What happens to broker-b: its process is killed, the shop cannot reach it, it is stopped, it takes no messages."""
_TOPICS = ("ShopOrders", "ShopParcels", "ShopPrices")
_QUEUES = "4"
_HEAP = ("-Xms256m", "-Xmx256m", "-XX:MaxDirectMemorySize=1g")
"""Each thread that stores a message keeps 4 MiB of direct memory: with 128 MiB delayed messages are never delivered."""
_SMALL_FILES = """\
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=600000
maxHashSlotNum=50000
maxIndexNum=200000
"""
_NAMESRV_PORT, _PORT = 19_876, 20_911
_A, _B = "127.0.0.2", "127.0.0.3"
_B_BEHIND_RELAY = "127.0.0.4"
"""broker-b listens here, and registers the address of a relay, which is frozen to cut it off from the shop."""
_WITHIN_S = 120


class ShopCluster(Protocol):
    """What a shop runs next to."""

    @property
    def namesrv_addr(self) -> str:
        """Address of the nameserver."""

    def begin(self, fault: str) -> None:
        """Begin one of `FAULTS`."""

    def end(self, fault: str) -> None:
        """End it."""


class EmulatedCluster:
    """A live cluster of the emulator."""

    def __init__(self, handle: ClusterHandle) -> None:
        self._handle = handle
        self.namesrv_addr = handle.namesrv_addr_of("shop")

    def begin(self, fault: str) -> None:
        """Begin one of `FAULTS`."""
        match fault:
            case "kill":
                self._handle.kill("broker-b")
            case "cut":
                self._handle.cut("shop", "broker-b")
            case "freeze":
                self._handle.suspend("broker-b")
            case "read only":
                self._handle.permission("broker-b", "4")

    def end(self, _fault: str) -> None:
        """End it."""
        self._handle.heal("all")


@contextmanager
def emulated_cluster() -> Iterator[EmulatedCluster]:
    """A live cluster of the emulator, until the block is left."""
    with (
        tempfile.TemporaryDirectory() as folder,
        emulator.launch(_SCENARIO, mode="live", runs=Path(folder)) as handle,
    ):
        handle.until("agree", "within", "60s")
        yield EmulatedCluster(handle)


class RealCluster:
    """RocketMQ 5.3.3: a nameserver, two masters, and a relay before broker-b."""

    namesrv_addr = f"127.0.0.1:{_NAMESRV_PORT}"

    def __init__(self, folder: Path, jars: str) -> None:
        self._folder = folder
        self._java = ["java", *_HEAP, f"-Duser.home={folder}", "-cp", jars]
        self._environment = {**os.environ, "ROCKETMQ_HOME": str(folder)}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start all processes, and make the topics on both brokers; returns when the nameserver lists them."""
        self._start("namesrv", "namesrv.NamesrvStartup", f"listenPort={_NAMESRV_PORT}\n")
        _await_port("127.0.0.1", _NAMESRV_PORT)
        self._start_broker("broker-a", _A, _A)
        self._start_broker("broker-b", _B, _B_BEHIND_RELAY)
        for listens in (_A, _B_BEHIND_RELAY):
            _await_port(listens, _PORT)
        self._processes["relay"] = subprocess.Popen(
            [sys.executable, relay.__file__, _B, _B_BEHIND_RELAY, str(_PORT)], stderr=subprocess.DEVNULL
        )
        _await_port(_B, _PORT)
        for topic in _TOPICS:
            for address in (_A, _B):
                self._mqadmin("updateTopic", "-b", f"{address}:{_PORT}", "-t", topic, "-r", _QUEUES, "-w", _QUEUES)

    def close(self) -> None:
        """Kill all processes."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def begin(self, fault: str) -> None:
        """Begin one of `FAULTS`."""
        match fault:
            case "kill":
                self._processes["broker-b"].kill()
                self._processes["broker-b"].wait()
            case "cut":
                self._processes["relay"].send_signal(signal.SIGSTOP)
            case "freeze":
                self._processes["broker-b"].send_signal(signal.SIGSTOP)
            case "read only":
                self._permission("4")

    def end(self, fault: str) -> None:
        """End it."""
        match fault:
            case "kill":
                self._start_broker("broker-b", _B, _B_BEHIND_RELAY)
            case "cut":
                self._processes["relay"].send_signal(signal.SIGCONT)
            case "freeze":
                self._processes["broker-b"].send_signal(signal.SIGCONT)
            case "read only":
                self._permission("6")

    def _permission(self, permission: str) -> None:
        self._mqadmin("updateBrokerConfig", "-b", f"{_B}:{_PORT}", "-k", "brokerPermission", "-v", permission)

    def _start_broker(self, name: str, registers: str, listens: str) -> None:
        self._start(
            name,
            "broker.BrokerStartup",
            f"brokerClusterName=DefaultCluster\nbrokerName={name}\nbrokerIP1={registers}\nbindAddress={listens}\n"
            f"listenPort={_PORT}\nhaListenPort={_PORT + (1 if name == 'broker-a' else 2)}\n"
            f"namesrvAddr={self.namesrv_addr}\nstorePathRootDir={self._folder}/{name}\n{_SMALL_FILES}",
        )

    def _start(self, name: str, main: str, settings: str) -> None:
        file = self._folder / f"{name}.conf"
        file.write_text(settings, encoding="utf-8")
        with (self._folder / f"{name}.out").open("ab") as out:
            self._processes[name] = subprocess.Popen(
                [
                    *self._java,
                    f"-Duser.home={self._folder}/{name}-home",
                    f"org.apache.rocketmq.{main}",
                    "-c",
                    str(file),
                ],
                cwd=self._folder,
                env=self._environment,
                stdout=out,
                stderr=out,
            )

    def _mqadmin(self, *words: str) -> None:
        command = [*self._java, "org.apache.rocketmq.tools.command.MQAdminStartup", *words, "-n", self.namesrv_addr]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=True, timeout=_WITHIN_S
        )
        if "success" not in done.stdout:  # its exit status is 0 whatever happens
            raise RuntimeError(f"mqadmin {' '.join(words)}: {done.stdout}{done.stderr}")


@contextmanager
def real_cluster() -> Iterator[RealCluster]:
    """Real processes, until the block is left; their logs and stores are in a folder of their own, which is removed."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cluster = RealCluster(Path(folder), class_path())
        stack.callback(cluster.close)
        cluster.start()
        yield cluster


def _await_port(host: str, port: int) -> None:
    deadline_s = time.monotonic() + _WITHIN_S
    while True:
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.2)
        else:
            return
