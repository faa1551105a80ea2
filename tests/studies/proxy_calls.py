"""How many calls of gRPC proxies answer a second, real and ours, in turns.

    python -m studies.proxy_calls real=HOST:PORT ours=HOST:PORT

Each is the gRPC port of a proxy whose cluster has the topic `Orders`. One client with one connection, and eight calls
at a time; routes, and sends of 100 bytes. The client takes a part of the same cores.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping

import grpc.aio
from rich.console import Console
from rich.table import Table

from conformance.proxy_probe import Probe
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Address, Endpoints, Resource
from nodes.protocol.v2.enums import AddressScheme, Code
from studies.proxy_answers import RealProxies
from studies.timelines.proxy_faults import code_of

_TOPIC, _TURNS, _TURN_S, _AT_A_TIME = "Orders", 3, 5.0, 8
_ENDPOINTS = Endpoints(AddressScheme.IPv4, (Address("127.0.0.1", 8_081),))


async def _route(probe: Probe) -> int:
    request = service.QueryRouteRequest(Resource(_TOPIC), _ENDPOINTS)
    return code_of(await probe.call(RequestCode.V2_QUERY_ROUTE, request))


async def _send(probe: Probe) -> int:
    return code_of(await probe.send(probe.message(_TOPIC, b"x" * 100)))


CALLS: Mapping[str, Callable[[Probe], Awaitable[int]]] = {"routes": _route, "sends": _send}


async def turn(probe: Probe, call: Callable[[Probe], Awaitable[int]]) -> list[float]:
    """Seconds of each call of a turn."""
    end_s = time.perf_counter() + _TURN_S
    lasted: list[float] = []

    async def calls() -> None:
        while (begun_s := time.perf_counter()) < end_s:
            assert await call(probe) == Code.OK
            lasted.append(time.perf_counter() - begun_s)

    await asyncio.gather(*(calls() for _ in range(_AT_A_TIME)))
    return lasted


async def measure(addresses: Mapping[str, str]) -> Table:
    """All turns, after one that does not count."""
    table = Table("calls", "proxy", "a second, each turn", "median ms", "p99 ms")
    probes = {name: Probe(RealProxies((grpc.aio.insecure_channel(at),)), "calls") for name, at in addresses.items()}
    for kind, call in CALLS.items():
        for probe in probes.values():
            await turn(probe, call)
        turns = [(name, await turn(probe, call)) for _ in range(_TURNS) for name, probe in probes.items()]
        for name in probes:
            its = [lasted for of, lasted in turns if of == name]
            rates = " ".join(f"{len(lasted) / _TURN_S:,.0f}" for lasted in its)
            hundredths = statistics.quantiles([item * 1_000 for lasted in its for item in lasted], n=100)
            table.add_row(kind, name, rates, f"{hundredths[49]:.1f}", f"{hundredths[98]:.1f}")
    return table


def main() -> None:
    """Measure, and print the table."""
    addresses = dict(item.split("=", 1) for item in sys.argv[1:])
    Console(width=100).print(asyncio.run(measure(addresses)))


if __name__ == "__main__":
    main()
