"""Hurt real processes of 5.3.3 behind a proxy, and write down what a client sees.

    python -m studies.timelines.real_proxies CLUSTER    # the `figures` of tests/studies/timelines/real_proxies.json

CLUSTER is a JSON file: `nameserver`, `broker` and `proxy`, each with the `command` that starts it and the `address` of
its port; the proxy's is the one of gRPC. A command is run at each start and has to become the process (`exec java`).
The broker has `autoCreateTopicEnable = false` and one topic, `faults-NORMAL`, which this creates.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import grpc.aio

from conformance.proxy_probe import Probe
from studies.proxy_answers import RealProxies, ask_broker, topic_request
from studies.timelines.proxy_faults import FLOWS, TOPIC, Process, Watch

_RUNS, _PHASE_MS = 5, 6_700
_REGISTERED_S = 8
"""Until a broker is in routes: a proxy ends at its start where its cluster has no broker."""
_OPEN_S, _POLL_S = 90, 0.02
"""How long a start may take, and how often it is looked at."""


@attrs.define
class RealProcesses:
    """The processes, by role; implements `Faults`."""

    cluster: Mapping[str, Mapping[str, str]]
    calls: RealProxies = attrs.Factory(lambda: RealProxies(()))
    running: dict[Process, asyncio.subprocess.Process] = attrs.Factory(dict)

    async def kill(self, process: Process) -> None:
        self.running[process].kill()
        await self.running[process].wait()

    async def start(self, process: Process) -> None:
        """Start it; a proxy gets a new connection."""
        command, nowhere = self.cluster[process]["command"], asyncio.subprocess.DEVNULL
        self.running[process] = await asyncio.create_subprocess_shell(command, stdout=nowhere, stderr=nowhere)
        async with asyncio.timeout(_OPEN_S):
            await _until_open(*self.cluster[process]["address"].rsplit(":", 1))
        if process is Process.PROXY:
            self.calls.channels = (grpc.aio.insecure_channel(self.cluster[process]["address"]),)
            self.calls.streams.clear()

    async def freeze(self, process: Process) -> None:
        self.running[process].send_signal(signal.SIGSTOP)

    async def thaw(self, process: Process) -> None:
        self.running[process].send_signal(signal.SIGCONT)

    async def thaw_under(self, call: Callable[[], Awaitable[None]], after_ms: int) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_awaited(call))
            await asyncio.sleep(after_ms / 1_000)
            await self.thaw(Process.PROXY)


async def _awaited(call: Callable[[], Awaitable[None]]) -> None:
    await call()


async def _until_open(host: str, port: str) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            await asyncio.sleep(_POLL_S)
        else:
            return writer.close()


async def record(cluster: Mapping[str, Mapping[str, str]]) -> dict[str, list[float]]:
    """Each figure, run by run; all processes start again before each flow."""
    figures: dict[str, list[float]] = {}
    for run in range(_RUNS):
        for flow in FLOWS:
            processes = RealProcesses(cluster)
            for process in (Process.NAMESERVER, Process.BROKER):
                await processes.start(process)
            await asyncio.to_thread(ask_broker, cluster["broker"]["address"], [topic_request(TOPIC, "NORMAL")])
            await asyncio.sleep(_REGISTERED_S)
            await processes.start(Process.PROXY)
            watch = Watch(Probe(processes.calls, "faults"), run * _PHASE_MS)
            await watch.begin()
            for name, value in (await flow(watch, processes)).items():
                figures.setdefault(name, []).append(round(value, 3))
                sys.stderr.write(f"{run} {name}: {value:.3f}\n")
            for process in Process:
                await processes.kill(process)
    return figures


def main() -> None:
    """Record, and print."""
    cluster: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    json.dump(asyncio.run(record(cluster)), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
