"""Random scenarios are sound, and each oracle of the fuzzer notices a planted bug."""

import tomllib
from pathlib import Path

import pytest

from emulator.cluster.effects.links import LinksEffect
from emulator.cluster.effects.processes import KillEffect
from emulator.cluster.operator import Operator
from emulator.network.dial import Dial
from emulator.network.fabric import Fabric
from emulator.time.mode import TimeMode
from emulator.trace.recorder import Recorder
from emulator.trace.segments import SegmentWriter
from faults.catalogue import CHAOS_NAMES, FAULTS
from faults.plan import Phase
from fuzz import judged_run
from fuzz.again import digests_again
from fuzz.judged_run import judge
from fuzz.random_scenario import KINDS, random_tables, scenario_of
from fuzz.scenarios import Total, _differences, _execute, _Task
from nodes.client.producer.steady_producer import SteadyProducer
from nodes.protocol.codes import RequestCode
from nodes.rpc.client import _ClientHandler
from nodes.rpc.server import RpcServer

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.toml"))
SEEDS = range(100, 108)
SMALL = {
    "scenario": {"name": "small", "run_for_ms": 20_000},
    "nameserver": [{"name": "ns-1"}],
    "broker": [{"name": "ba"}],
    "topic": [{"name": "orders", "brokers": ["ba"], "queues": 2}],
    "consumer": [{"group": "g", "names": ["c1"], "topics": ["orders"]}],
    "producer": [{"name": "p1", "group": "pg", "topic": "orders", "rate_per_s": 2}],
    "fault": [
        {"kind": "cut", "id": "cut", "from": "c1", "to": "ns-1", "at_ms": 9_000, "for_ms": 10},
        {"kind": "kill", "id": "kill", "node": "p1", "at_ms": 19_000},
    ],
}


def kinds(tables=SMALL):
    return {problem.kind for problem in judge(scenario_of(tables)).problems}


def reported(kind, tables=SMALL):
    return [problem.text for problem in judge(scenario_of(tables)).problems if problem.kind == kind]


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 102 else ()) for seed in SEEDS])
def test_a_random_scenario_is_sound(seed):
    assert judge(scenario_of(random_tables(seed))).problems == ()


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_once_failed_is_sound(path):
    assert judge(scenario_of(tomllib.loads(path.read_text(encoding="utf-8")))).problems == ()


@pytest.fixture(scope="module")
def many():
    """What is drawn from many seeds."""
    return [random_tables(seed) for seed in range(200)]


def test_all_kinds_of_faults_and_both_transports_are_drawn(many):
    faults = [fault["kind"] for drawn in many for fault in drawn["fault"]]
    assert set(KINDS) == set(FAULTS)
    assert set(FAULTS) <= set(faults)
    assert set(faults) & set(CHAOS_NAMES)
    assert any("nemesis" in drawn for drawn in many)
    assert random_tables(7) == random_tables(7) != random_tables(8)
    acts = [act["do"].split()[0] for drawn in many for act in drawn.get("admin", ())]
    assert {"update-address-server", "update-domain", "shutdown-node", "start-node", "wipe-write-perm"} == set(acts)


def test_assigners_pods_and_single_owners_are_drawn(many):
    options = [table.get("options", {}) for tables in many for table in tables["consumer"]]
    strategies = {option.get("allocateMessageQueueStrategy") for option in options if option.get("pinnedAssigner")}

    assert strategies >= {"AVG", "STICKY", "PR2169", "CONSISTENT_HASH", "KAFKA_ROUND_ROBIN"}
    assert {option.get("revokeBeforeAssign") for option in options} >= {True, False}
    assert {option.get("exclusivity") for option in options} >= {"single_active", "lease"}
    assert any(option.get("allocateMessageQueueStrategy") == "ORDINAL" for option in options)
    assert {"scaler" in spec for tables in many for spec in tables["statefulset"]} == {True, False}
    assert {tables["scenario"]["preset"] for tables in many} == {"classic", "rip32", "assigner"}


def test_hash_seed_and_transport_change_no_digest():
    seeds = (10, 11)
    digests = {seed: judge(scenario_of(random_tables(seed))).digest for seed in seeds}
    assert digests_again(seeds) == digests
    assert judge(scenario_of(random_tables(10)), TimeMode.FAST).digest == digests[10]
    wrong = dict.fromkeys(digests, "0" * 32)
    found = list(_differences(_Task(seeds, seeds, Path("nowhere")), wrong))
    assert [(seed, problem.kind) for seed, problem in found] == [
        (10, "other digest"), (10, "other digest in fast"), (11, "other digest"),
    ]  # fmt: skip


def test_the_scenario_of_the_planted_bugs_is_sound():
    assert judge(scenario_of(SMALL)).problems == ()


# --- planted bugs, one or more for each oracle -----------------------------------


def nth(matches, number, otherwise, instead):
    """A method that does something else the `number`-th time that its arguments match."""
    seen = 0

    def method(self, *arguments, **named):
        nonlocal seen
        if matches(*arguments):
            seen += 1
            if seen == number:
                return instead(self, *arguments, **named)
        return otherwise(self, *arguments, **named)

    return method


def of_messages(batch, *_):
    return batch.table.name == "messages"


def nothing(*_arguments, **_named):
    return None


def test_a_crash_is_noticed(monkeypatch):
    async def main(_self):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(SteadyProducer, "main", main)
    (text,) = reported("crash")
    assert text.startswith("p1: ZeroDivisionError: planted")


def test_a_run_without_end_is_noticed(monkeypatch):
    async def do(self, *_):
        while True:
            await self._world.sleep_until_ns(self._world.timeline.now_ns + 1_000_000)

    monkeypatch.setattr(Operator, "do", do)
    monkeypatch.setattr(judged_run, "STUCK_AFTER_S", 1)
    assert kinds() == {"stuck"}


def test_any_other_exception_is_noticed(monkeypatch):
    monkeypatch.setattr(Operator, "do", lambda *_: 1 / 0)
    assert kinds() == {"exception"}


def test_an_answer_with_an_error_of_our_code_is_noticed(monkeypatch):
    def broken(*_):
        raise KeyError("planted")

    serve = RpcServer.serve

    def serving(self, *tables, code=RequestCode.SEND_MESSAGE_V2):
        serve(self, *({**table, **({code: broken} if code in table else {})} for table in tables))

    monkeypatch.setattr(RpcServer, "serve", serving)
    assert reported("incomplete")[0].startswith("ba answered 310 with an error of its code: KeyError")


def test_a_row_that_is_never_written_is_noticed(monkeypatch):
    def forgets(self, *_fields, **_named):
        self._seq += 1
        return self._seq

    monkeypatch.setattr(
        Recorder, "_append", nth(lambda table, *_: table.name == "messages", 5, Recorder._append, forgets)
    )
    assert "seq has gaps" in reported("lost row")[0]


def test_a_batch_that_is_never_written_is_noticed(monkeypatch):
    monkeypatch.setattr(SegmentWriter, "write", nth(of_messages, 1, SegmentWriter.write, nothing))
    assert "the manifest counts" in reported("lost row")[0]


def a_frame(code, is_response):
    def matches(_ends, command):
        return (
            command is not None and command.is_response == is_response and code in (command.code, command.request_code)
        )

    return matches


@pytest.mark.parametrize("is_response", [False, True])
def test_a_frame_that_vanishes_without_a_row_is_noticed(monkeypatch, is_response):
    matches = a_frame(RequestCode.GET_CONSUMER_LIST_BY_GROUP, is_response)
    monkeypatch.setattr(Fabric, "send_each", nth(matches, 1, Fabric.send_each, nothing))
    assert kinds() >= {"lost frame", "invented timeout"}


@pytest.mark.parametrize("is_response", [False, True])
def test_a_frame_that_is_slow_without_a_fault_is_noticed(monkeypatch, is_response):
    def slow(self, ends, command):
        for end in ends:
            self.hub.post(end, command, self.timeline.now_ns, end.link.delay_ns + 5_000_000_000)

    matches = a_frame(RequestCode.GET_CONSUMER_LIST_BY_GROUP, is_response)
    monkeypatch.setattr(Fabric, "send_each", nth(matches, 1, Fabric.send_each, slow))
    assert "took long on a link without fault" in reported("invented timeout")[0]


def test_a_connection_that_is_never_answered_without_a_fault_is_noticed(monkeypatch):
    monkeypatch.setattr(Dial, "_send_syn", nothing)
    lines = reported("invented timeout", {**SMALL, "fault": [], "consumer": [], "producer": []})
    assert lines
    assert all("no connection was opened, and nothing disturbed its ends" in line for line in lines)


def test_a_request_that_is_never_answered_is_noticed(monkeypatch):
    def matches(_channel, command):
        return command.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP

    monkeypatch.setattr(RpcServer, "on_command", nth(matches, 1, RpcServer.on_command, nothing))
    assert "there is no answer, and nothing kept ba from it" in reported("invented timeout")[0]


def test_an_answer_that_its_caller_ignores_is_noticed(monkeypatch):
    def matches(_channel, command):
        return command.is_response and command.request_code == RequestCode.GET_CONSUMER_LIST_BY_GROUP

    monkeypatch.setattr(_ClientHandler, "on_command", nth(matches, 1, _ClientHandler.on_command, nothing))
    assert "its answer arrived before" in reported("invented timeout")[0]


def test_a_frame_that_a_fault_of_another_link_takes_is_noticed(monkeypatch):
    def drops(self, ends, command):
        for end in ends:
            self.recorder.frame("dropped", end, command, self.timeline.now_ns, "cut")

    matches = a_frame(RequestCode.GET_CONSUMER_LIST_BY_GROUP, False)
    monkeypatch.setattr(Fabric, "send_each", nth(matches, 1, Fabric.send_each, drops))
    assert "dropped by cut, which was not active on this link" in reported("invented timeout")[0]


async def _leave(*_):
    """Do not end the fault."""


def test_a_rule_that_stays_on_the_links_is_noticed(monkeypatch):
    monkeypatch.setattr(LinksEffect, "end", _leave)
    assert "the rule of cut is left on the links" in reported("leftover fault")


def test_a_node_that_stays_down_is_noticed(monkeypatch):
    monkeypatch.setattr(KillEffect, "let_run", _leave)
    assert "p1 does not run at the end: its last event is killed" in reported("leftover fault")


def test_a_fault_without_an_end_in_the_trace_is_noticed(monkeypatch):
    def matches(phase, *_):
        return phase is Phase.END

    monkeypatch.setattr(Operator, "_record", nth(matches, 1, Operator._record, nothing))
    assert "cut began 1 times and ended 0 times" in reported("leftover fault")


@pytest.mark.slow
def test_a_failure_is_retained_as_a_smaller_scenario(monkeypatch, tmp_path):
    monkeypatch.setattr(LinksEffect, "end", _leave)
    seed = next(seed for seed in range(50) if {fault["kind"] for fault in random_tables(seed)["fault"]} >= {"cut"})
    total, lines = _execute(_Task((seed,), (), tmp_path))
    path = tmp_path / f"leftover_fault-{seed}.toml"
    retained = tomllib.loads(path.read_text(encoding="utf-8"))

    # A link that stays cut may have connections time out, too.
    assert total.failures["leftover fault"] == 1
    assert any(str(path) in line for line in lines)
    assert len(retained["fault"]) == 1
    assert len(str(retained)) < len(str(random_tables(seed))) / 2
    assert "  1 x leftover fault" in list(total.lines())


def test_totals_add_up():
    total = Total(runs=1, rows=5, cpu_s=60.0)
    total.add(Total(runs=2, rows=6, emulated_s=7_200.0))
    assert list(total.lines()) == [
        "3 runs, 0 of them twice: 11 rows, 2.0 emulated hours, 1.0 CPU minutes",
        "  no failure",
    ]
