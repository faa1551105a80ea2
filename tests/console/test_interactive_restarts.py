"""`restart ... with {...}` and `upgrade` at the console: what is said, what is refused, and that it is saved."""

import attrs
import pytest
import trio

from emulator.run.run import BY_HAND_FILE
from emulator.spec import load
from emulator.testing import ConsoleUser, Trace, a_scenario, run_at_console


def scenario(run_for_s=60, **given):
    return attrs.evolve(
        a_scenario(consumers=2, brokers=("broker-a", "broker-b"), **given), run_for_ms=run_for_s * 1_000
    )


def configured(trace: Trace) -> list[tuple[str, int, str]]:
    return [(row.node, row.incarnation, row.detail) for row in trace.select("lifecycle", event="configured")]


def test_a_restart_is_over_when_it_is_said_and_is_saved_with_its_options(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        answer = await me.say("restart broker-a with {slaveReadEnable = true}")
        assert answer == ("restarted broker-a with slaveReadEnable = true",)
        assert await me.say("faults") == ("no fault is active",)
        await me.at_ms(20_000)
        answer = await me.say("upgrade members of g with {pullBatchSize = 16} one every 5s")
        assert answer == ("upgrade-1: upgrade c1, c2 with {pullBatchSize = 16}, one every 5000 ms, by name",)
        await me.at_ms(40_000)

    path, trace = run_at_console(scenario(), tmp_path, sitting)

    lines = [
        ("broker-a", 2, "slaveReadEnable = true"),
        ("c1", 2, "pullBatchSize = 16"),
        ("c2", 2, "pullBatchSize = 16"),
    ]
    assert configured(trace) == lines
    again = load(path / BY_HAND_FILE)

    async def nothing(_me: ConsoleUser) -> None:
        """The saved faults do it all."""

    assert configured(run_at_console(again, tmp_path, nothing)[1]) == lines


def test_a_plain_restart_is_what_it_always_was(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        assert await me.say("restart c1") == ("restarted c1",)

    _, trace = run_at_console(scenario(), tmp_path, sitting)
    assert [(row.event, row.kind) for row in trace.select("faults")] == [("begin", "restart"), ("end", "restart")]
    assert configured(trace) == []


REFUSED = [
    (
        "restart broker-a with {slaveReedEnable = true}",
        'slaveReedEnable: unknown option; did you mean "slaveReadEnable"?',
    ),
    ("restart c1 with {pullBatchSize = 0}", "pullBatchSize: expected a whole number from 1 to 1024, not 0"),
    (
        "restart c1 with {release = 4.9}",
        "release: expected none: only nameservers, brokers and proxies of another release",
    ),
    ("restart broker-a with {listenPort = 1}", "listenPort: expected another option: a node keeps its port"),
    (
        "restart c1 with {allocateMessageQueueStrategy = nowhere:at_all}",
        "allocateMessageQueueStrategy: ",
    ),
    ("restart c9 with {pullBatchSize = 1}", "there is no node c9"),
    ("restart c1 with {pullBatchSize = 1", "expected: restart NODES [with {OPTION = VALUE, ...}]"),
    ("upgrade brokers with {slaveReadEnable = true} slaves first", "expected: upgrade NODES"),
    ("upgrade brokers one every 5s, youngest first", "expected one of slaves first, masters first, by name"),
]


def test_what_cannot_be_is_refused_in_one_line_and_changes_nothing(tmp_path):
    answers = {}

    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        for line, _ in REFUSED:
            answers[line] = await me.refused(line)

    _, trace = run_at_console(scenario(), tmp_path, sitting)
    assert {line: answers[line] for line, why in REFUSED if not answers[line].startswith(why)} == {}
    assert [answer for answer in answers.values() if "\n" in answer] == []
    assert trace.select("faults") == []
    assert configured(trace) == []


def test_a_restart_of_what_does_not_run_is_refused(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(10_000)
        await me.say("kill broker-a")
        reported = await me.refused("restart broker-a with {slaveReadEnable = true}")
        assert reported == "broker-a is down: there is nothing to restart"

    run_at_console(scenario(), tmp_path, sitting)


@pytest.mark.parametrize("line", ["stop c1", "restart c1"])
def test_a_fault_may_be_healed_by_another_terminal_before_it_has_begun_in_full(tmp_path, line):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(20_000)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(me.say, line)
            await me.at_ms(20_001)  # c1 shuts down now, which takes a while
            assert await me.say("heal all") == ("healed restart-1: restart c1",)
        assert await me.say("faults") == ("no fault is active",)
        await me.at_ms(40_000)

    path, trace = run_at_console(scenario(), tmp_path, sitting)
    assert [(row.event, row.kind) for row in trace.select("faults")] == [("begin", "restart"), ("end", "restart")]
    (saved,) = load(path / BY_HAND_FILE).faults.faults
    assert saved.for_ms is not None
