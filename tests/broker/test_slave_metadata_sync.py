"""What a slave copies from its master, when, and what becomes of what it had itself."""

import json

import pytest

from broker.group_of_brokers import Caller, Member, believed, requests
from emulator.testing.worlds import VIRTUAL, execute_world, until_ms
from nodes.broker.files import (
    DELAY_OFFSET_FILE,
    GROUP_FILE,
    MESSAGE_REQUEST_MODE_FILE,
    TIMER_CHECK_POINT_FILE,
    TOPIC_FILE,
)
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.timer.delay_offsets import TimerCheckPoint
from nodes.config import BrokerConfig
from nodes.protocol.bodies import SetMessageRequestModeRequestBody, SubscriptionGroupTable, TopicConfigSerializeWrapper
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import DataVersion, MessageRequestMode, TopicConfig
from nodes.protocol.registry import decode_body

MASTER = "127.1.1.1:10911"
TOPICS, OFFSETS, DELAYS, GROUPS, MODES, CHECK_POINT = 21, 43, 45, 201, 402, 60


def a_master_and_its_slave(world, *, master=MASTER, **options):
    pair = Member(world, 0, **options), Member(world, 1, master=master, **options)
    pair[1].copy_from_master()
    return pair


def version(of):
    return of.tables.clients.offsets.data_version


@pytest.mark.trap("M36")
@pytest.mark.parametrize("mode", VIRTUAL)
def test_a_fresh_slave_knows_no_offsets_for_a_minute(mode):
    async def main(world):
        master, slave = a_master_and_its_slave(world)
        master.commit(42)
        await until_ms(world, 60_900)
        before = slave.offset()
        await until_ms(world, 61_100)
        return before, slave.offset()

    executed = execute_world(main, mode=mode)

    assert executed.result == (-1, 42)
    assert requests(executed, "b1", OFFSETS) == [61_000]
    assert requests(executed, "b1", CHECK_POINT)[:3] == [10_000, 13_000, 16_000]


def test_the_tables_are_copied_one_after_the_other_and_topics_over_the_second_port():
    async def main(world):
        a_master_and_its_slave(world)
        await until_ms(world, 62_000)

    executed = execute_world(main, delay_ms=5)

    rows = executed.trace.select("rpc", src="b1", dst="b0", kind="request", event="delivered")
    copied = [(row["code"], row["connection"]) for row in rows if row["t_ns"] > 61_000 * 10**6]
    assert [code for code, _ in copied] == [TOPICS, OFFSETS, DELAYS, GROUPS, MODES, CHECK_POINT]
    second, main_port = copied[0][1], copied[1][1]
    assert [connection for _, connection in copied] == [second, *(main_port,) * 4, second]
    assert second != main_port


def test_modes_of_groups_are_copied_whole_each_time_and_written_down():
    async def main(world):
        master, slave = a_master_and_its_slave(world)
        modes = slave.tables.clients.request_modes
        shared = SetMessageRequestModeRequestBody("t", "g", MessageRequestMode.POP, 2)
        master.tables.clients.request_modes.set_mode(shared)
        modes.set_mode(SetMessageRequestModeRequestBody("gone", "g", MessageRequestMode.POP))
        await until_ms(world, 62_000)
        return modes, slave.host.disk.read(MESSAGE_REQUEST_MODE_FILE)

    modes, content = execute_world(main).result

    copied = modes.mode("t", "g")
    assert (copied.mode, copied.pop_share_queue_num) == (MessageRequestMode.POP, 2)
    assert modes.mode("gone", "g").mode is MessageRequestMode.PULL
    assert content == modes.encode()


@pytest.mark.trap("Y5")
def test_without_a_master_at_the_first_attempt_the_next_comes_only_after_another_minute():
    async def main(world):
        _, slave = a_master_and_its_slave(world, master=None)
        await until_ms(world, 64_600)
        slave.group.slave_sync_master_addr = MASTER
        await until_ms(world, 130_000)

    executed = execute_world(main)

    assert requests(executed, "b1", OFFSETS) == [124_000]
    assert requests(executed, "b1", CHECK_POINT)[0] == 67_000


def test_a_broker_does_not_copy_from_itself():
    async def main(world):
        master = Member(world, 0, master=MASTER)
        master.copy_from_master()
        await until_ms(world, 62_000)

    assert [requests(execute_world(main), "b0", code) for code in (TOPICS, OFFSETS, DELAYS, GROUPS)] == [[], [], [], []]


@pytest.mark.trap("M38")
def test_a_slave_never_gets_to_its_masters_topic_version_and_copies_all_topics_every_minute():
    seen = []

    async def main(world):
        master, slave = a_master_and_its_slave(world)
        master.context.topics.update_topic_config(TopicConfig("orders"), now_ms=master.now_ms)
        shared, masters = len(slave.context.topics.topics), len(master.context.topics.topics)
        for instant_ms in (62_000, 125_000, 188_000):
            await until_ms(world, instant_ms)
            seen.append((slave.context.topics.data_version.counter, "orders" in slave.context.topics.topics))
        return master.context.topics.data_version.counter, shared, masters

    executed = execute_world(main)

    counter, shared, masters = executed.result
    # The first time "orders" is missing at the slave and so is not deleted there.
    assert seen == [(counter + shared + masters, True)] + 2 * [(counter + 2 * masters, True)]
    assert requests(executed, "b1", TOPICS) == [61_000, 124_000, 187_000]
    assert [at for at, _ in believed(executed, "b1", "data_version", "topics")][1:] == [61_000, 124_000, 187_000]


@pytest.mark.trap("Y1")
@pytest.mark.trap("M39")
def test_a_slaves_newer_offsets_are_overwritten_whatever_the_versions_say():
    async def main(world):
        master, slave = a_master_and_its_slave(world, config=BrokerConfig(consumer_offset_update_version_step=1))
        master.commit(100)
        for offset in (300, 600, 900):
            slave.commit(offset)
        slave.commit(7, group="only here")
        older = version(master).compare(version(slave))
        await until_ms(world, 62_000)
        return older, slave.offset(), slave.offset(group="only here"), version(slave) == version(master)

    executed = execute_world(main)

    assert executed.result == (-1, 100, 7, True)
    lines = [value[2] for _, value in believed(executed, "b1", "data_version", "consumer_offsets")]
    assert lines == [1, 4, 1]


def test_a_slave_keeps_trying_while_its_master_is_silent_and_is_slow_in_all_that_its_thread_does():
    registered = []

    async def main(world):
        master, slave = Member(world, 0), Member(world, 1, master=MASTER)

        async def register():
            registered.append(world.timeline.now_ns // 10**6)

        slave.thread.at_fixed_rate("registerBrokerAll", register, 10_000, 30_000)
        slave.copy_from_master()
        master.commit(5)
        await until_ms(world, 60_500)
        await master.machine.suspend()
        await until_ms(world, 120_000)
        before = slave.offset()
        await master.machine.resume()
        await until_ms(world, 150_000)
        return before, slave.offset()

    executed = execute_world(main)

    assert executed.result == (-1, 5)
    # Five copies and a check point take 18 s from 61 s on; then what was due at 64 and 67 s comes before that of 70 s.
    assert registered == [10_000, 40_000, 85_000, 115_000, 130_000]
    timed_out = requests(executed, "b1", OFFSETS, "timed_out")
    delivered = requests(executed, "b1", OFFSETS)
    assert timed_out == [67_000]
    # 60 s after the end of the attempt at 61 s, which took 15 s.
    assert 136_000 < delivered[-1] <= 139_000


def test_a_copy_that_fails_does_not_keep_the_next_from_being_made():
    async def main(world):
        master, slave = a_master_and_its_slave(world)
        topics = master.context.topics
        topics.update_topic_config(TopicConfig("typed", attributes={"+message.type": "FIFO"}), now_ms=0)
        topics.update_topic_config(TopicConfig("after it"), now_ms=0)
        master.commit(9)
        await until_ms(world, 62_000)
        return slave.offset(), [topic for topic in ("typed", "after it") if topic in slave.context.topics.topics]

    assert execute_world(main).result == (9, [])


def test_what_was_copied_is_on_the_disk():
    async def main(world):
        master, slave = a_master_and_its_slave(world)
        master.commit(3)
        master.context.topics.update_topic_config(TopicConfig("orders"), now_ms=1)
        master.context.groups.find_subscription_group_config("g", now_ms=1)
        master.tables.timer.delay_offsets.update_offset(4, 17, now_ms=1)
        await until_ms(world, 62_000)
        disk = slave.host.disk
        names = (TOPIC_FILE, ConsumerOffsetManager.file_name, DELAY_OFFSET_FILE, GROUP_FILE, TIMER_CHECK_POINT_FILE)
        return {name: disk.read(name) for name in names}

    files = execute_world(main).result

    assert json.loads(files[ConsumerOffsetManager.file_name])["offsetTable"] == {"t@g": {"0": 3}}
    assert json.loads(files[DELAY_OFFSET_FILE])["offsetTable"] == {"4": 17}
    assert "g" in decode_body(SubscriptionGroupTable, files[GROUP_FILE]).subscription_group_table
    assert "orders" in decode_body(TopicConfigSerializeWrapper, files[TOPIC_FILE]).topic_config_table
    assert len(files[TIMER_CHECK_POINT_FILE]) == 56


def test_a_slave_follows_its_masters_timer_unless_it_delivers_itself():
    async def main(world):
        master, slave = a_master_and_its_slave(world)
        followed = []
        for instant_ms, delivers in ((12_000, False), (15_000, True), (18_000, False)):
            slave.tables.timer.wheel.progress.should_running_dequeue = delivers
            stands = TimerCheckPoint(instant_ms, 1, 2, instant_ms + 1, DataVersion(0, 4, 5))
            master.tables.timer.wheel.progress.check_point = stands
            await until_ms(world, instant_ms + 1_500)
            followed.append(slave.tables.timer.wheel.progress.check_point)
        return followed

    executed = execute_world(main)

    def copied(from_ms):
        return TimerCheckPoint(from_ms, 0, 0, from_ms + 1, DataVersion(0, 4, 5))

    assert executed.result == [copied(12_000), copied(12_000), copied(18_000)]
    assert requests(executed, "b1", CHECK_POINT) == [10_000, 13_000, 19_000]


def test_a_master_without_timer_refuses_to_report_its_check_point():
    async def main(world):
        master = Member(world, 0, BrokerConfig(timer_wheel_enable=False))
        slave = Member(world, 1, master=MASTER)
        slave.copy_from_master()
        await until_ms(world, 11_000)
        answer = await Caller(world).ask(master, RequestCode.GET_TIMER_CHECK_POINT)
        return answer.code, slave.tables.timer.wheel.progress.check_point.last_read_time_ms

    assert execute_world(main).result == (1, 0)
