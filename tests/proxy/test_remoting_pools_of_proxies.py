"""The thread pools of the remoting port of a proxy: each request has one, and what waits too long is refused late."""

from typing import Any

import attrs
import pytest
import trio

from emulator.testing import Stage
from nodes.config.proxy import ProxyConfig
from nodes.config.request_pools import ProxyPool, call_pool, remoting_pool
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.sys_flags import PullSysFlag
from support.proxy_guest import PROXY, TOPIC, ProxyGuest, proxies
from support.remoting_guest import RemotingGuest, pulled, runs_remoting

Asked = tuple[float, int, str | None]
ROUTE = (RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader(TOPIC))
UNKNOWN_ROUTE = (RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader("unknown"))
MEMBERS = (RequestCode.GET_CONSUMER_LIST_BY_GROUP, headers.ConsumerGroupRequestHeader("nobody"))
OVERLOAD = "[OVERLOAD]system busy, start flow control for a while"


def one_thread(times: str, capacity: int = 10, **sizes: int) -> ProxyConfig:
    """A proxy with one thread for routes, and one for requests without a pool of their own."""
    return ProxyConfig(
        processing_times=times,
        remoting_topic_route_thread_pool_nums=1,
        remoting_topic_route_thread_pool_queue_capacity=capacity,
        remoting_default_thread_pool_nums=1,
        remoting_default_thread_pool_queue_capacity=capacity,
        **sizes,
    )


async def together(stage: Stage, guest: RemotingGuest, *requests: tuple[RequestCode, Any]) -> list[Asked]:
    """Requests that begin at once: after how many seconds each was answered, with which code and remark."""
    begin_ms, found = stage.now_ms, dict[int, Asked]()

    async def ask(place: int, code: RequestCode, header: Any) -> None:
        answer = await guest.ask(PROXY, code, header, timeout_ms=60_000)
        found[place] = (round((stage.now_ms - begin_ms) / 1_000, 1), answer.code, answer.remark)

    async with trio.open_nursery() as nursery:
        for place, (code, header) in enumerate(requests):
            nursery.start_soon(ask, place, code, header)
    return sorted(found.values())


def test_every_request_of_the_port_has_a_pool() -> None:
    codes = [code for code in RequestCode if remoting_pool(code) is not None]
    assert len(codes) == 24
    assert {remoting_pool(code) for code in codes} == set(ProxyConfig().remoting_pool_sizes())
    assert not [code for code in codes if call_pool(code) is not None]
    sizes = {**ProxyConfig().call_pool_sizes(), **ProxyConfig().remoting_pool_sizes()}
    assert set(sizes) == set(ProxyPool)


def test_requests_wait_their_turn_and_one_too_many_is_refused() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await together(stage, guest, ROUTE)
        found = await together(stage, guest, *[ROUTE] * 4)
        assert found[0] == (0.0, ResponseCode.SYSTEM_BUSY, OVERLOAD)
        assert found[1:] == [(after_s, ResponseCode.SUCCESS, None) for after_s in (1.0, 2.0, 3.0)]

    trace = runs_remoting(proxies(config=one_thread("remotingTopicRoute 1s", capacity=2)), script)
    busy = [row.held for row in trace.select("beliefs", node=PROXY, kind="busy", subject="remotingTopicRoute")]
    assert busy[0]["refused"] == {"OVERLOAD": 1}


@pytest.mark.trap("G59")
@pytest.mark.parametrize(("wait_ms", "refused"), [(3_000, 1), (9_600, 0)])
def test_what_waits_for_too_long_is_refused_at_the_next_look_which_comes_every_ten_seconds(
    wait_ms: int, refused: int
) -> None:
    config = one_thread("remotingDefault 3s", remoting_wait_time_mills_in_default_queue=wait_ms)

    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await stage.at_ms(10_500)
        found = await together(stage, guest, *[MEMBERS] * 5)
        busy = [asked for asked in found if asked[1] == ResponseCode.SYSTEM_BUSY]
        text = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 9501ms, "
        assert busy == [(9.5, ResponseCode.SYSTEM_BUSY, f"{text}size of queue: {left}") for left in range(refused)]

    runs_remoting(proxies(config=config), script)


def test_a_thread_hands_a_pull_on_and_is_free() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await guest.beat()
        held = attrs.evolve(pulled(), sys_flag=PullSysFlag.SUSPEND, suspend_timeout_millis=8_000)
        found = await together(stage, guest, *[(RequestCode.PULL_MESSAGE, held)] * 3)
        assert [code for _, code, _ in found] == [ResponseCode.PULL_NOT_FOUND] * 3
        assert 8 <= found[0][0] <= found[-1][0] < 14

    runs_remoting(proxies(config=one_thread("others 1ms", remoting_pull_message_thread_pool_nums=1)), script)


def test_a_thread_that_has_to_load_a_route_is_busy_until_the_nameserver_answers() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        await together(stage, guest, ROUTE)
        stage.cut(PROXY, "ns-1")
        found = await together(stage, guest, UNKNOWN_ROUTE, ROUTE)
        assert found[0][0] >= 3
        assert [code for _, code, _ in found if code == ResponseCode.SUCCESS] == [ResponseCode.SUCCESS]

    runs_remoting(proxies(config=one_thread("others 1ms")), script)


def test_calls_of_grpc_at_that_port_wait_for_their_own_pools() -> None:
    async def script(stage: Stage, guest: RemotingGuest) -> None:
        caller = ProxyGuest(stage, guest.host, guest.node)
        begin_ms = stage.now_ms
        await caller.route()
        assert stage.now_ms - begin_ms < 1_000

    runs_remoting(proxies(config=one_thread("remotingTopicRoute 5s")), script)
