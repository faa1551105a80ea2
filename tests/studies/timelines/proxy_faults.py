"""What a client of a proxy sees while a process is dead or frozen: the same for real processes and for ours."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Protocol

from conformance.proxy_probe import Probe, producer
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2 import service
from nodes.protocol.v2.definition import Resource
from nodes.protocol.v2.enums import Code
from support.proxy_guest import GrpcFailure

TOPIC = "faults-NORMAL"
_STEP_MS, _LOST_MS, _FROZEN_MS, _WAITS_MS = 250, 55_000, 20_000, 20_000
_CONNECT_FAILED, _NO_TYPE = 50_001, int(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE)

Figures = dict[str, float]


class Process(StrEnum):
    """A process that is hurt."""

    NAMESERVER = "nameserver"
    BROKER = "broker"
    PROXY = "proxy"


class Faults(Protocol):
    """Hurts processes, real or ours."""

    async def kill(self, process: Process) -> None:
        """End a process as SIGKILL does."""

    async def start(self, process: Process) -> None:
        """Start it again; returns when its port is open."""

    async def freeze(self, process: Process) -> None:
        """Suspend it as SIGSTOP does."""

    async def thaw(self, process: Process) -> None:
        """Let it go on."""

    async def thaw_under(self, call: Callable[[], Awaitable[None]], after_ms: int) -> None:
        """Let the proxy go on so long after a call has begun; returns when the call has ended."""


def code_of(answer: Any) -> int:
    """The code of an answer; of a call that failed, the status of gRPC."""
    return int(answer.grpc_status if isinstance(answer, GrpcFailure) else answer.status.code)


class Watch:
    """Calls of one client, and seconds since an instant."""

    def __init__(self, probe: Probe, phase_ms: int) -> None:
        self.probe = probe
        self._phase_ms = phase_ms
        self._begun_ms = 0

    async def begin(self) -> None:
        """Come as a producer and as a consumer; the fault comes so long after the proxy has the route."""
        await self.probe.report(producer(TOPIC))
        await self.probe.come(TOPIC, client_id="consumer")
        while await self.send() != Code.OK:
            await self.probe.calls.sleep_ms(_STEP_MS)
        end_ms = self.probe.calls.now_ms() + self._phase_ms
        while self.probe.calls.now_ms() < end_ms:
            await self.send()
            await self.probe.calls.sleep_ms(_STEP_MS)

    def mark(self) -> None:
        """Count seconds from now on."""
        self._begun_ms = self.probe.calls.now_ms()

    @property
    def seconds(self) -> float:
        """Since the mark."""
        return (self.probe.calls.now_ms() - self._begun_ms) / 1_000

    async def send(self) -> int:
        """Send a message; returns the code of the answer."""
        return code_of(await self.probe.send(self.probe.message(TOPIC)))

    async def send_until(self, *codes: int, within_ms: int = _LOST_MS) -> Figures:
        """Send again and again until all these codes were answered; returns when each came first."""
        first: Figures = {}
        while not set(codes) <= {int(name) for name in first} and self.seconds * 1_000 < within_ms:
            first.setdefault(str(await self.send()), self.seconds)
            await self.probe.calls.sleep_ms(_STEP_MS)
        return first


async def broker_killed(watch: Watch, faults: Faults) -> Figures:
    """The only broker of the topic dies, and starts again."""
    await faults.kill(Process.BROKER)
    watch.mark()
    lost = await watch.send_until(_CONNECT_FAILED, _NO_TYPE)
    watch.mark()
    await faults.start(Process.BROKER)
    back = await watch.send_until(int(Code.OK), within_ms=90_000)
    return {
        "killed broker: connect failed": lost.get(str(_CONNECT_FAILED), -1),
        "killed broker: another answer": min(at_s for code, at_s in lost.items() if code != str(_CONNECT_FAILED)),
        "killed broker: type UNSPECIFIED": lost.get(str(_NO_TYPE), -1),
        "killed broker: sends again after its start": back.get(str(int(Code.OK)), -1),
    }


async def broker_frozen(watch: Watch, faults: Faults) -> Figures:
    """The only broker freezes."""
    await faults.freeze(Process.BROKER)
    watch.mark()
    codes = [await watch.send()]
    first_s = watch.seconds
    codes.append(await watch.send())
    second_s = watch.seconds - first_s
    heartbeat = code_of(await watch.probe.heartbeat(client_id="consumer"))
    await watch.probe.calls.sleep_ms(max(0, _FROZEN_MS - round(watch.seconds * 1_000)))
    await faults.thaw(Process.BROKER)
    watch.mark()
    back = await watch.send_until(int(Code.OK))
    return {
        "frozen broker: first answer": first_s,
        "frozen broker: second answer": second_s,
        "frozen broker: its code": codes[1],
        "frozen broker: code of heartbeats": heartbeat,
        "frozen broker: sends again when it wakes": back.get(str(int(Code.OK)), -1),
    }


async def nameserver_killed(watch: Watch, faults: Faults) -> Figures:
    """The only nameserver dies for 40 s."""
    await faults.kill(Process.NAMESERVER)
    watch.mark()
    codes = []
    while watch.seconds < 40:
        codes.append(await watch.send())
        await watch.probe.calls.sleep_ms(4 * _STEP_MS)
    begun_s = watch.seconds
    unknown = await watch.probe.send(watch.probe.message("never-seen"))
    unknown_s = watch.seconds - begun_s
    await faults.start(Process.NAMESERVER)
    return {
        "dead nameserver: sends that fail": sum(code != Code.OK for code in codes),
        "dead nameserver: code of an unknown topic": code_of(unknown),
        "dead nameserver: that answer": unknown_s,
    }


async def proxy_killed(watch: Watch, faults: Faults) -> Figures:
    """The proxy dies, and starts again."""
    await faults.kill(Process.PROXY)
    await faults.start(Process.PROXY)
    watch.mark()
    heartbeat = code_of(await watch.probe.heartbeat(client_id="consumer"))
    back = await watch.send_until(int(Code.OK))
    return {
        "killed proxy: code of heartbeats after its start": heartbeat,
        "killed proxy: sends again after its start": back.get(str(int(Code.OK)), -1),
    }


async def proxy_frozen(watch: Watch, faults: Faults) -> Figures:
    """The proxy freezes for 25 s, and calls wait in its socket."""
    return await _frozen_proxy(watch, faults, 25_000)


async def proxy_frozen_long(watch: Watch, faults: Faults) -> Figures:
    """The proxy freezes for longer than clients stay without a heartbeat."""
    return await _frozen_proxy(watch, faults, 130_000)


async def _frozen_proxy(watch: Watch, faults: Faults, duration_ms: int) -> Figures:
    await faults.freeze(Process.PROXY)
    watch.mark()
    answers: Figures = {}
    await watch.probe.calls.sleep_ms(duration_ms - _WAITS_MS)
    await faults.thaw_under(lambda: _waiting_heartbeat(watch, answers), _WAITS_MS)
    name = f"proxy frozen {duration_ms // 1_000} s"
    await watch.probe.calls.sleep_ms(15_000)
    later = code_of(await watch.probe.heartbeat(client_id="consumer"))
    return {
        f"{name}: code of a heartbeat that waited": answers["code"],
        f"{name}: that answer when it wakes": answers["seconds"] - duration_ms / 1_000,
        f"{name}: code of heartbeats 15 s later": later,
    }


async def _waiting_heartbeat(watch: Watch, answers: Figures) -> None:
    request = service.HeartbeatRequest(Resource(watch.probe.group))
    answer = await watch.probe.call(RequestCode.V2_HEARTBEAT, request, client_id="consumer", timeout_ms=300_000)
    answers["code"], answers["seconds"] = code_of(answer), watch.seconds


FLOWS: tuple[Callable[[Watch, Faults], Awaitable[Figures]], ...] = (
    broker_killed,
    broker_frozen,
    nameserver_killed,
    proxy_killed,
    proxy_frozen,
    proxy_frozen_long,
)
