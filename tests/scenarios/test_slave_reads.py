"""Consumers that lag so far behind that their broker sends them to a slave."""

import attrs
import pytest

from emulator.spec.model.scenario import Scenario
from emulator.testing import Stage, Trace, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol.codes import RequestCode
from support.grouped import MASTER, S1, a_group, requests

SMALL_MEMORY = {"slave_read_enable": True, "total_physical_memory_size": 10_000}
"""40 % of this are some thirty messages."""
SUGGESTED_BY_MS = 60_000


def lagging(**options: object) -> Scenario:
    """A master with a slave, a producer, and a consumer that is slower than it."""
    scenario = a_group(slaves=1, consumers=1, rate_per_s=20, config=BrokerConfig(**{**SMALL_MEMORY, **options}))
    group = attrs.evolve(
        scenario.consumers[0],
        consume_ms=200,
        config=ConsumerConfig(consume_thread_min=1, pull_threshold_for_queue=20),
    )
    return attrs.evolve(scenario, consumers=(group,))


def pulls(trace: Trace, broker: str, **between: float) -> int:
    return len(requests(trace, "c1", broker, RequestCode.PULL_MESSAGE, **between))


def test_a_consumer_that_lags_by_more_than_the_memory_is_sent_to_a_slave() -> None:
    trace = execute(lagging(), for_ms=SUGGESTED_BY_MS + 60_000)
    assert pulls(trace, S1, after_ms=SUGGESTED_BY_MS) >= 8
    assert pulls(trace, MASTER, after_ms=SUGGESTED_BY_MS) <= retry_pulls(SUGGESTED_BY_MS + 60_000)


def test_without_slave_reads_it_stays_with_the_master() -> None:
    trace = execute(lagging(slave_read_enable=False), for_ms=SUGGESTED_BY_MS + 60_000)
    assert pulls(trace, S1) == 0
    assert pulls(trace, MASTER) > 10


def test_a_consumer_that_keeps_up_is_never_sent_away() -> None:
    scenario = a_group(slaves=1, consumers=1, rate_per_s=20, config=BrokerConfig(**SMALL_MEMORY))
    trace = execute(scenario, for_ms=SUGGESTED_BY_MS)
    assert pulls(trace, S1) == 0


@pytest.mark.trap("C30")
def test_a_dead_slave_is_pulled_on_until_its_address_has_left_the_route() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(SUGGESTED_BY_MS)
        await stage.power_off(S1)
        await stage.for_ms(240_000)

    trace = execute(lagging(), script)
    forgotten_ms = next(
        row.at_ms
        for row in trace.select("beliefs", node="ns-1", kind="live_brokers", after_ms=SUGGESTED_BY_MS)
        if "1" not in row.value.split('"')[1::4]
    )
    # The master would answer all that time; no pull that fails makes the client turn to it.
    assert forgotten_ms > SUGGESTED_BY_MS + 60_000
    assert pulls(trace, MASTER, after_ms=SUGGESTED_BY_MS + 5_000, until_ms=forgotten_ms) <= retry_pulls(forgotten_ms)
    assert pulls(trace, MASTER, after_ms=forgotten_ms + 65_000) > 10


def retry_pulls(until_ms: float) -> int:
    """Pulls of the retry topic, of which nothing was ever late: one held for at least 15 s after the other."""
    return int((until_ms - SUGGESTED_BY_MS) / 15_000) + 1
