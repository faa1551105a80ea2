"""Timed messages on a master: their time, what is refused, what is taken back, and restarts."""

import pytest

from emulator.spec.model.scenario import Scenario
from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_message import RecallMessageRequestHeader
from nodes.protocol.recall_handle import RecallHandle
from support.timed import WHEEL, ask, send, stored

BROKER = "broker-a"
DAY_MS = 24 * 3_600_000


def a_broker(config: BrokerConfig) -> Scenario:
    return a_scenario(brokers=broker_groups(BROKER, config=config))


@pytest.mark.parametrize("requested", [{"TIMER_DELAY_SEC": "30"}, {"TIMER_DELAY_MS": "30000"}])
def test_a_timed_message_reaches_its_topic_at_its_time_and_at_most_a_unit_later(requested: dict[str, str]) -> None:
    sent = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(12_345)
        sent.append(stage.now_ms)
        await send(probe, BROKER, **requested)
        await stage.for_ms(40_000)

    trace = execute(a_scenario(), script)
    assert len(stored(trace, BROKER, WHEEL)) == 1
    (instant,) = stored(trace, BROKER)
    assert 30_000 <= instant - sent[0] <= 31_200


def test_a_finer_unit_delivers_more_exactly() -> None:
    sent = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(12_345)
        sent.append(stage.now_ms)
        await send(probe, BROKER, TIMER_DELAY_MS="5000")
        await stage.for_ms(10_000)

    trace = execute(a_broker(BrokerConfig(timer_precision_ms=150)), script)
    (instant,) = stored(trace, BROKER)
    assert 5_000 <= instant - sent[0] <= 5_130


def test_messages_of_a_slot_keep_their_order_and_a_thousand_at_once_are_no_trouble() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        for number in range(1_100):
            await send(probe, BROKER, TIMER_DELAY_SEC="60", KEYS=str(number))
        await stage.for_ms(90_000)

    trace = execute(a_scenario(), script)
    rows = trace.select("messages", node=BROKER, event="stored", topic="orders")
    assert [int(row.key) for row in rows] == list(range(1_100))


def test_a_message_beyond_the_window_of_the_wheel_is_stored_again_when_it_comes_nearer() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await send(probe, BROKER, TIMER_DELAY_SEC="100")
        await stage.for_ms(120_000)

    trace = execute(a_broker(BrokerConfig(timer_roll_window_slot=40)), script)
    (instant,) = stored(trace, BROKER)
    assert 100_000 <= instant <= 102_000
    assert len(stored(trace, BROKER, WHEEL)) == 3  # 40 s ahead, 40 s ahead again, and the rest


def test_a_timed_message_waits_for_hours_and_costs_nothing_meanwhile() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await send(probe, BROKER, TIMER_DELAY_SEC=str(4 * 3600))
        await stage.for_ms(DAY_MS / 5)

    trace = execute(a_scenario(), script)
    (instant,) = stored(trace, BROKER)
    assert 0 <= instant - 4 * 3_600_000 <= 2_000
    assert len(trace.select("causes", node=BROKER, name="TimerDequeueGetService")) == 1


@pytest.mark.parametrize(
    ("config", "requested", "code"),
    [
        (BrokerConfig(), {"TIMER_DELAY_SEC": "259201"}, ResponseCode.MESSAGE_ILLEGAL),
        (BrokerConfig(), {"TIMER_DELAY_SEC": "soon"}, ResponseCode.MESSAGE_ILLEGAL),
        (BrokerConfig(), {"TIMER_DELIVER_MS": "9" * 30}, ResponseCode.MESSAGE_ILLEGAL),
        (BrokerConfig(), {"TIMER_DELIVER_MS": "1", "TIMER_DEL_UNIQKEY": "x"}, ResponseCode.MESSAGE_ILLEGAL),
        (BrokerConfig(timer_wheel_enable=False), {"TIMER_DELAY_SEC": "1"}, ResponseCode.SYSTEM_ERROR),
    ],
)
def test_what_the_timer_cannot_keep_is_refused_with_a_reason_and_nothing_is_stored(
    config: BrokerConfig, requested: dict[str, str], code: ResponseCode
) -> None:
    answers = []

    async def script(stage: Stage) -> None:
        answers.append(await ask(await stage.probe(), BROKER, **requested))
        await stage.for_ms(5_000)

    trace = execute(a_broker(config), script)
    assert answers[0].code == code
    assert "time" in answers[0].remark
    assert stored(trace, BROKER) == stored(trace, BROKER, WHEEL) == []


@pytest.mark.trap("P33")
def test_a_full_slot_refuses_further_messages() -> None:
    codes = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(10_000)
        for _ in range(8):
            codes.append((await ask(probe, BROKER, TIMER_DELIVER_MS=str(stage_wall_ms(stage) + 60_000))).code)
            await stage.for_ms(150)

    def stage_wall_ms(stage: Stage) -> int:
        return stage.host(BROKER).process.clock.now_ms() // 60_000 * 60_000

    execute(a_broker(BrokerConfig(timer_congest_num_each_slot=2)), script)
    assert codes[:3] == [0, 0, 0]
    assert ResponseCode.SYSTEM_ERROR in codes


def test_a_message_whose_time_is_over_is_stored_at_once() -> None:
    async def script(stage: Stage) -> None:
        answer = await send(await stage.probe(), BROKER, TIMER_DELIVER_MS="1", UNIQ_KEY="u1")
        assert answer.recall_handle is None

    trace = execute(a_scenario(), script)
    assert len(stored(trace, BROKER)) == 1
    assert not stored(trace, BROKER, WHEEL)


# --- messages that are taken back -------------------------------------------------


def test_a_message_that_is_taken_back_is_not_delivered_and_its_neighbour_is() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(10_000)
        answer = await send(probe, BROKER, TIMER_DELAY_SEC="30", UNIQ_KEY="u1", KEYS="gone")
        await send(probe, BROKER, TIMER_DELAY_SEC="30", UNIQ_KEY="u2", KEYS="there")
        header = RecallMessageRequestHeader("orders", answer.recall_handle or "")
        recalled = await probe.ask(BROKER, RequestCode.RECALL_MESSAGE, header)
        assert (recalled.code, recalled.ext_fields["msgId"]) == (ResponseCode.SUCCESS, "u1")
        assert recalled.ext_fields["MSG_REGION"] == "DefaultRegion"  # without it a client does not trace the recall
        await stage.for_ms(40_000)

    trace = execute(a_broker(BrokerConfig(recall_message_enable=True)), script)
    rows = trace.select("messages", node=BROKER, event="stored", topic="orders")
    assert [row.key for row in rows] == ["there"]


@pytest.mark.trap("P31")
def test_a_delete_in_another_slot_misses_its_target_although_its_producer_was_notified_success() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(10_000)
        answer = await send(probe, BROKER, TIMER_DELAY_SEC="30", UNIQ_KEY="u1")
        handle = RecallHandle.decode(answer.recall_handle or "")
        later = RecallHandle("orders", BROKER, str(int(handle.deliver_ms) + 5_000), "u1").encode()
        recalled = await probe.ask(BROKER, RequestCode.RECALL_MESSAGE, RecallMessageRequestHeader("orders", later))
        assert recalled.code == ResponseCode.SUCCESS
        await stage.for_ms(60_000)
        # The delete counts, though it deleted nothing: less than none waits.
        assert stage.node(BROKER).tables.timer.wheel.metrics.timing_count["orders"].count == -1

    trace = execute(a_broker(BrokerConfig(recall_message_enable=True)), script)
    assert len(stored(trace, BROKER)) == 1


def test_who_takes_back_what_cannot_be_taken_back_is_reported_so() -> None:
    codes = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        now_ms = stage.host(BROKER).process.clock.now_ms()

        async def recall(topic: str, text: str) -> None:
            answer = await probe.ask(BROKER, RequestCode.RECALL_MESSAGE, RecallMessageRequestHeader(topic, text))
            codes.append(answer.code)

        good = RecallHandle("orders", BROKER, str(now_ms + 60_000), "u1")
        await recall("nobody", good.encode())
        await recall("orders", "no handle at all")
        await recall("orders", "")
        await recall("TBW102", good.encode())
        await recall("orders", RecallHandle("orders", "elsewhere", good.deliver_ms, "u1").encode())
        await recall("orders", RecallHandle("orders", BROKER, str(now_ms - 1), "u1").encode())
        await recall("orders", RecallHandle("orders", BROKER, str(now_ms + 4 * DAY_MS), "u1").encode())
        await recall("orders", RecallHandle("orders", BROKER, "soon", "u1").encode())

    trace = execute(a_broker(BrokerConfig(recall_message_enable=True)), script)
    assert codes == [ResponseCode.TOPIC_NOT_EXIST, *[ResponseCode.ILLEGAL_OPERATION] * 7]
    assert not stored(trace, BROKER, WHEEL)


def test_nothing_is_taken_back_unless_that_is_enabled_and_by_a_slave_never() -> None:
    codes = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        for node in (BROKER, f"{BROKER}-s1"):
            answer = await probe.ask(node, RequestCode.RECALL_MESSAGE, RecallMessageRequestHeader("orders", "x"))
            codes.append(answer.code)

    execute(a_scenario(brokers=broker_groups(slaves=1)), script)
    execute(a_scenario(brokers=broker_groups(config=BrokerConfig(recall_message_enable=True), slaves=1)), script)
    assert codes[0] == codes[1] == ResponseCode.NO_PERMISSION
    assert codes[2:] == [ResponseCode.ILLEGAL_OPERATION, ResponseCode.SLAVE_NOT_AVAILABLE]


# --- restarts ------------------------------------------------------------------------


def test_a_broker_that_starts_again_delivers_what_is_due_and_what_was_due_meanwhile_once() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        for seconds in (5, 30, 80):
            await send(probe, BROKER, TIMER_DELAY_SEC=str(seconds), KEYS=str(seconds))
        await stage.for_ms(20_000)
        await stage.kill(BROKER)
        await stage.for_ms(40_000)
        stage.start(BROKER)
        await stage.for_ms(60_000)

    trace = execute(a_scenario(), script)
    rows = trace.select("messages", node=BROKER, event="stored", topic="orders")
    assert [row.key for row in rows] == ["5", "30", "80"]
    assert rows[1].at_ms == pytest.approx(60_000, abs=1_500)
    assert rows[2].at_ms == pytest.approx(81_000, abs=1_500)


def test_a_kill_within_the_second_in_which_progress_is_written_delivers_a_message_twice() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(20_050)
        await send(probe, BROKER, TIMER_DELAY_SEC="30")
        await stage.at_ms(20_300)  # in the wheel and its log; the check point says nothing of it
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(60_000)

    trace = execute(a_scenario(), script)
    assert len(stored(trace, BROKER)) == 2


def test_a_loss_of_power_takes_no_message_that_is_in_the_log() -> None:
    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(20_050)
        await send(probe, BROKER, TIMER_DELAY_SEC="30", KEYS="a")
        await stage.at_ms(25_050)
        await send(probe, BROKER, TIMER_DELAY_SEC="30", KEYS="b")
        await stage.at_ms(25_300)
        await stage.power_off(BROKER)
        await stage.for_ms(1_000)
        stage.start(BROKER)
        await stage.for_ms(60_000)

    trace = execute(a_scenario(), script)
    rows = trace.select("messages", node=BROKER, event="stored", topic="orders")
    assert [row.key for row in rows] == ["a", "b"]
