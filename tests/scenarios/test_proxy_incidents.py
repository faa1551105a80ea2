"""What happened to users of proxies: each incident is reported in RocketMQ's words, and its fix silences that."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.analysis.oracles.transactions import TRANSACTIONS
from emulator.analysis.report import Report, Service, symptoms
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.testing.trace import Trace
from emulator.trace.run_directory import open_run

EXAMPLES = Path(__file__).parents[2] / "examples" / "proxies"
README = EXAMPLES.parent / "README.md"
POPPED_AGAIN = "popped messages consumed again"
LATE = "late messages"
NOT_STARTED = "failed starts"


@attrs.frozen
class Judged:
    """A run of an example, its trace, and what was found."""

    trace: Trace
    report: Report

    @property
    def kinds(self) -> list[str]:
        """Kinds of its symptoms, the most severe first."""
        return list(dict.fromkeys(symptom.kind.value for symptom in symptoms(self.report)))

    def start_failure(self, node: str) -> str:
        """Why a node could not start; empty: it could."""
        found = [row.detail for row in self.trace.select("lifecycle", node=node, event="stopping")]
        return found[0] if found and found[0].startswith("start failed") else ""


Executes = Callable[..., Judged]


@pytest.fixture
def execute(tmp_path: Path) -> Executes:
    """Runs an example, with some of its text replaced."""

    def executed(name: str, *changes: tuple[str, str]) -> Judged:
        path = EXAMPLES / f"{name}.toml"
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, (old, text.count(old))
            text = text.replace(old, new)
        trace = Trace()
        run = run_scenario(loads(text, str(path)), runs=tmp_path / name / str(len(changes)), listeners=(trace.note,))
        return Judged(trace, judge_run(open_run(run.path)))

    return executed


def is_quoted(report: Report, text: str) -> bool:
    """Whether a text is in a symptom, and in the page of the examples."""
    return any(text in symptom.text for symptom in symptoms(report)) and text in README.read_text()


def test_the_death_of_one_of_two_proxies_is_nothing_that_users_notice(execute: Executes) -> None:
    calm = execute("dead_proxy", ("run_for_s = 180", "run_for_s = 110"))
    assert (broken(calm.report), calm.report.service) == ((), Service.CALM)
    members = calm.trace.select("beliefs", node="proxy-2", kind="proxy_members", subject="billing")
    before, after = ([row.held for row in members if row.at_s < at_s][-1] for at_s in (60, 70))
    assert list(before) == list(after)
    first, second = sorted(set(before.values()))
    assert set(after.values()) == {second, f"{first};{second}"}, "the client that has moved is listed twice"


def test_7837_handles_are_never_renewed_and_5_4_0_renews_them(execute: Executes) -> None:
    sick = execute("never_renewed")
    assert sick.kinds[0] == POPPED_AGAIN
    assert is_quoted(sick.report, "brokers revived 60 popped messages of billing 174 times although a listener")
    well = execute("never_renewed", ('name = "proxy-1"', 'name = "proxy-1"\noptions = { release = "5.4.0" }'))
    assert POPPED_AGAIN not in well.kinds


def test_7026_acknowledgements_for_a_dead_master_reach_a_nameserver_and_an_elected_master_takes_them(
    execute: Executes,
) -> None:
    sick = execute("acknowledged_nowhere")
    assert set(broken(sick.report)) == {"V4", "V14"}
    assert is_quoted(sick.report, "billing consumed 1,841 messages again")
    elected = execute(
        "acknowledged_nowhere",
        ("run_for_s = 150", 'run_for_s = 55\npreset = "controller"'),
        ("for_s = 100", "for_s = 20"),
        ("rate_per_s = 10", "rate_per_s = 30"),
    )
    # What it had acknowledged in its last moment is cut when the old master returns.
    assert broken(elected.report) == ("V4", "V7")
    assert sum(row.cut for row in elected.report["losses"]) == sum(row.lost for row in elected.report["losses"]) == 3


def test_a_slave_that_acts_for_its_master_takes_acknowledgements_only_with_another_broker_group(
    execute: Executes,
) -> None:
    acting = (
        ("run_for_s = 150", 'run_for_s = 65\nbroker_start_spread_s = 3\npreset = "rip32"'),
        ("rate_per_s = 10", "rate_per_s = 3"),
    )
    alone = execute("acknowledged_nowhere", *acting)
    assert set(broken(alone.report)) == {"V4", "V14"}
    assert alone.kinds[0] == "request storm"
    second = ("[[proxy]]", '[[broker]]\nname = "broker-b"\nreplicas = 2\n\n[[proxy]]')
    assert "V14" not in broken(execute("acknowledged_nowhere", *acting, second).report)


def test_1137_a_client_that_reports_its_settings_in_five_minutes_receives_nothing_until_then(execute: Executes) -> None:
    sick = execute("settings_too_late")
    assert sick.kinds == [LATE, "consumer lag", "stalled queues"]
    assert broken(sick.report) == ("V8",), "the proxy answers with a NullPointerException for four minutes"
    assert is_quoted(sick.report, "a message of orders, stored at 66.2 s, took 235.3 s to billing")
    well = execute(
        "settings_too_late", ("renewsStream = false", "renewsStream = true"), ("run_for_s = 420", "run_for_s = 120")
    )
    assert well.report.service is Service.CALM


def test_9595_a_client_cannot_start_while_the_type_of_its_topic_is_unknown(execute: Executes) -> None:
    sick = execute("no_type", ("run_for_s = 240", "run_for_s = 150"))
    assert sick.start_failure("late-1") == "start failed: [20000] Message type is not specified"
    assert sick.start_failure("late-1") in README.read_text()
    assert NOT_STARTED in sick.kinds
    well = execute("no_type", ("start_after_s = 130", "start_after_s = 150"), ("run_for_s = 240", "run_for_s = 170"))
    assert (well.start_failure("late-1"), NOT_STARTED in well.kinds) == ("", False)


def test_10278_what_a_dead_proxy_has_renewed_no_other_one_can_acknowledge(execute: Executes) -> None:
    sick = execute("foreign_handles")
    assert sick.kinds[0] == POPPED_AGAIN
    assert is_quoted(sick.report, "brokers revived 70 popped messages of billing 70 times although a listener")
    # Only the proxy that dies holds handles of the messages that its client is working on.
    held = {node: sick.trace.select("beliefs", node=node, kind="receipt_handles") for node in ("proxy-1", "proxy-2")}
    before = {node: [row.held for row in rows if row.at_s < 120] for node, rows in held.items()}
    assert before["proxy-1"][-1] >= 70
    assert not before["proxy-2"]
    assert [row.held for row in held["proxy-2"]][-1] == 0
    well = execute("foreign_handles", ("consume_ms = 100_000", "consume_ms = 40_000"))
    assert POPPED_AGAIN not in well.kinds


def test_818_a_client_that_tries_one_proxy_of_two_cannot_start_when_that_one_is_dead(execute: Executes) -> None:
    few = (("rate_per_s = 10", "rate_per_s = 2"), ("run_for_s = 120", "run_for_s = 60"))
    sick = execute("one_of_two_endpoints", *few)
    assert sick.start_failure("billing-1") == "start failed: io exception"
    assert sick.start_failure("billing-1") in README.read_text()
    assert {NOT_STARTED, "consumer lag"} <= set(sick.kinds), "its messages wait"
    well = execute("one_of_two_endpoints", ("triesAllEndpoints = false", "triesAllEndpoints = true"), *few)
    assert (well.start_failure("billing-1"), NOT_STARTED in well.kinds) == ("", False)


def test_8313_a_commit_behind_a_proxy_counts_after_the_first_check(execute: Executes) -> None:
    sick = execute("late_commit")
    (late,) = sick.report.of(TRANSACTIONS.table)
    assert (late.committed, round(late.late_ns / 1e9, 1)) == (60, 36.3)
    assert "committed up to `36.3 s` after" in README.read_text()
    well = execute("late_commit", ('options = { namesrvAddr = "proxy-1" }\n', ""))
    (early,) = well.report.of(TRANSACTIONS.table)
    assert (early.committed, early.late_ns) == (60, 2_000_000)
