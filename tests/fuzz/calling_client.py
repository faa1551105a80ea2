"""`python -m fuzz.calling_client ADDRESS`: a client of `grpcio` that behaves well, and how long it waited.

It prints a line when its first call was answered, goes on until its standard input ends, and then prints one of JSON.
"""

import json
import sys
import threading
import time
from typing import Any

import grpc

from fuzz.good_client import waits_of
from nodes.grpc.messages import message_class
from support.dialed_proxy import METADATA, OPTIONS, method

_PAUSE_S = 0.02
_TIMEOUT_S = 20


def main(address: str) -> None:
    """Make calls until standard input ends."""
    over, problem = threading.Event(), ""
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
                began_s = time.perf_counter()
                response = query(request, metadata=METADATA, timeout=_TIMEOUT_S)
                if not latencies:
                    print("answered", flush=True)  # noqa: T201 - for the process that started it
                latencies.append((time.perf_counter() - began_s, time.time()))
                assert response.message_queues[0].topic.name == "t", response
        except (AssertionError, grpc.RpcError) as error:
            problem = f"{type(error).__name__}: {error}"
    print(json.dumps(waits_of(latencies, address, problem)))  # noqa: T201 - for the process that started it


if __name__ == "__main__":
    main(*sys.argv[1:])
