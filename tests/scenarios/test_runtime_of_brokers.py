"""What a broker reports of its state to administrators."""

import trio

from emulator.spec import loads
from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol.bodies import KvTable
from nodes.protocol.codes import RequestCode
from nodes.protocol.registry import decode_body
from support.asking_guest import Guest, a_guest

BROKER = "broker-a"


async def runtime(guest: Guest) -> dict[str, str]:
    answer = await guest.ask(BROKER, RequestCode.GET_BROKER_RUNTIME_INFO)
    return dict(decode_body(KvTable, answer.body).table)


def look(*at_s: float, **scenario) -> list[dict[str, str]]:
    """Runtime information of a broker at some instants."""
    tables: list[dict[str, str]] = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        for second in at_s:
            await stage.at_ms(second * 1_000)
            tables.append(await runtime(guest))

    execute(a_scenario(**{"queues": 2, "consumers": 1, "rate_per_s": 5, **scenario}), script)
    return tables


def test_rates_appear_when_the_broker_is_old_enough_for_them():
    young, older, old = look(9.5, 70.5, 700.5)
    assert (young["putTps"], young["getTotalTps"]) == ("  ", "0.0 0.0 0.0")
    assert [rate == "" for rate in older["putTps"].split(" ")] == [False, False, True]
    assert old["putTps"] == "5.0 5.0 5.0"
    assert old["getTransferredTps"] == "5.0 5.0 5.0"
    found, missed = (float(old[name].split()[0]) for name in ("getFoundTps", "getMissTps"))
    # Each pull that is held missed when it came; the retry topic's pulls miss, too.
    assert 4 <= found <= 5 <= missed
    assert float(old["getTotalTps"].split()[0]) == found + missed


def test_totals_are_those_of_this_process():
    tables: list[dict[str, str]] = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        for _ in range(3):
            await guest.send(BROKER)
        tables.append(await runtime(guest))
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(1_000)
        await guest.send(BROKER)
        await stage.for_ms(90_000)
        tables.append(await runtime(guest))

    execute(a_scenario(queues=1), script)
    first, second = tables
    assert (first["putMessageTimesTotal"], second["putMessageTimesTotal"]) == ("3", "1")
    assert first["msgPutTotalTodayNow"] == "3"
    assert first["putMessageSizeTotal"] == first["commitLogMaxOffset"]
    size = int(second["commitLogMaxOffset"]) - int(first["commitLogMaxOffset"])
    assert (second["putMessageSizeTotal"], second["putMessageAverageSize"]) == (str(size), f"{size}.0")
    assert first["putMessageDistributeTime"] == "null"
    assert second["putMessageDistributeTime"].startswith("[<=0ms]:1 [0~10ms]:0 ")


def test_the_disk_is_as_large_as_the_limit_of_the_log():
    (unlimited,) = look(5.0)
    assert (unlimited["commitLogDiskRatio"], "commitLogDirCapacity" in unlimited) == ("0.0", False)
    (limited,) = look(5.0, brokers=broker_groups(config=BrokerConfig(store_max_bytes=1024**3)))
    assert limited["commitLogDirCapacity"].startswith("Total : 1.0 GiB, Free : 10")
    assert 0 < float(limited["commitLogDiskRatio"]) == float(limited["consumeQueueDiskRatio"]) < 0.01


_BUSY = """
[scenario]
name = "busy"
run_for_s = 60
[network]
delay_ms = 1
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = { processingTimes = "sendMessage 5s", sendMessageThreadPoolNums = 1, brokerFastFailureEnable = false }
[[topic]]
name = "orders"
queues = 4
"""


def test_requests_that_wait_for_a_thread_are_counted_with_the_wait_of_the_first():
    tables: list[dict[str, str]] = []

    async def script(stage: Stage) -> None:
        guests = [await a_guest(stage, number) for number in (1, 2, 3)]
        async with trio.open_nursery() as nursery:
            for guest in guests[1:]:
                for _ in range(2):
                    nursery.start_soon(guest.send, BROKER)
            await stage.for_ms(1_000)
            tables.append(await runtime(guests[0]))
            nursery.cancel_scope.cancel()

    execute(loads(_BUSY, "busy"), script)
    (table,) = tables
    assert table["sendThreadPoolQueueSize"] == "3"
    assert 990 <= int(table["sendThreadPoolQueueHeadWaitTimeMills"]) <= 1_010
    assert (table["sendThreadPoolQueueCapacity"], table["pullThreadPoolQueueCapacity"]) == ("10000", "100000")
    assert (table["pullThreadPoolQueueSize"], table["EndTransactionQueueSize"]) == ("0", "0")


# The timer of a slave

SLAVE = f"{BROKER}-s1"
WHEEL_S = 7 * 86_400 - 60
"""So far a wheel can be behind: seven days, without its blank slots."""


def timer_progress(*at_s: float, script_before_s: float = 1, before=None) -> list[tuple[int, int]]:
    """What mqadmin prints of a slave below #Timer(Progress): how many seconds and how many messages it is behind."""
    seen: list[tuple[int, int]] = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(script_before_s * 1_000)
        if before is not None:
            await before(stage, guest)
        for second in at_s:
            await stage.at_ms(second * 1_000)
            answer = await guest.ask(SLAVE, RequestCode.GET_BROKER_RUNTIME_INFO)
            table = decode_body(KvTable, answer.body).table
            seen.append((int(table["timerReadBehind"]), int(table["timerOffsetBehind"])))

    execute(a_scenario(queues=1, brokers=broker_groups(slaves=1)), script)
    return seen


def test_a_slave_follows_the_timer_of_its_master_before_there_is_a_timed_message():
    """It asks every 3 s, the first time after 10 s; until then its wheel is as old as it can be."""
    (first_s, _), *others = timer_progress(5, 13, 24, 36, 48)
    assert WHEEL_S <= first_s <= WHEEL_S + 5
    assert all(1 <= behind_s <= 5 and not messages for behind_s, messages in others)


def test_a_slave_that_does_not_reach_its_master_falls_behind():
    async def cut(stage: Stage, _guest: Guest) -> None:
        stage.cut(BROKER, SLAVE)

    ((behind_s, _),) = timer_progress(60, script_before_s=31, before=cut)
    assert 29 <= behind_s <= 35


def test_after_a_timed_message_it_goes_on_in_the_same_way():
    async def send(_stage: Stage, guest: Guest) -> None:
        await guest.send(BROKER, TIMER_DELAY_SEC="5")

    assert all(1 <= behind_s <= 5 for behind_s, _ in timer_progress(18, 24, 36, 48, script_before_s=15, before=send))
