"""The table of the mission's report: its runs are those of a campaign of the package, here with fewer messages."""

import pytest
from rich.console import Console

from nodes.config.allocation_time import AllocationTime
from studies.mission_table import METHODS, REPORTED_MS, MissionRun, executed, rendered, scenario_of

FEW = 10_000


def test_each_method_and_number_of_rebalances_is_a_variant_with_a_million_messages():
    for times in REPORTED_MS:
        for method in METHODS:
            scenario = scenario_of(f"{method}.{times}", 1_000_000)
            assert sum(producer.messages for producer in scenario.producers) == 1_000_000
            assert scenario.topics[0].queues == len(scenario.consumers[0].names) == 4
            assert len(scenario.faults.faults) == (times == "twice")


def test_calculations_take_their_time_in_all_variants():
    for method in METHODS:
        scenario = scenario_of(f"{method}.once", 1_000_000)
        counted = [spec.config.allocation_time for spec in (*scenario.brokers, *scenario.consumers)]
        assert counted == [AllocationTime.MICROSECONDS] * 2


def test_fewer_messages_are_sent_in_the_same_time():
    whole, few = (scenario_of("broker-sticky.twice", messages).producers[0] for messages in (1_000_000, FEW))

    assert few.messages / few.rate_per_s == whole.messages / whole.rate_per_s


@pytest.mark.parametrize("method", ["client-averagely", "broker-sticky"])
def test_all_messages_are_consumed_and_no_queue_moves_without_need(method):
    run = MissionRun(*executed(variant=f"{method}.twice", messages=FEW))

    assert 255 < run.total_s < 270
    assert run.retained == 1.0
    assert 0.1 < run.calculated_ms < 10
    assert run.deviation == pytest.approx(0.47, abs=0.01)


def test_the_table_compares_each_method_with_that_of_the_clients():
    found = {
        (times, method): MissionRun(500.0 + number, 0.25, 0.75, 0.0, 1.0, 2.0, 90.0, 220.0)
        for times in REPORTED_MS
        for number, method in enumerate(METHODS)
    }
    console = Console(width=160)
    with console.capture() as captured:
        console.print(rendered(found, 1_000_000))

    lines = [line.split() for line in captured.get().splitlines()]
    sticky_once, client_twice = lines[4], lines[5]
    assert sticky_once[:8] == ["once", "broker-sticky", "502.00", "2000.000", "1.0040", "600.2", "4165", "1.0070"]
    assert client_twice[:8] == ["twice", "client-averagely", "500.00", "0.000", "1.0000", "767.3", "0", "1.0000"]
    assert client_twice[8:] == ["0.250", "0.75", "0.00", "100%", "2.000", "90.0", "220"]
