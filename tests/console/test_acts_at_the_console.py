"""Acts of administrators as verbs: what they print, what is refused, and that they can be done again."""

from pathlib import Path

import attrs
import pytest

import emulator
from emulator.acts.catalogue import ACT_VERBS
from emulator.console.prompt import completions
from emulator.console.verbs import VERBS
from emulator.run import run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.spec import load, loads
from emulator.testing import ConsoleUser, a_scenario, broker_groups, run_at_console
from emulator.trace.run_directory import open_run


def scenario(run_for_s: int = 60):
    brokers = broker_groups("broker-a", "broker-b")
    return attrs.evolve(
        a_scenario(consumers=2, nameservers=2, brokers=brokers, rate_per_s=5), run_for_ms=run_for_s * 1_000
    )


def test_every_act_is_a_verb():
    assert [verb for verb in ACT_VERBS if verb not in VERBS] == []


def test_an_act_prints_where_it_was_done(tmp_path: Path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(30_000)
        assert await me.say("update-topic orders queues 8 on broker-a") == (
            "update-topic-1: update-topic orders queues 8 on broker-a",
            "done at broker-a",
        )
        await me.say("cut administrator broker-b")
        line, result = await me.say("update-topic news")
        assert line == "update-topic-2: update-topic news queues 8"
        assert result.startswith("failed: ")
        assert result.endswith("done at broker-a")

    run_at_console(scenario(), tmp_path, sitting)


REFUSED = [
    ("update-topic", "expected: update-topic TOPIC [queues N]"),
    ("update-topic orders queues x", "queues: expected a whole number >= 1, not 'x'"),
    ("update-topic orders on broker-z", 'unknown broker or cluster "broker-z"'),
    ("delete-topic order", 'unknown topic "order"; did you mean "orders"?'),
    ("delete-sub-group nobody", 'unknown group "nobody"'),
    ("wipe-write-perm broker-z", 'unknown broker "broker-z"'),
    ("create-topic orders", "there is no verb create-topic; did you mean update-topic"),
    ("update-broker-config secretKey=abc", "update-broker-config: an act sets no secret"),
]


def test_an_act_that_cannot_be_is_refused_in_one_line_and_changes_nothing(tmp_path: Path):
    answers = {}

    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(20_000)
        for line, _ in REFUSED:
            answers[line] = await me.refused(line)

    path, trace = run_at_console(scenario(25), tmp_path, sitting)
    assert {line: answers[line] for line, why in REFUSED if not answers[line].startswith(why)} == {}
    assert [answer for answer in answers.values() if "\n" in answer] == []
    assert trace.select("admin") == []
    assert not (path / BY_HAND_FILE).exists()


def test_a_topic_that_a_broker_has_may_be_named_although_no_scenario_declares_it(tmp_path: Path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(30_000)
        await me.say("delete-topic %RETRY%g")

    path, _ = run_at_console(scenario(), tmp_path, sitting)
    text = (path / BY_HAND_FILE).read_text()
    assert '# Not repeated: 30.000 s: delete-topic %RETRY%g: unknown topic "%RETRY%g"' in text
    assert load(path / BY_HAND_FILE).acts == ()


def test_acts_and_faults_done_at_the_console_are_done_again_with_the_same_rows(tmp_path: Path):
    async def sitting(me: ConsoleUser) -> None:
        afternoon = {
            20: "update-topic orders queues 8",
            30: "cut administrator broker-b",
            31: "update-topic news on broker-a",
            40: "heal all",
            41: "update-sub-group g consumeEnable=false",
            50: "reset-offset-by-time g orders 10s",
            60: "send-message orders hello",
            61: "delete-topic news",
        }
        for at_s, line in afternoon.items():
            await me.at_ms(at_s * 1_000 + 137)  # at no instant of a timer
            await me.say(line)

    path, first = run_at_console(scenario(90), tmp_path, sitting)
    replay = load(path / BY_HAND_FILE)
    assert [timed.at_ms for timed in replay.acts] == [20_137, 31_137, 41_137, 50_137, 60_137, 61_137]

    async def no_node(_me: ConsoleUser) -> None: ...

    _, second = run_at_console(replay, tmp_path, no_node)
    assert first.select("admin")
    assert second.rows["admin"] == first.rows["admin"]
    digests = [run_scenario(replay, runs=tmp_path).manifest["digest"] for _ in range(2)]
    assert digests[0] == digests[1]
    assert open_run(path).manifest["digest"] == digests[0]


def test_the_prompt_offers_verbs_topics_and_places(tmp_path: Path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(5_000)
        assert "update-topic" in completions(me.session, "upd")
        assert completions(me.session, "update-topic o") == ("orders", "order", "on")
        assert completions(me.session, "update-topic orders on b") == ("broker-a", "broker-b")
        assert completions(me.session, "wipe-write-perm broker-a on n") == ("ns-1", "ns-2")

    run_at_console(scenario(10), tmp_path, sitting)


def test_an_act_is_a_method_of_notebooks(tmp_path: Path):
    with emulator.launch(scenario(), runs=tmp_path) as cluster:
        cluster.advance(30_000)
        first, done = cluster.update_topic("orders", "queues", 8).lines
        assert first == "update-topic-1: update-topic orders queues 8"
        assert done == "done at broker-a, broker-b"
        with pytest.raises(emulator.VerbError, match='unknown topic "order"'):
            cluster.delete_topic("order")


GROWING = """
[scenario]
name = "growing"
run_for_s = 200
[[nameserver]]
name = "ns-1"
[[nameserver]]
name = "ns-2"
added_later = true
[address_server]
nameservers = ["ns-1"]
[[domain]]
name = "nameservers.example"
nodes = ["ns-1"]
[[broker]]
name = "broker-a"
options = { fetchNamesrvAddrByAddressServer = true }
[[broker]]
name = "broker-b"
added_later = true
options = { namesrvAddr = "nameservers.example:9876", fetchNameSrvAddrByDnsLookup = true }
[[topic]]
name = "orders"
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
start_after_s = 45
"""


def test_a_cluster_that_grew_and_shrank_at_the_console_does_so_again_with_the_same_rows(tmp_path: Path):
    async def sitting(me: ConsoleUser) -> None:
        assert completions(me.session, "start-node broker-") == ("broker-a", "broker-b")
        assert completions(me.session, "update-domain n") == ("nameservers.example", "ns-1", "ns-2")
        afternoon = {
            50: "start-node broker-b",
            60: "update-topic orders queues 2 on broker-b",
            70: "start-node ns-2",
            71: "update-address-server ns-1 ns-2",
            72: "update-domain nameservers.example ns-1 ns-2",
            120: "wipe-write-perm broker-a",
            150: "shutdown-node broker-a",
        }
        for at_s, line in afternoon.items():
            await me.at_ms(at_s * 1_000 + 137)
            assert (await me.say(line))[-1].startswith("done at ")
        assert (await me.say("shutdown-node broker-a"))[-1] == "failed: broker-a has not been started; done at no node"

    path, _ = run_at_console(loads(GROWING, "growing.toml"), tmp_path, sitting)
    replay = load(path / BY_HAND_FILE)
    assert len(replay.acts) == 8
    assert open_run(path).manifest["digest"] == run_scenario(replay, runs=tmp_path).manifest["digest"]
