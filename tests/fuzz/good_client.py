"""`python -m fuzz.good_client BROKER NAME`: a client that behaves well, and how long it waited.

It has a process of its own, so that nothing else keeps it waiting. It goes on until its standard input ends, and then
prints one line of JSON.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from support.well_behaved import WellBehaved

_TESTS = Path(__file__).parents[1]
_PAUSE_S = 0.02
_MESSAGES_PER_HEARTBEAT = 500
_PATIENCE_S = 60


@attrs.frozen
class Waits:
    """What a client that behaves well has seen."""

    messages: int
    p50_ms: float
    p99_ms: float
    longest_ms: float
    longest_at_s: float
    """When the longest wait ended, seconds since 1970."""
    address: str
    """Its own end of the connection."""
    problem: str

    def shown(self) -> str:
        """The figures in one line."""
        figures = f"p50 {self.p50_ms:.1f} ms, p99 {self.p99_ms:.1f} ms, longest {self.longest_ms:.1f} ms"
        return f"{figures} of {self.messages}"


class GoodClient:
    """A client that sends a message and consumes it, again and again, until it is stopped."""

    def __init__(self, broker: str, name: str) -> None:
        words = [sys.executable, "-m", "fuzz.good_client", broker, name]
        places = os.pathsep.join(filter(None, (str(_TESTS), os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": places}
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def stop(self) -> Waits:
        """Let it end after the current message."""
        answer, _ = self._process.communicate(timeout=_PATIENCE_S)
        return Waits(**json.loads(answer))


def waits_of(latencies: Sequence[tuple[float, float]], address: str, problem: str) -> dict[str, Any]:
    """The fields of `Waits`, of pairs (how long a wait was, when it ended)."""
    ordered = sorted(latencies) or [(0.0, 0.0)]
    p50, p99 = (ordered[int(len(ordered) * share)][0] * 1_000 for share in (0.5, 0.99))
    longest_s, at_s = ordered[-1]
    return attrs.asdict(Waits(len(latencies), p50, p99, longest_s * 1_000, at_s, address, problem))


def main(broker: str, name: str) -> None:
    """Send and consume until standard input ends."""
    over, problem, address = threading.Event(), "", ""
    latencies: list[tuple[float, float]] = []

    def wait_for_end() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    try:
        client = WellBehaved(broker, name)
        address = client.address
        while not over.wait(_PAUSE_S):
            if len(latencies) % _MESSAGES_PER_HEARTBEAT == 0:  # a broker closes a member that is silent too long
                client.beat()
            began_s = time.perf_counter()
            client.notices_nothing()
            latencies.append((time.perf_counter() - began_s, time.time()))
    except (AssertionError, OSError, KeyError) as error:
        problem = f"{type(error).__name__}: {error}"
    print(json.dumps(waits_of(latencies, address, problem)))  # noqa: T201 - for the process that started it


if __name__ == "__main__":
    main(*sys.argv[1:])
