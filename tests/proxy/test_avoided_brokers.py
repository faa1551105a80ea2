"""A proxy with `sendLatencyEnable` avoids brokers that were slow, or did not answer."""

from itertools import pairwise

import pytest

from emulator.testing import Stage, Trace, broker_groups
from nodes.client.tables.latency_fault import LatencyFaultTolerance
from nodes.config.proxy import ProxyConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.enums import Code
from nodes.proxy.tables.route_view import AddressableQueue, QueueSelector
from support.every_case import each_case
from support.proxy_guest import PROXY, TOPIC, ProxyGuest, a_message, proxies, runs

A, B = "broker-a", "broker-b"
QUEUES = tuple(AddressableQueue(name, number, "") for name in (A, B) for number in range(2))


def chosen(available: str, reachable: str, count: int = 4) -> list[tuple[str, int]]:
    """The queues of as many sends, where some brokers are available, and some are reachable."""
    selector = QueueSelector(QUEUES, 0, 0)
    filters = (lambda queue: queue.broker_name[-1] in available, lambda queue: queue.broker_name[-1] in reachable)
    found = (selector.next_queue_by_pipeline(filters) for _ in range(count))
    return [(queue.broker_name[-1], queue.queue_id) for queue in found if queue is not None]


@each_case(
    ("available", "reachable", "queues"),
    [
        ("ab", "ab", [("a", 1), ("b", 0), ("b", 1), ("a", 0)]),
        ("ab", "b", [("b", 0), ("b", 1), ("b", 0), ("b", 1)]),
        ("b", "ab", [("b", 0), ("b", 1), ("b", 0), ("b", 1)]),
        ("a", "b", [("a", 1), ("a", 0), ("a", 1), ("a", 0)]),  # being available goes before being reachable
        ("", "b", [("b", 0), ("b", 1), ("b", 0), ("b", 1)]),
        ("", "", [("a", 0), ("a", 1), ("b", 0), ("b", 1)]),
    ],
)
def test_the_queue_of_a_send(available: str, reachable: str, queues: list[tuple[str, int]]) -> None:
    assert chosen(available, reachable) == queues


def test_without_queues_there_is_none() -> None:
    assert QueueSelector((), 0, 0).next_queue_by_pipeline((lambda _: True,)) is None


def test_a_detector_asks_a_broker_again_after_an_interval_and_makes_it_reachable() -> None:
    table = LatencyFaultTolerance()
    assert not table.begin_detection(A, 0, 2_000)
    table.update_fault_item(A, 10, 10_000, reachable=False, now_ms=0)
    asked = [now_ms for now_ms in (0, 1_999, 2_000, 3_000) if table.begin_detection(A, now_ms, 2_000)]
    assert asked == [0, 2_000]
    table.on_detected(A)
    assert (table.is_reachable(A), table.is_available(A, 9_999)) == (True, False)
    table.remove(A)
    assert table.is_available(A, 9_999)


# --- in a cluster -------------------------------------------------------------------------


async def send_for(stage: Stage, guest: ProxyGuest, seconds: int) -> list[Code]:
    """What each of ten sends a second is answered."""
    codes = []
    end_ms = stage.now_ms + seconds * 1_000
    while stage.now_ms < end_ms:
        codes.append((await guest.send(a_message(message_id=f"id-{stage.now_ms}"))).status.code)
        await stage.for_ms(100)
    return codes


def sends_to(trace: Trace, broker: str, from_s: float, until_s: float) -> int:
    """Messages of the topic that a broker has stored meanwhile."""
    rows = trace.select("messages", event="stored", topic=TOPIC, broker_name=broker)
    return len([row for row in rows if from_s <= row.at_s < until_s])


def cut_for_ten_seconds(config: ProxyConfig) -> tuple[list[Code], Trace]:
    """Sends of a minute, in which the proxy does not reach broker-b from 10 s to 20 s; what was answered meanwhile."""
    answers: list[Code] = []

    async def script(stage: Stage, guest: ProxyGuest) -> None:
        await stage.at_ms(5_000)
        await send_for(stage, guest, 5)
        stage.cut(PROXY, B)
        answers.extend(await send_for(stage, guest, 10))
        stage.heal(PROXY, B)
        await send_for(stage, guest, 40)

    brokers = broker_groups(A, B)
    return answers, runs(proxies(brokers=brokers, queues=2, config=config), script)


def test_without_the_option_every_second_send_meets_the_broker_that_does_not_answer() -> None:
    answers, trace = cut_for_ten_seconds(ProxyConfig())
    assert len([code for code in answers if code is not Code.OK]) >= 3
    assert sends_to(trace, B, 40, 60) > 50


@pytest.mark.trap("G58")
def test_a_broker_that_failed_once_is_avoided_for_ever_without_a_detector() -> None:
    answers, trace = cut_for_ten_seconds(ProxyConfig(send_latency_enable=True))
    assert len([code for code in answers if code is not Code.OK]) == 1
    assert sends_to(trace, B, 5, 10) > 15
    assert sends_to(trace, B, 25, 60) == 0
    assert sends_to(trace, A, 25, 60) > 150


def test_with_a_detector_it_gets_messages_again() -> None:
    answers, trace = cut_for_ten_seconds(ProxyConfig(send_latency_enable=True, start_detector_enable=True))
    assert len([code for code in answers if code is not Code.OK]) == 1
    assert sends_to(trace, B, 40, 60) > 50
    asked = trace.select("rpc", event="delivered", kind="request", code=int(RequestCode.GET_MAX_OFFSET), dst=B)
    gaps = [later.at_s - earlier.at_s for earlier, later in pairwise(asked)]
    assert asked
    assert min(gaps) > 2.9
