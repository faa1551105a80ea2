"""`rmqemu up` in a process of its own, for programs that dial its nodes."""

import json
import os
import re
import signal
from pathlib import Path
from subprocess import Popen
from typing import Any

from support.remoting_program import Caller
from support.rmqemu_process import started

NAMESERVER_PORT, BROKER_PORT = 9_876, 10_911
INTERRUPTED = 128 + signal.SIGINT
_BROKERS, _GET_BROKER_CLUSTER_INFO = re.compile(r'"(127[.\d]+):10911"'), 106


class LiveCluster:
    """A live cluster.

    Args:
        folder: for the scenario and the runs.
        scenario: as TOML; it needs a nameserver and a broker.
    """

    def __init__(self, folder: Path, scenario: str) -> None:
        (folder / "cluster.toml").write_text(scenario)
        self.process: Popen[str] = started("up", "cluster.toml", cwd=folder)
        line = ""
        while not line.startswith("namesrvAddr="):
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
        self.nameserver = line.strip().removeprefix("namesrvAddr=").partition(":")[0]
        known = Caller(self.nameserver, NAMESERVER_PORT).ask_raw(_GET_BROKER_CLUSTER_INFO, {}, b"").body.decode()
        self.broker = min(_BROKERS.findall(known))
        """Address of the first broker."""
        self.run = max((folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        """The run directory."""

    @property
    def memory_bytes(self) -> int:
        """Memory of the process."""
        return int(self._proc("statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_s(self) -> float:
        """CPU time of the process."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _proc(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text()

    def log(self) -> list[dict[str, Any]]:
        """The lines of its log so far."""
        return [json.loads(line) for line in (self.run / "log.jsonl").read_text().splitlines() if line.endswith("}")]

    def end(self) -> str:
        """End the run; returns what it said on stderr."""
        self.process.send_signal(signal.SIGINT)
        return str(self.process.communicate(timeout=60)[1])
