"""Controllers as their callers see them, in virtual time."""

import json

import pytest

from controller.controller_world import CLUSTER, HEARTBEAT_MS, NAME, TIMEOUT_MS, executed, traced
from nodes.dledger.member import HEARTBEAT_MS as LEADER_HEARTBEAT_MS
from nodes.dledger.member import ROUND_MS, SILENCE_MS, VOTE_WAIT_MS, MemberRole
from nodes.protocol import headers_controller as headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.codes import ResponseCode as Code
from nodes.protocol.command import Command


def test_one_controller_of_three_serves_and_the_others_refuse():
    async def script(group):
        at_ms = await group.until(lambda: group.leader_id)
        await group.registered()
        codes = {self_id: (await group.replica_info(to=self_id))[0] for self_id in group.hosts}
        known = [await group.metadata(self_id) for self_id in group.hosts]
        assert {(item.group, item.peers) for item in known} == {
            ("controllers", "n0:127.1.1.10:9877;n1:127.1.1.11:9877;n2:127.1.1.12:9877;")
        }
        return at_ms, group.leader_id, codes, [item.controller_leader_id for item in known]

    at_ms, leader, codes, known = executed(script)

    assert at_ms < 3_000
    assert codes == {
        item: Code.SUCCESS if item == leader else Code.CONTROLLER_NOT_LEADER for item in ("n0", "n1", "n2")
    }
    assert known == [leader] * 3


@pytest.mark.trap("M72")
def test_a_master_whose_connection_closes_is_replaced_at_once_and_all_live_members_hear_it():
    async def script(group):
        await group.registered()
        await group.broker_hosts[1].kill()
        began = await group.until(lambda: True)
        elected = await group.until(lambda: group.sync.master_id == 2)
        await group.sleep(100)
        return elected - began, group.sync.master_epoch, [item[1:] for item in group.beaters[2].heard]

    took_ms, epoch, heard = executed(script, controllers=1)

    assert took_ms < 100
    assert epoch == 2
    assert heard[-1] == (2, 2)


def test_a_frozen_master_is_replaced_at_a_scan_after_its_time_out():
    async def script(group):
        await group.registered()
        await group.broker_hosts[1].suspend()
        began = await group.until(lambda: True)
        return await group.until(lambda: group.sync.master_id == 2) - began

    assert TIMEOUT_MS - HEARTBEAT_MS < executed(script) < TIMEOUT_MS + 5_100


@pytest.mark.trap("K1")
@pytest.mark.trap("M70")
def test_when_all_brokers_are_silent_the_epoch_rises_by_the_number_of_attempts():
    async def script(group):
        await group.registered()
        for host in group.broker_hosts.values():
            await host.suspend()
        await group.until(lambda: group.sync.master_epoch == 4)
        await group.sleep(10_000)
        return group.sync.master_id, group.sync.master_epoch, group.sync.sync_state_set

    assert executed(script) == (None, 4, (1, 2))


@pytest.mark.trap("K47", status="simplified", note="that it notifies them before it answers who asked is not shown")
def test_only_live_members_hear_of_a_new_master():
    async def script(group):
        await group.registered()
        await group.broker_hosts[1].suspend()
        await group.broker_hosts[3].suspend()
        await group.until(lambda: group.sync.master_id == 2)
        await group.broker_hosts[3].resume()
        await group.sleep(2_000)
        return [[heard[1:] for heard in group.beaters[member].heard] for member in (2, 3)]

    assert executed(script, brokers=3) == [[(1, 1), (2, 2)], [(1, 1)]]


@pytest.mark.trap("K5")
def test_that_the_master_still_exists_is_reported_to_no_one_but_who_asked():
    async def script(group):
        await group.registered()
        heard = [list(beater.heard) for beater in group.beaters.values()]
        code = (await group.elect(2))[0]
        await group.sleep(1_000)
        return code, heard == [beater.heard for beater in group.beaters.values()]

    assert executed(script) == (Code.CONTROLLER_MASTER_STILL_EXIST, True)


def test_no_one_is_notified_if_an_option_says_so():
    async def script(group):
        await group.registered()
        return group.beaters[1].heard

    assert executed(script, controllers=1, notify_broker_role_changed=False) == []


# Without a leader


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_when_the_leader_dies_another_one_serves_after_six_to_ten_seconds(seed):
    async def script(group):
        await group.registered()
        await group.sleep(seed * 700)
        dead = group.leader_id
        await group.hosts[dead].kill()
        began = await group.until(lambda: True)
        took_ms = await group.until(lambda: group.leader_id) - began
        return took_ms, group.sync.master_id, group.sync.master_epoch

    took_ms, master, epoch = executed(script, seed=seed)

    # A round in the term of the dead leader, in which no one can win, and a pause before the one that somebody wins.
    soonest_ms, latest_ms = (sum(bounds) for bounds in zip(ROUND_MS, VOTE_WAIT_MS, strict=True))
    assert SILENCE_MS - LEADER_HEARTBEAT_MS + soonest_ms <= took_ms <= SILENCE_MS + latest_ms + 100
    assert (master, epoch) == (1, 1)


def test_a_leader_whose_clock_jumps_ahead_gives_up_at_its_next_round_and_another_election_follows():
    async def script(group):
        await group.registered()
        leader = group.leader_id
        group.hosts[leader].clock.add_error("jump", offset_ms=SILENCE_MS + LEADER_HEARTBEAT_MS)
        began = await group.until(lambda: True)
        await group.until(lambda: not group.controllers[leader].dledger.serving)
        return await group.until(lambda: group.leader_id) - began

    assert executed(script) < SILENCE_MS + 3 * VOTE_WAIT_MS[1]


@pytest.mark.trap("K23")
def test_a_leader_without_a_majority_answers_reads_until_a_write_blocks_them_and_then_refuses():
    async def script(group):
        await group.registered()
        leader = group.leader_id
        for self_id, host in group.hosts.items():
            if self_id != leader:
                await host.kill()
        stale = (await group.replica_info())[0]
        answers = {}

        async def keep(name, asking):
            code, _, _, remark = await asking
            answers[name] = (code, remark)

        group.operator.start_soon(keep, "write", group.alter(1), name="write")
        group.operator.start_soon(keep, "next write", group.alter(1), name="next write")
        await group.sleep(10)
        group.operator.start_soon(keep, "read", group.replica_info(to=leader), name="read")
        await group.until(lambda: len(answers) == 3)
        await group.until(lambda: group.leader_id is None)
        return stale, answers, (await group.replica_info(to=leader))[0], (await group.metadata(leader)).is_leader

    stale, answers, refused, leads = executed(script)

    assert stale is Code.SUCCESS
    assert answers["write"][0] is answers["read"][0] is Code.SYSTEM_ERROR
    assert answers["read"][1] == "TimeoutException"
    assert (refused, leads) == (Code.CONTROLLER_NOT_LEADER, False)


@pytest.mark.trap("K24")
def test_a_write_that_failed_may_be_there_later():
    async def script(group):
        await group.registered()
        followers = [host for self_id, host in group.hosts.items() if self_id != group.leader_id]
        for host in followers:
            await host.kill()
        failed = await group.alter(1)
        for host in followers:
            await host.restart()
        await group.until(lambda: group.leader_id and group.sync.sync_state_set == (1,))
        return failed[0], failed[3]

    code, remark = executed(script)

    assert code is Code.SYSTEM_ERROR
    assert remark in ("TimeoutException", "CancellationException")


@pytest.mark.trap("K45")
def test_what_waits_in_the_queue_of_a_deposed_leader_is_done_when_it_leads_again():
    async def script(group):
        await group.registered()
        leader = group.leader_id
        followers = [host for self_id, host in group.hosts.items() if self_id != leader]
        for host in followers:
            await host.kill()
        for name in ("a write that blocks", "one that blocks when that has timed out"):
            group.operator.start_soon(group.alter, 1, name=name)
            await group.sleep(10)
        requested = headers.ApplyBrokerIdRequestHeader(CLUSTER, NAME, 3, "10.0.0.3:10911;1")
        code, _, _, remark = await group.ask(RequestCode.CONTROLLER_APPLY_BROKER_ID, requested)
        await group.until(lambda: group.leader_id is None)
        before = list(group.controllers[leader].state.groups[NAME].brokers)
        await followers[0].restart()  # its log is shorter
        await group.until(lambda: group.leader_id == leader)
        await group.sleep(100)
        return code, remark, before, list(group.controllers[leader].state.groups[NAME].brokers)

    code, remark, before, after = executed(script)

    assert (code, remark) == (Code.SYSTEM_ERROR, "TimeoutException")
    assert (before, after) == ([1, 2], [1, 2, 3])


@pytest.mark.trap("K22")
def test_a_new_leader_is_named_before_it_serves():
    async def script(group):
        for self_id in group.hosts:
            await group.metadata(self_id)  # a connection takes longer than the first commit
        await group.until(
            lambda: any(
                controller.dledger.member.role is MemberRole.LEADER for controller in group.controllers.values()
            )
        )
        named = next(
            controller for controller, at in group.controllers.items() if at.dledger.member.role is MemberRole.LEADER
        )
        return group.leader_id, (await group.replica_info(to=named))[0], (await group.metadata(named)).is_leader

    assert executed(script, brokers=0, delay_ms=40) == (None, Code.CONTROLLER_NOT_LEADER, True)


# After a restart


@pytest.mark.trap("K27")
def test_a_leader_that_restarted_believes_everybody_dead_until_the_next_heartbeat():
    async def script(group):
        await group.registered()
        await group.hosts["n0"].restart()
        await group.until(lambda: group.leader_id)
        at_once = (await group.alter(1))[0]
        await group.sleep(2 * HEARTBEAT_MS)
        return group.sync.master_epoch, at_once, (await group.alter(1))[0]

    assert executed(script, controllers=1) == (1, Code.CONTROLLER_BROKER_NOT_ALIVE, Code.SUCCESS)


@pytest.mark.trap("K27")
def test_a_new_leader_elects_a_slave_if_it_has_not_heard_the_master_for_five_seconds():
    async def script(group):
        await group.registered()
        await group.broker_hosts[1].suspend()
        await group.hosts["n0"].restart()
        began = await group.until(lambda: group.leader_id)
        return await group.until(lambda: group.sync.master_id == 2) - began

    assert 4_900 < executed(script, controllers=1) < TIMEOUT_MS - HEARTBEAT_MS


def test_all_state_comes_back_from_the_disks():
    async def script(group):
        await group.registered()
        for host in group.hosts.values():
            await host.kill()
        for host in group.hosts.values():
            await host.restart()
        await group.until(lambda: group.leader_id)
        return group.sync.master_id, group.sync.master_epoch, group.sync.sync_state_set

    assert executed(script) == (1, 1, (1, 2))


def test_followers_apply_what_the_leader_committed():
    async def script(group):
        await group.registered()
        await group.sleep(2 * LEADER_HEARTBEAT_MS)
        return [controller.state.sync[NAME] for controller in group.controllers.values()]

    first, *others = executed(script)

    assert others == [first, first]


# Requests


def test_an_answer_of_another_controller_that_is_none_harms_no_one():
    async def script(group):
        await group.registered()
        for code in (RequestCode.DLEDGER_VOTE, RequestCode.DLEDGER_PUSH):
            group.controllers["n0"].dledger._on_reply("n1", code, Command(0, 1, 0, body=b"\xff"))
        return group.sync.master_id

    assert executed(script) == 1


def test_an_entry_of_the_log_that_is_no_event_is_passed_over_by_all():
    async def script(group):
        await group.registered()
        with group.operator.timeout_ms(5_000):
            await group.controllers[group.leader_id].dledger.append("no event")
        await group.elect(1)
        await group.alter(1)
        await group.sleep(2 * LEADER_HEARTBEAT_MS)
        return [controller.state.sync[NAME].sync_state_set for controller in group.controllers.values()]

    assert executed(script) == [(1,)] * 3


def test_requests_that_ask_for_nothing_or_name_no_one_are_refused():
    async def script(group):
        await group.registered()
        nothing = await group.ask(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, None, ())
        some = await group.ask(RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, None, (NAME, "unknown"))
        return nothing[0], nothing[3], list(some[2].replicas_info_table)

    assert executed(script) == (Code.SYSTEM_ERROR, "not set any response code", [NAME])


def test_the_same_seed_gives_the_same_run():
    async def script(group):
        await group.registered()
        await group.hosts[group.leader_id].kill()
        return await group.until(lambda: group.leader_id)

    assert executed(script, seed=7) == executed(script, seed=7)


def test_options_of_one_controller_are_shown_and_changed_until_its_process_ends():
    async def script(group):
        await group.registered()
        refused = await group.ask(RequestCode.UPDATE_CONTROLLER_CONFIG, None, b"configStorePath=x\n")
        await group.ask(RequestCode.UPDATE_CONTROLLER_CONFIG, None, b"enableElectUncleanMaster=true\n")
        changed = await group.ask(RequestCode.GET_CONTROLLER_CONFIG)
        await group.hosts["n0"].restart()
        await group.until(lambda: group.leader_id)
        restarted = await group.ask(RequestCode.GET_CONTROLLER_CONFIG)
        shown = [b"enableElectUncleanMaster=true" in answer[2].splitlines() for answer in (changed, restarted)]
        return refused[0], refused[3], shown

    assert executed(script, controllers=1) == (
        Code.NO_PERMISSION,
        "Can not update config in black list.",
        [True, False],
    )


def test_an_unclean_election_is_allowed_while_the_controller_runs():
    async def script(group):
        await group.registered()
        await group.alter(1)
        await group.ask(RequestCode.UPDATE_CONTROLLER_CONFIG, None, b"enableElectUncleanMaster=true\n")
        await group.broker_hosts[1].kill()
        await group.until(lambda: group.sync.master_id == 2)
        return group.sync.master_epoch

    assert executed(script, controllers=1) == 2


def test_the_trace_reports_who_leads_and_who_is_master():
    async def script(group):
        await group.registered()
        await group.sleep(2 * LEADER_HEARTBEAT_MS)

    trace = traced(script)

    def last(kind):
        of_node = {row["node"]: json.loads(row["value"]) for row in trace.select("beliefs", kind=kind)}
        return list(of_node.values())

    groups = [row["value"] for row in trace.select("beliefs", kind="sync_state", subject=NAME)]
    assert len({value["leader"] for value in last("controller_leader")}) == 1
    assert sorted(value["serves"] for value in last("controller_role")) == [False, False, True]
    assert json.loads(groups[-1]) == {"master": 1, "epoch": 1, "in_sync": [1, 2], "in_sync_epoch": 2}
