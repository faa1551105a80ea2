"""Timed messages: on a master, on its slave, and over the death of either."""

import pytest

from emulator.testing import Caller, Stage, Trace, a_scenario, play
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.properties import properties_to_text

WHEEL = "rmq_sys_wheel_timer"


async def send(probe: Caller, node: str, code: ResponseCode = ResponseCode.SUCCESS, **properties: str) -> str | None:
    """Send a message that asks for a time to queue 0; returns the remark of the answer."""
    header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, properties_to_text(properties))
    answer = await probe.ask(node, RequestCode.SEND_MESSAGE, header)
    assert answer.code == code
    return answer.remark


def stored(trace: Trace, node: str, topic: str = "orders", **between: float) -> list[float]:
    """When a broker stored messages of a topic, in ms."""
    return [row.at_ms for row in trace.select("messages", node=node, event="stored", topic=topic, **between)]


@pytest.mark.parametrize("asked", [{"TIMER_DELAY_SEC": "30"}, {"TIMER_DELAY_MS": "30000"}])
def test_a_timed_message_reaches_its_topic_at_its_time_and_at_most_a_unit_later(asked: dict[str, str]) -> None:
    sent = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(12_345)
        sent.append(stage.now_ms)
        await send(probe, "broker-a", **asked)
        await stage.for_ms(40_000)

    trace = play(a_scenario(), script)
    assert len(stored(trace, "broker-a", WHEEL)) == 1
    (instant,) = stored(trace, "broker-a")
    assert 30_000 <= instant - sent[0] <= 31_200


def test_a_timed_message_waits_for_days_and_costs_nothing_meanwhile() -> None:
    day_ms = 24 * 3_600_000

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await send(probe, "broker-a", TIMER_DELAY_SEC=str(2 * 24 * 3600 + 3600))
        await stage.for_ms(3 * day_ms)

    trace = play(a_scenario(), script)
    (instant,) = stored(trace, "broker-a")
    assert 0 <= instant - 2 * day_ms - 3_600_000 <= 5_000
    assert len(stored(trace, "broker-a", WHEEL)) == 2  # rolled once
