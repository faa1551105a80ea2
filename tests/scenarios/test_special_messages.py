"""What becomes of special messages when their master dies: a twentieth of what `make special` runs."""

import re
from pathlib import Path

import attrs
import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from studies.special_messages.fates import Fates, Kind
from studies.special_messages.impacts import Impact, Trap, reported

EXAMPLE = Path(__file__).parents[2] / "examples" / "rip32" / "special" / "special_messages.toml"
KILLED_S, BACK_S = 85, 175


def a_twentieth(*, escape):
    """The example with a twentieth of its messages, which a worker takes twenty times as long for."""
    text = re.sub(
        r"(messages|rate_per_s) = ([\d_]+)", lambda found: f"{found[1]} = {int(found[2]) // 20}", EXAMPLE.read_text()
    )
    text = text.replace("consume_ms = 1000", "consume_ms = 20_000").replace("run_for_s = 480", "run_for_s = 400")
    scenario = loads(text, "text")
    brokers = [
        attrs.evolve(broker, config=attrs.evolve(broker.config, enable_remote_escape=escape))
        for broker in scenario.brokers
    ]
    return attrs.evolve(scenario, brokers=tuple(brokers))


def executed(escape, runs):
    """By kind what happened, and the report."""
    scenario = a_twentieth(escape=escape)
    fates = Fates(scenario)
    run = run_scenario(scenario, runs=runs, level=TraceLevel.FINDINGS, listeners=(fates.note,)).path
    return {item.kind: item for item in reported(fates)}, judge_run(open_run(run))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return executed(True, tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def shut(tmp_path_factory):
    return executed(False, tmp_path_factory.mktemp("runs"))


def lost(item):
    """Mapping trap -> messages that it lost."""
    return {impact.partition(": ")[2]: times for impact, times in item.traps.items() if impact.startswith(Impact.LOST)}


def all_are_followed_and_the_transactions_are_whole(found, report):
    sent = {Kind.DELAYED: 500, Kind.TIMER: 50, Kind.TRANSACTIONAL: 100, Kind.POP: 500}
    assert {kind: item.sent for kind, item in found.items()} == sent
    assert [found[kind].lost for kind in (Kind.DELAYED, Kind.TRANSACTIONAL)] == [0, 0]
    assert "V16" not in broken(report)


@pytest.mark.slow
def test_without_a_way_out_delayed_and_transactional_messages_are_not_lost(shut):
    all_are_followed_and_the_transactions_are_whole(*shut)


@pytest.mark.slow
def test_with_a_way_out_delayed_and_transactional_messages_are_not_lost(out):
    all_are_followed_and_the_transactions_are_whole(*out)


@pytest.mark.slow
def test_with_a_way_out_what_waits_comes_in_time_and_some_of_it_twice(out):
    found, report = out

    assert "V15" not in broken(report)
    assert found[Kind.TIMER].lost == 0
    assert max(found[kind].late_ms for kind in (Kind.DELAYED, Kind.TIMER)) < 1_500
    assert min(found[kind].twice for kind in (Kind.DELAYED, Kind.TIMER, Kind.TRANSACTIONAL)) > 0


@pytest.mark.trap("P21")
def test_without_a_way_out_timed_messages_are_given_up_and_delayed_ones_wait_for_the_master(shut):
    found, report = shut

    assert "V15" in broken(report)
    assert lost(found[Kind.TIMER]) == {Trap.P21.value: found[Kind.TIMER].lost}
    assert found[Kind.TIMER].lost > 10
    assert 80_000 < found[Kind.DELAYED].late_ms < (BACK_S - KILLED_S + 15) * 1_000


@pytest.mark.trap("P20")
@pytest.mark.trap("P21")
def test_without_a_way_out_popped_messages_are_lost_with_their_copies_or_with_their_check_points(shut):
    found, report = shut

    assert "V14" in broken(report)
    assert list(lost(found[Kind.POP])) == [Trap.P20.value, Trap.P21.value]
    assert min(lost(found[Kind.POP]).values()) > 0


@pytest.mark.slow
@pytest.mark.trap("P22")
def test_with_a_way_out_acknowledged_messages_are_revived_since_their_records_part(out):
    found, _ = out

    assert found[Kind.POP].traps[f"{Impact.TWICE}: {Trap.P22}"] > 0
    assert found[Kind.POP].lost < 10
