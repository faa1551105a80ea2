"""What happened to users of controller mode: each incident is reported in RocketMQ's words, and its fix silences that.

The scenarios are examples; a fix is another option, another preset, or another instant.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from emulator.analysis.inputs.offsets import OffsetFault
from emulator.analysis.inputs.services import Servers
from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import RulesVerdict
from emulator.run import run_scenario
from emulator.spec import load, loads
from emulator.testing.trace import Trace
from emulator.trace.run_directory import open_run
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet
from nodes.broker.tables.store.readable_end import ReadableEnd
from nodes.protocol.widths import INT64_MAX
from support.findings import offset_anomalies_of

README = Path(__file__).parents[2] / "examples" / "README.md"
EXAMPLES = README.parent / "controller" / "incidents"
STRICT = ('preset = "controller"', 'preset = "controller_strict"')
FEW = ("rate_per_s = 10", "rate_per_s = 2")
"""Messages, where it is counted how long nobody serves and not what is lost."""


class Executed:
    """A run of an example, with some of its text replaced, its trace and what the oracles found."""

    def __init__(self, folder, name, *changes):
        path = EXAMPLES / f"{name}.toml"
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, (old, text.count(old))
            text = text.replace(old, new)
        self.trace = Trace()
        scenario = loads(text, str(path)) if changes else load(path)
        self.path = run_scenario(scenario, runs=folder, listeners=(self.trace.note,)).path
        self.report = judge_run(open_run(self.path))

    @property
    def broken(self):
        return set(broken(self.report))

    @property
    def lost(self):
        """Mapping reason -> messages that are lost."""
        reported = Counter()
        for row in self.report["losses"]:
            reported.update({name: getattr(row, name) for name in ("cut", "reused", "overwritten", "skipped")})
        return +reported

    def lasted_s(self, servers):
        """For how long two members served as masters, or no one."""
        rows = [row for row in self.report["special_services"] if row.servers is servers]
        return sum(row.end_ns - row.start_ns for row in rows) / 10**9

    def fell(self, subject):
        """How many offsets the offsets of the group fell, and whether that is a violation."""
        rows = [row for row in offset_anomalies_of(self.report) if row.what is subject]
        return sum(row.expected - row.offset for row in rows), any(row.violation for row in rows)


@pytest.fixture(scope="module")
def execute(tmp_path_factory):
    """Runs an example, with some of its text replaced, each once."""
    known = {}

    def executed(name, *changes):
        if (name, changes) not in known:
            known[name, changes] = Executed(tmp_path_factory.mktemp(name), name, *changes)
        return known[name, changes]

    return executed


@pytest.fixture
def execute_again(tmp_path):
    """Runs an example as it is, with a bug that was planted."""
    return lambda name: Executed(tmp_path, name)


def test_7017_two_masters_while_a_site_is_cut_off_and_what_its_producer_sent_is_lost(execute):
    sick = execute("site_cut_off")
    assert sick.broken == {"V7", "V10"}
    assert 50 < sick.lasted_s(Servers.TWO) < 55
    assert sick.lost.keys() == {"cut"}
    assert 600 < sick.lost["cut"] < 700  # 10 a second, until a probe finds the leader again


IN_SYNC_REPLICAS = ("replicas = 3", "replicas = 3\noptions = { inSyncReplicas = 2 }")


@pytest.mark.parametrize("fix", [STRICT, pytest.param(IN_SYNC_REPLICAS, marks=pytest.mark.slow)])
def test_7017_nothing_that_was_acknowledged_is_lost_where_a_master_needs_its_slaves(execute, fix):
    assert execute("site_cut_off", fix).broken == {"V10"}


@pytest.mark.slow
@pytest.mark.trap("K37")
def test_7017_min_in_sync_replicas_alone_does_not_help_as_the_master_counts_members_that_it_lost(execute):
    sick = execute("site_cut_off", ("replicas = 3", "replicas = 3\noptions = { minInSyncReplicas = 2 }"))
    assert sick.broken == {"V7", "V10"}
    assert sick.lost["cut"] > 550


def test_4800_a_master_that_cannot_reach_the_leader_is_replaced_although_it_serves_its_clients(execute):
    sick = execute("leader_out_of_reach")
    assert sick.broken == {"V4", "V7", "V10"}
    assert sick.lasted_s(Servers.TWO) > 60


@pytest.mark.slow
def test_4800_where_a_master_needs_its_slaves_there_are_two_and_nothing_is_lost(execute):
    assert execute("leader_out_of_reach", STRICT).broken == {"V10"}


def test_4800_with_a_time_out_that_is_longer_than_the_cut_the_master_stays(execute):
    options = "replicas = 3\noptions = { controllerHeartBeatTimeoutMills = 90_000 }"
    healthy = execute("leader_out_of_reach", ("replicas = 3", options), FEW)
    assert healthy.report.verdict is RulesVerdict.VALID
    assert healthy.report["special_services"] == ()


@pytest.mark.trap("K26")
def test_10812_a_slave_whose_heartbeats_miss_leader_cannot_replace_its_master(execute):
    sick = execute("heartbeats_miss_leader")
    assert sick.broken == {"V10"}
    assert sick.lasted_s(Servers.NONE) == 80
    assert sick.report["unwritable"][-1].censored
    answers = {(rate.request, rate.answer) for rate in sick.report["requests"]}
    assert ("CONTROLLER_ALTER_SYNC_STATE_SET", "CONTROLLER_BROKER_NOT_ALIVE") in answers

    healthy = execute("heartbeats_miss_leader", ("for_s = 120", "for_s = 30"), FEW)
    assert healthy.report.verdict is RulesVerdict.VALID
    assert healthy.lasted_s(Servers.NONE) < 0.1


def test_7790_a_broker_that_is_elected_before_it_has_copied_offsets_sends_the_group_back(execute):
    sick = execute("offsets_at_the_switch")
    fell, is_sick = sick.fell(OffsetFault.SWITCHED)
    assert sick.broken == {"V4", "V5"}
    assert is_sick
    assert fell > 250
    assert sum(row.duplicates for row in sick.report["duplicates"]) > 100


def test_7790_a_quarter_of_a_minute_later_the_offsets_are_there(execute):
    healthy = execute("offsets_at_the_switch", ('master of ba"\nat_s = 84', 'master of ba"\nat_s = 99'))
    fell, is_sick = healthy.fell(OffsetFault.SWITCHED)
    assert healthy.report.verdict is RulesVerdict.VALID
    assert fell > 0, "what was committed since the last copy"
    assert not is_sick
    assert sum(row.duplicates for row in healthy.report["duplicates"]) < 5


def test_4771_after_an_unclean_election_offsets_lie_beyond_the_log_and_new_messages_are_skipped(execute):
    sick = execute("unclean_election")
    assert sick.broken == {"V4", "V7"}
    assert sick.fell(OffsetFault.SWITCHED)[1]
    assert sick.lost["cut"] > 200
    assert sick.lost["reused"] > 100


def test_4771_a_clean_election_waits_for_the_old_master_and_nothing_is_lost(execute):
    waits = execute("unclean_election", ("enableElectUncleanMaster = true", "enableElectUncleanMaster = false"), FEW)
    assert waits.broken == {"V10"}
    assert 60 < waits.lasted_s(Servers.NONE) < 62
    (gap,) = waits.report["unwritable"]
    assert 60 < (gap.end_ns - gap.start_ns) / 10**9 < 62


@pytest.mark.trap("K27")
def test_5009_a_death_that_no_leader_heard_of_is_found_by_the_scan_or_never(execute):
    sick = execute("missed_death")
    assert sick.broken == {"V10"}
    assert sick.lasted_s(Servers.NONE) == 90
    assert sick.report["unwritable"][-1].censored

    healthy = execute("missed_death", ("3_600_000", "5_000"), FEW)
    assert healthy.report.verdict is RulesVerdict.VALID
    assert 5 < healthy.lasted_s(Servers.NONE) < 18


def test_6662_what_a_cut_off_master_with_a_slave_stores_no_one_reads(execute):
    healthy = execute("isolated_with_a_slave")
    assert healthy.report.verdict is RulesVerdict.VALID
    assert healthy.lasted_s(Servers.TWO) > 30
    assert healthy.lost == {}


@pytest.mark.slow
def test_6662_it_was_read_and_lost_when_members_without_a_connection_did_not_count(execute_again, monkeypatch):
    def of_those_connected(self, max_offset):
        acks = (link.ack_offset for link in self.links if link.slave_id in self.members and link.ack_offset > 0)
        return min((max_offset, *acks))

    monkeypatch.setattr(MasterSyncStateSet, "_computed_confirm_offset", of_those_connected)
    sick = execute_again("isolated_with_a_slave")
    assert "V7" in sick.broken
    assert sick.lost["reused"] > 0


def acknowledged_and_cut(executed):
    """Messages that are in no log any more, although their senders were answered SEND_OK."""
    given_up = {row["key"]: None for row in executed.trace.select("messages", event="unacknowledged")}
    return [row["key"] for row in executed.trace.select("messages", event="cut") if row["key"] not in given_up]


def test_5663_no_message_is_acknowledged_without_a_slave_that_the_controller_has_taken_in(execute):
    """What the old master stores is read meanwhile, as its own set has one member: that is open upstream, too."""
    executed = execute("answer_lost")
    assert executed.broken == {"V7"}
    assert executed.lost.keys() == {"reused"}
    assert acknowledged_and_cut(executed) == []


@pytest.mark.slow
def test_5663_it_was_when_the_old_set_counted_alone(execute_again, monkeypatch):
    monkeypatch.setattr(MasterSyncStateSet, "members", property(lambda self: self.local))
    assert acknowledged_and_cut(execute_again("answer_lost"))


def offsets_given_twice(executed):
    stored = [row for row in executed.trace.select("messages", event="stored", node="ba") if row["topic"] == "orders"]
    times = Counter((row["queue_id"], row["offset"]) for row in stored)
    return [place for place, count in times.items() if count > 1]


def test_7689_a_master_that_was_killed_with_the_leader_gives_no_offset_twice_and_shows_nothing_unconfirmed(execute):
    healthy = execute("killed_with_the_leader")
    assert healthy.report.verdict is RulesVerdict.VALID
    assert offsets_given_twice(healthy) == []
    assert healthy.trace.select("messages", event="cut", node="ba")


def test_7689_messages_were_lost_when_all_of_the_log_could_be_read_after_a_restart(execute_again, monkeypatch):
    monkeypatch.setattr(ReadableEnd, "offset", property(lambda _: INT64_MAX))
    assert execute_again("killed_with_the_leader").lost["reused"] > 0


NAMES = sorted(path.stem for path in EXAMPLES.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_incidents_quotes_what_a_run_says(execute, name):
    (row,) = (line for line in README.read_text().splitlines() if f"(controller/incidents/{name}.toml)" in line)
    quoted = re.findall("`([^`]+)`", row.split("|")[3])
    report = execute(name).report
    answer = report.reasons or (report.verdict.value,)
    assert [shortened(item) for item in answer] == quoted


def shortened(reason):
    """A reason without the title of its invariant."""
    return re.sub(r" is broken, [^:]+:", ":", reason)
