"""`emulator.testing`: what somebody needs who tests a scenario of their own."""

import subprocess
import sys
import textwrap

import attrs
import pytest

import emulator.testing
from emulator.testing import GROUP, TOPIC, a_scenario, execute
from faults.catalogue import fault_of
from faults.plan import Plan, TimedFault
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers import ConsumerGroupRequestHeader

KILL_AT_MS = 20_000


def with_fault(scenario, line, at_ms, for_ms=None):
    return attrs.evolve(scenario, faults=Plan((TimedFault("it", fault_of(line), at_ms, for_ms),)))


def test_the_example_in_the_docstring_is_a_test_that_passes():
    example = emulator.testing.__doc__.partition("\n    from ")[2].partition("\n`a_scenario`")[0]
    written = {}
    exec(textwrap.dedent("    from " + example), written)
    (test,) = [value for name, value in written.items() if name.startswith("test_")]

    test()


def test_every_name_of_the_kit_is_found_where_it_says():
    assert [name for name in emulator.testing.__all__ if not hasattr(emulator.testing, name)] == []
    with pytest.raises(AttributeError, match="no attribute 'pley'"):
        _ = emulator.testing.pley


def test_a_suite_that_has_the_plugin_and_uses_nothing_of_it_waits_for_nothing():
    heavy = (
        "[name for name in ('trio', 'attrs', 'emulator.cluster', 'emulator.spec', 'pyspark') if name in sys.modules]"
    )
    code = f"import sys, emulator.testing.plugin; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    # pytest itself imports attrs where it is installed for others; it takes no time worth saving.
    assert done.stdout.strip() in ("[]", "['attrs']")


def test_the_faults_of_a_scenario_come_at_their_times():
    trace = execute(with_fault(a_scenario(consumers=2), "kill c2", KILL_AT_MS), for_ms=25_000)

    assert [row.at_ms for row in trace.select("lifecycle", event="killed")] == [KILL_AT_MS]
    assert trace.end_ms == 25_000


def test_a_script_begins_and_ends_faults_in_words():
    async def script(stage):
        await stage.at_ms(KILL_AT_MS)
        delay = await stage.begin("delay 200 c1 broker-a")
        cut = await stage.begin("cut c1 ns-1")
        await stage.for_ms(5_000)
        await stage.end(delay)
        assert list(stage.operator.active) == [cut]

    trace = execute(a_scenario(consumers=1), script)

    faults = [(row.at_ms, row.event, row.kind) for row in trace.rows["faults"]]
    assert faults == [(KILL_AT_MS, "begin", "delay"), (KILL_AT_MS, "begin", "cut"), (25_000, "end", "delay")]


def test_a_script_waits_until_something_is_so_and_no_longer_than_it_says():
    async def script(stage):
        await stage.until(lambda: stage.trace.select("ownership", event="acquired") != [], 60_000, step_ms=10)
        owned_ms = stage.now_ms
        await stage.until(lambda: False, 700)
        seen.append((owned_ms, stage.now_ms - owned_ms))

    seen = []
    trace = execute(a_scenario(consumers=1), script)

    ((owned_ms, waited_ms),) = seen
    assert 0 <= owned_ms - trace.rows["ownership"][0].at_ms <= 10
    assert waited_ms == 700


def test_an_action_at_the_first_row_comes_before_what_its_node_does_next():
    async def script(stage):
        stage.at_first("ownership", lambda: seen.append(stage.now_ms), event="acquired", node="c2")
        await stage.at_ms(30_000)

    seen = []
    trace = execute(a_scenario(consumers=2), script)

    assert seen == [trace.select("ownership", event="acquired", node="c2")[0].at_ms]


def test_a_probe_asks_nodes_by_name():
    async def script(stage):
        await stage.at_ms(30_000)
        probe = await stage.probe()
        header = ConsumerGroupRequestHeader(GROUP)
        answers.append(await probe.ask("broker-a", RequestCode.GET_CONSUMER_LIST_BY_GROUP, header))

    answers = []
    trace = execute(a_scenario(consumers=2), script)

    assert answers[0].code == 0
    assert len(trace.select("rpc", src="probe", dst="broker-a", kind="request", event="delivered")) == 1


def test_a_node_whose_code_fails_in_an_answer_fails_the_run(monkeypatch):
    def client_ids(_table, group):
        raise ValueError(f"no idea of {group}")

    async def script(stage):
        await stage.at_ms(KILL_AT_MS)
        monkeypatch.setattr(type(stage.node("broker-a").tables.clients.consumers), "client_ids", client_ids)
        await stage.for_ms(60_000)

    with pytest.raises(AssertionError, match=r"broker-a: .*ValueError: no idea of g"):
        execute(a_scenario(consumers=1), script)


@pytest.mark.parametrize(
    ("table", "wanted", "problem"),
    [
        ("messges", {}, "there is no table 'messges'; there are "),
        ("messages", {"quene_id": 0}, "messages has no column 'quene_id'; it has "),
    ],
)
def test_a_question_for_what_no_trace_has_is_refused(table, wanted, problem):
    trace = execute(a_scenario(), for_ms=1_000)

    with pytest.raises(ValueError, match=problem):
        trace.select(table, **wanted)


def test_owners_are_those_of_an_instant():
    trace = execute(with_fault(a_scenario(consumers=1), "kill c1", KILL_AT_MS), for_ms=25_000)

    assert list(trace.owners(KILL_AT_MS - 1).values()) == [["c1"]] * 4
    assert list(trace.owners().values()) == [[]] * 4
    assert trace.owners(topic="another") == {}
    assert trace.select("ownership", topic=TOPIC, node="c1", event="acquired")[0].at_s < KILL_AT_MS / 1_000
