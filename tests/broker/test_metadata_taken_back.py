"""What a returning master asks of a member, and what it puts over its own."""

import attrs
import pytest

from broker.group_of_brokers import Member, believed
from emulator.testing.worlds import execute_world
from nodes.broker.files import DELAY_OFFSET_FILE, TIMER_CHECK_POINT_FILE, load_delay_offsets, load_timer_check_point
from nodes.broker.tables.group.pre_online import AdoptMetadata, newer_or_equal
from nodes.broker.tables.timer.delay_offsets import TimerCheckPoint
from nodes.config import BrokerConfig
from nodes.protocol.model import DataVersion

ALL = AdoptMetadata(consumer_offsets=True, delay_offsets=True, timer_check_point=True)
NEWER = DataVersion(0, 5, 6)


@pytest.mark.trap("Y17")
def test_a_member_is_asked_for_delay_offsets_consumer_offsets_and_check_point_in_this_order():
    async def main(world):
        master, member = Member(world, 0), Member(world, 1)
        member.commit(42)
        fetched = await master.slave.fetch_metadata(member.context.address)
        return fetched.consumer_offsets, fetched.versions == member.slave.local_versions()

    executed = execute_world(main)

    offsets, same_versions = executed.result
    rows = executed.trace.select("rpc", src="b0", dst="b1", kind="request", event="delivered")
    assert [row["code"] for row in rows] == [45, 43, 60]
    assert (offsets.offset_table, offsets.group_topic_map) == ({"t@g": {0: 42}}, {"g": ("t",)})
    assert same_versions


def test_a_member_without_timer_has_nothing_to_take_back():
    async def main(world):
        master, member = Member(world, 0), Member(world, 1, BrokerConfig(timer_wheel_enable=False))
        return await master.slave.fetch_metadata(member.context.address)

    executed = execute_world(main)

    assert executed.result is None
    (refused,) = executed.trace.select("rpc", src="b1", code=60, kind="response")
    assert refused["status"] == 1


def test_a_member_that_is_gone_has_nothing_to_take_back():
    async def main(world):
        master, member = Member(world, 0), Member(world, 1)
        await member.machine.kill()
        return await master.slave.fetch_metadata(member.context.address)

    assert execute_world(main).result is None


def test_a_master_without_timer_has_no_version_of_it_and_so_takes_none_back():
    async def main(world):
        master, member = Member(world, 0, BrokerConfig(timer_wheel_enable=False)), Member(world, 1)
        fetched = await master.slave.fetch_metadata(member.context.address)
        return newer_or_equal(fetched.versions, master.slave.local_versions())

    assert execute_world(main).result == attrs.evolve(ALL, timer_check_point=False)


@pytest.mark.trap("M48")
@pytest.mark.parametrize(("commits_after_the_copy", "taken_back"), [(499, 7_000), (500, 1_500)])
def test_the_commits_of_an_acting_slave_are_lost_to_a_master_whose_version_stepped_after_the_last_copy(
    commits_after_the_copy, taken_back
):
    async def main(world):
        master, slave = Member(world, 0), Member(world, 1, master="127.1.1.1:10911")
        for offset in range(1, 1_001):
            master.commit(offset)
        await slave.slave.sync_all()
        for _ in range(commits_after_the_copy):
            master.commit(1_500)
        for _ in range(400):
            slave.commit(7_000)
        fetched = await master.slave.fetch_metadata(slave.context.address)
        master.slave.adopt(fetched, newer_or_equal(fetched.versions, master.slave.local_versions()))
        return master.offset()

    assert execute_world(main).result == taken_back


def progress(member):
    timer = member.tables.timer
    return timer.delay_offsets.wrapper(), timer.wheel.progress.check_point, member.offset()


def test_only_what_shall_be_adopted_is_and_it_is_on_the_disk_at_once():
    async def main(world):
        master, member, again = Member(world, 0), Member(world, 1), Member(world, 2)
        member.commit(42)
        member.tables.timer.delay_offsets.update_offset(4, 17, now_ms=1)
        member.tables.timer.delay_offsets.data_version = NEWER
        member.tables.timer.wheel.progress.check_point = TimerCheckPoint(5, 6, 7, 8, NEWER)
        fetched = await master.slave.fetch_metadata(member.context.address)
        master.slave.adopt(fetched, attrs.evolve(ALL, consumer_offsets=False))
        for name in (DELAY_OFFSET_FILE, TIMER_CHECK_POINT_FILE):
            again.host.disk.write(name, master.host.disk.read(name))
        timer = again.tables.timer
        load_delay_offsets(again.context, timer.delay_offsets)
        load_timer_check_point(again.context, timer.wheel)
        return [progress(m) for m in (master, again)]

    executed = execute_world(main)

    master, again = executed.result
    assert master == again
    assert (master[0].offset_table, master[0].data_version) == ({4: 17}, NEWER)
    assert (master[1], master[2]) == (TimerCheckPoint(5, 0, 0, 8, NEWER), -1)
    assert believed(executed, "b0", "data_version", "delay_offsets")[-1] == (0, [0, 5, 6])
    assert believed(executed, "b0", "data_version", "timer_check_point")[-1] == (0, [0, 5, 6])
