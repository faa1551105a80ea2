"""Brokers whose requests take time: what waits, what is refused with which words, and which member is lost."""

import itertools
import json
import statistics
from collections import Counter

import attrs
import pytest
import trio

from analysis.executed_rows import found_in_executed
from emulator.analysis.judge import broken
from emulator.spec import load, loads
from emulator.spec.bundled import example
from emulator.testing import Stage, Trace, execute
from nodes.protocol.codes import RequestCode, ResponseCode
from support.popping_guest import popping_guest

SEND = RequestCode.SEND_MESSAGE_V2
_PRODUCER = '[[producer]]\nname = "p-{number}"\ngroup = "till"\ntopic = "orders"\nrate_per_s = {rate}\n'
_SCENARIO = """
[scenario]
name = "busy"
run_for_s = 3600
[network]
delay_ms = 1
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = {{ {options} }}
[[topic]]
name = "orders"
queues = 4
{producers}
[[consumer]]
group = "billing"
topics = ["orders"]
count = {consumers}
"""


def run(options, *, script=None, for_ms=0, producers=8, rate=10, consumers=1) -> Trace:
    """Producers send one message at a time, so at most as many sends wait as there are producers."""
    sending = "".join(_PRODUCER.format(number=number, rate=rate) for number in range(producers))
    text = _SCENARIO.format(options=options, producers=sending, consumers=consumers)
    return execute(loads(text, "busy"), script, for_ms=for_ms)


def answers(trace, code=SEND):
    """Statuses of the answers to a request."""
    return Counter(row.status for row in trace.select("rpc", kind="response", event="delivered", code=code))


def busy(trace, pool="sendMessage"):
    """Instants in s, and values, of the beliefs about a pool."""
    return [(row.at_s, json.loads(row.value)) for row in trace.select("beliefs", kind="busy", subject=pool)]


def refused(trace, pool="sendMessage"):
    """How many requests were refused, by reason."""
    total = Counter()
    for _, value in busy(trace, pool):
        total.update((value or {}).get("refused", {}))
    return dict(total)


def test_a_thread_handles_as_many_requests_as_its_time_allows_and_the_rest_is_refused_after_200_ms():
    trace = run('processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 1', for_ms=15_000)
    found = answers(trace)
    assert 260 <= found[ResponseCode.SUCCESS] <= 300, "twenty a second"
    assert found[ResponseCode.SYSTEM_BUSY] > 150
    assert list(refused(trace)) == ["TIMEOUT_CLEAN_QUEUE"]
    waits = [value["waited_max_ms"] for _, value in busy(trace)[2:]]
    assert max(waits) <= 210, "the queue is looked at every 10 ms"


def test_the_queue_is_looked_at_for_the_first_time_a_second_after_the_start():
    trace = run('processingTimes = "sendMessage 700ms", sendMessageThreadPoolNums = 1', for_ms=5_000)
    first = next(at_s for at_s, value in busy(trace) if value["refused"])
    ready_s = trace.select("lifecycle", node="broker-a", event="ready")[0].at_s
    assert first - ready_s > 1


def test_two_threads_handle_twice_as_many():
    single, double = (
        answers(run(f'processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = {threads}', for_ms=10_000))
        for threads in (1, 2)
    )
    assert double[ResponseCode.SUCCESS] == pytest.approx(2 * single[ResponseCode.SUCCESS], rel=0.1)


def test_without_fast_failure_requests_wait_until_their_turn():
    options = 'processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 1, brokerFastFailureEnable = false'
    trace = run(options, for_ms=10_000)
    assert answers(trace)[ResponseCode.SYSTEM_BUSY] == 0
    assert max(value["waited_max_ms"] for _, value in busy(trace)) >= 300


def test_a_full_queue_refuses_at_once():
    options = 'processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 1, sendThreadPoolQueueCapacity = 1'
    trace = run(options, for_ms=10_000)
    assert list(refused(trace)) == ["OVERLOAD"]


def test_a_disk_that_takes_seconds_makes_the_page_cache_busy_and_sends_are_refused_before_they_wait():
    async def script(stage: Stage) -> None:
        await stage.at_ms(3_000)
        fault = await stage.begin("slow-disk broker-a 3000")
        await stage.at_ms(13_000)
        await stage.end(fault)
        await stage.at_ms(25_000)

    trace = run('processingTimes = "others 1ms"', script=script, producers=4)
    found = refused(trace)
    assert found["REJECTREQUEST"] > 10
    assert found["PCBUSY_CLEAN_QUEUE"] + found.get("TIMEOUT_CLEAN_QUEUE", 0) > 0
    at_s, last = busy(trace)[-1]
    assert last is None, "quiet again when the disk is fast again"
    assert 13 < at_s < 23


_BUFFERS = (
    'processingTimes = "others 1ms", flushDiskType = "ASYNC_FLUSH", mappedFileSizeCommitLog = 4096, '
    "transientStorePoolEnable = true, transientStorePoolSize = {size}"
)


def test_with_buffers_a_slow_disk_delays_no_append_until_no_buffer_is_free():
    async def script(stage: Stage) -> None:
        await stage.at_ms(3_000)
        fault = await stage.begin("slow-disk broker-a 3000")
        await stage.at_ms(13_000)
        await stage.end(fault)
        await stage.at_ms(25_000)

    many, few = (run(_BUFFERS.format(size=size), script=script, producers=4) for size in (1_000, 5))
    assert refused(many) == {}, "appends go to buffers, and commits wait for the disk"
    assert set(refused(few)) == {"REJECTREQUEST"}
    assert 3 < busy(few)[0][0] < 13
    assert busy(few)[-1][1] is None, "committed files return their buffers"


def test_a_pool_of_two_buffers_refuses_every_send_after_the_first():
    trace = run(_BUFFERS.format(size=2), for_ms=10_000, producers=2)
    assert answers(trace)[ResponseCode.SUCCESS] <= 2
    assert set(refused(trace)) == {"REJECTREQUEST"}


def test_heartbeats_that_wait_for_too_long_are_refused_and_members_that_live_are_lost():
    options = 'processingTimes = "heartbeat 40s", heartbeatThreadPoolNums = 1, channelExpiredTimeout = 60000'
    trace = run(options, for_ms=200_000, producers=0, consumers=6)
    assert refused(trace, "heartbeat")["TIMEOUT_CLEAN_QUEUE"] > 3
    ids = [len(json.loads(row.value)) for row in trace.select("beliefs", kind="consumer_ids", subject="billing")]
    assert any(after < before for before, after in itertools.pairwise(ids)), "members were removed"
    assert not trace.select("lifecycle", event="killed")
    found = found_in_executed(trace)
    assert "V19" in broken(found)
    assert max(row.lost_members for row in found["busy_brokers"]) >= 1


def test_a_held_pull_that_is_woken_waits_for_a_thread_again():
    options = 'processingTimes = "pullMessage 300ms", pullMessageThreadPoolNums = 1'
    trace = run(options, for_ms=20_000, producers=1, rate=5, consumers=1)
    assert max(value["waited_max_ms"] for _, value in busy(trace, "pullMessage") if value) >= 300


@pytest.mark.parametrize("busy_ms", [300, 0])
def test_a_held_pop_that_is_woken_waits_for_a_thread_again(busy_ms):
    instants_s = []

    async def script(stage: Stage) -> None:
        guest = await popping_guest(stage)
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                assert (await guest.pop(poll_ms=20_000)).offsets == [0]
                instants_s.append(stage.now_ms / 1_000)

            nursery.start_soon(hold)
            await stage.at_ms(8_000)
            await guest.send("broker-a")
            instants_s.append(stage.now_ms / 1_000)

    times = f'processingTimes = "pullMessage {busy_ms}ms", pullMessageThreadPoolNums = 1' if busy_ms else ""
    run(times, script=script, producers=0, consumers=1)
    sent_s, popped_s = instants_s
    assert ((popped_s - sent_s) * 1_000 >= 300) is (busy_ms == 300)


@pytest.mark.parametrize("kind", ["delay_level = 1", 'timer = "1s"'])
def test_what_the_broker_delivers_by_itself_waits_for_the_lock_of_the_log(kind):
    """The disk takes 700 ms, and one append after the other waits for it."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(3_000)
        await stage.begin("slow-disk broker-a 700")
        await stage.at_ms(20_000)

    def lateness_s(options: str) -> float:
        sending = _PRODUCER.format(number=0, rate=2) + kind + "\n" + _PRODUCER.format(number=1, rate=2)
        trace = execute(loads(_SCENARIO.format(options=options, producers=sending, consumers=1), "busy"), script)
        delivered = trace.select("messages", event="delivered")
        begun = {row.key: row.at_s for row in trace.select("messages", event="delayed")}
        return statistics.median(row.at_s - begun[row.key] for row in delivered)

    assert lateness_s('processingTimes = "heartbeat 1ms"') > lateness_s("") + 0.3


def test_a_producer_tries_another_broker_when_the_first_is_busy():
    text = _SCENARIO.format(
        options='processingTimes = "sendMessage 50ms", sendMessageThreadPoolNums = 1',
        producers="".join(_PRODUCER.format(number=number, rate=10) for number in range(8)),
        consumers=1,
    ).replace("[[topic]]", '[[broker]]\nname = "broker-b"\n[[topic]]')
    trace = execute(loads(text, "busy"), for_ms=20_000)
    assert answers(trace)[ResponseCode.SYSTEM_BUSY] > 20
    assert not trace.select("messages", event="unacknowledged")


def test_nothing_waits_where_no_request_takes_time():
    trace = run("sendMessageThreadPoolNums = 1, sendThreadPoolQueueCapacity = 1", for_ms=5_000)
    assert not trace.select("beliefs", kind="busy")
    assert set(answers(trace)) == {ResponseCode.SUCCESS}


def test_a_client_that_tries_a_busy_broker_again_and_again_holds_its_heartbeats_back_from_a_healthy_one():
    """`lockHeartbeat`: the heartbeat after each new connection holds it for 3 s, and the round to all only tries it."""
    trace = execute(attrs.evolve(load(example("busy_broker.toml")), run_for_ms=200_000), for_ms=200_000)
    last = {}
    for row in trace.select("rpc", kind="request", event="delivered", code=int(RequestCode.HEART_BEAT), dst="broker-b"):
        last[row.src] = row.at_s
    assert min(last.values()) < 75, "one of them sent broker-b no heartbeat any more"
    assert [row for row in trace.select("beliefs", kind="consumer_ids", node="broker-b") if row.at_s > 180]
