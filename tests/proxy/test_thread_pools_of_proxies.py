"""The thread pools of a proxy: calls that take time wait for a thread, and are refused when too many wait."""

from collections.abc import Awaitable
from typing import Any

import pytest
import trio

from emulator.analysis.oracles.busy_brokers import BusySpan
from emulator.testing import Stage
from emulator.why.busy import options_behind
from nodes.config.proxy import ProxyConfig
from nodes.config.request_pools import call_pool
from nodes.fields import FieldError
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.enums import Code
from support.every_case import each_case
from support.proxy_guest import BROKER, PROXY, ProxyGuest, a_message, producer_settings, proxies, runs

FLOW_LIMIT = (Code.TOO_MANY_REQUESTS, "flow limit")


async def together(stage: Stage, *calls: Awaitable[Any]) -> list[tuple[int, Any]]:
    """Calls that begin at once: after how many tenths of a second each was answered, and its status."""
    begin_ms, found = stage.now_ms, dict[int, tuple[int, Any]]()

    async def call(place: int, made: Awaitable[Any]) -> None:
        answer = await made
        status = getattr(answer, "status", answer)
        found[place] = (round((stage.now_ms - begin_ms) / 100), (status.code, status.message))

    async with trio.open_nursery() as nursery:
        for place, made in enumerate(calls):
            nursery.start_soon(call, place, made)
    return [found[place] for place in range(len(calls))]


def one_thread(pool: str, times: str, capacity: int = 10) -> ProxyConfig:
    """A proxy with one thread in each pool."""
    sizes: dict[str, Any] = {
        f"grpc_{pool}_thread_pool_nums": 1,
        f"grpc_{pool}_thread_queue_capacity": capacity,
    }
    return ProxyConfig(processing_times=times, **sizes)


def test_every_call_has_a_pool() -> None:
    calls = {code for code in RequestCode if code.name.startswith("V2_")}
    assert {call_pool(code) for code in calls} == set(ProxyConfig().call_pool_sizes())
    assert call_pool(RequestCode.SEND_MESSAGE) is None


@each_case("times", ["sendMessage 5ms", "grpcRoute", "V2_NOTHING 1ms", "grpcRoute 1ms, grpcRoute 2ms"])
def test_times_of_something_else_are_refused(times: str) -> None:
    with pytest.raises(FieldError):
        ProxyConfig(processing_times=times)


def test_calls_wait_their_turn_and_one_too_many_is_refused() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.route()
        ok = (Code.OK, "OK")
        found = await together(stage, *(guest.route() for _ in range(4)))
        assert sorted(found) == [(0, FLOW_LIMIT), (10, ok), (20, ok), (30, ok)]
        assert await together(stage, guest.heartbeat()) == [(0, (Code.UNRECOGNIZED_CLIENT_TYPE, UNKNOWN))]

    trace = runs(proxies(config=one_thread("route", "grpcRoute 1s", capacity=2)), script)
    busy = [row.held for row in trace.select("beliefs", node=PROXY, kind="busy", subject="grpcRoute")]
    assert busy[0]["refused"] == {"OVERLOAD": 1}
    assert max(value["waited_max_ms"] for value in busy if value is not None) >= 1_900


UNKNOWN = "cannot find client settings for this client"


def test_without_processing_times_no_call_waits() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.route()
        assert await together(stage, *(guest.route() for _ in range(4))) == [(0, (Code.OK, "OK"))] * 4

    runs(proxies(config=one_thread("route", "", capacity=1)), script)


def test_a_thread_that_has_to_load_a_route_is_busy_until_the_nameserver_answers() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.route()
        stage.cut(PROXY, "ns-1")
        (late, _), (after, status) = await together(stage, guest.route("unknown"), guest.route())
        assert late >= 30
        assert after >= late
        assert status == (Code.OK, "OK")

    runs(proxies(config=one_thread("route", "others 1ms")), script)


def test_a_thread_of_producers_does_not_wait_for_brokers() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await guest.send(a_message())
        stage.cut(PROXY, BROKER)
        found = await together(stage, *(guest.send(a_message(message_id=f"id-{n}")) for n in range(3)))
        assert Code.OK not in [code for _, (code, _) in found]
        assert max(after for after, _ in found) < 50  # three time-outs one after another would take 90

    runs(proxies(config=one_thread("producer", "grpcProducer 100ms")), script)


def test_settings_that_are_refused_for_it_get_a_status() -> None:
    async def script(stage: Stage, guest: ProxyGuest) -> None:
        found = await together(stage, *(guest.report(producer_settings()) for _ in range(3)))
        assert sorted(status for _, status in found) == [(Code.OK, "OK"), (Code.OK, "OK"), FLOW_LIMIT]

    runs(proxies(config=one_thread("client_manager", "V2_TELEMETRY 1s", capacity=1)), script)


@pytest.mark.parametrize(
    ("pool", "config"),
    [
        ("grpcRoute", one_thread("route", "grpcRoute 50ms")),
        (
            "remotingTopicRoute",
            ProxyConfig(processing_times="remotingTopicRoute 50ms", remoting_topic_route_thread_pool_nums=1),
        ),
    ],
)
def test_the_options_behind_a_busy_pool_are_named(pool: str, config: ProxyConfig) -> None:
    scenario = proxies(config=config)
    span = BusySpan(
        node=PROXY,
        pool=pool,
        start_ns=0,
        end_ns=1,
        censored=False,
        refused=0,
        reasons=(),
        refusing_ns=0,
        waited_max_ms=100,
        lost_members=0,
        lost_group="",
    )
    text = f"{pool}ThreadPoolNums = 1: 1 thread with 50 ms for a request can handle 20 a second"
    assert options_behind(span, scenario) == text
