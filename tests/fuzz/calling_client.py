"""`python -m fuzz.calling_client ADDRESS PID`: a client of `grpcio` that behaves well, and how long it waited.

It prints a line when its first call was answered, goes on until its standard input ends, and then prints one of JSON:
its waits, and the most CPU time that the node took during one of its calls, which no other program changes.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc

from emulator.guests.grpc.messages import message_class
from fuzz.good_client import waits_of
from support.dialed_proxy import METADATA, OPTIONS, method

_PAUSE_S = 0.02
_TIMEOUT_S = 60
_NS_PER_MS = 1_000_000


def main(address: str, pid: str) -> None:
    """Make calls until standard input ends."""
    over, problem, node_cpu_ms_max = threading.Event(), "", 0.0
    latencies: list[tuple[float, float]] = []

    def wait_for_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with grpc.insecure_channel(address, OPTIONS) as channel:
        query: Any = method(channel, "QueryRoute")  # type: ignore[no-untyped-call]
        request = message_class("QueryRouteRequest")(topic={"name": "t"})
        try:
            while not over.wait(_PAUSE_S):
                began_s, began_cpu_ms = time.perf_counter(), _cpu_ms(pid)
                response = query(request, metadata=METADATA, timeout=_TIMEOUT_S)
                if not latencies:
                    print("answered", flush=True)  # noqa: T201 - for the process that started it
                latencies.append((time.perf_counter() - began_s, time.time()))
                node_cpu_ms_max = max(node_cpu_ms_max, _cpu_ms(pid) - began_cpu_ms)
                assert response.message_queues[0].topic.name == "t", response
        except (AssertionError, grpc.RpcError) as error:
            problem = f"{type(error).__name__}: {error}"
    found = {"waits": waits_of(latencies, address, problem), "node_cpu_ms_max": node_cpu_ms_max}
    print(json.dumps(found))  # noqa: T201 - for the process that started it


def _cpu_ms(pid: str) -> float:
    """CPU time of a process so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / _NS_PER_MS


if __name__ == "__main__":
    main(*sys.argv[1:])
