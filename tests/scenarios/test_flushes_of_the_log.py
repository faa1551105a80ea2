"""When what a broker has stored is on its disk: with each message, or from time to time."""

import pytest

from emulator.spec import loads
from emulator.spec.tables.mistakes import SpecError
from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig, FlushDiskType
from nodes.protocol.bodies import KvTable
from nodes.protocol.bodies_admin import HARuntimeInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_admin import ResetMasterFlushOffsetHeader
from nodes.protocol.registry import decode_body
from support.asking_guest import a_guest
from support.grouped import BEFORE_MS, MASTER, S1, a_group

BROKER = "broker-a"
LONG = b"x" * 17_000
"""More than four pages."""


def one_broker(kind: FlushDiskType, **options):
    config = BrokerConfig(flush_disk_type=kind, **options)
    return a_scenario(queues=1, brokers=broker_groups(config=config))


def survivors(scenario, *sends, lost_at_ms):
    """How many of the messages that were sent at (ms, body) a broker has after a power loss."""
    found = []

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        for at_ms, body in sends:
            await stage.at_ms(at_ms)
            assert (await guest.send(BROKER, body=body)).code == ResponseCode.SUCCESS
        await stage.at_ms(lost_at_ms)
        await stage.power_off(BROKER)
        stage.start(BROKER)
        await stage.for_ms(1_000)
        found.append(stage.node(BROKER).context.store.max_offset("orders", 0))

    execute(scenario, script)
    return found[0]


def test_with_synchronous_flushes_a_power_loss_takes_no_message():
    assert survivors(one_broker(FlushDiskType.SYNC_FLUSH), (5_000, b"x"), lost_at_ms=5_010) == 1


def test_with_asynchronous_flushes_a_power_loss_takes_what_was_stored_since_the_last_one():
    scenario = one_broker(FlushDiskType.ASYNC_FLUSH)
    assert survivors(scenario, (5_000, b"x"), lost_at_ms=6_900) == 0
    # A flush of whatever was appended is due each 10 s.
    assert survivors(scenario, (5_000, b"x"), (11_000, b"x"), lost_at_ms=12_000) == 1


def test_four_pages_are_flushed_within_half_a_second():
    scenario = one_broker(FlushDiskType.ASYNC_FLUSH)
    assert survivors(scenario, (5_000, LONG), lost_at_ms=5_520) == 1
    assert survivors(scenario, (5_000, LONG), lost_at_ms=5_005) == 0
    scenario = one_broker(FlushDiskType.ASYNC_FLUSH, flush_commit_log_least_pages=8)
    assert survivors(scenario, (5_000, LONG), lost_at_ms=5_520) == 0


def test_what_waits_for_a_flush_is_reported():
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(5_000)
        await guest.send(BROKER)
        for waits in (True, False):
            answer = await guest.ask(BROKER, RequestCode.GET_BROKER_RUNTIME_INFO)
            table = decode_body(KvTable, answer.body).table
            end = table["commitLogMaxOffset"]
            assert table["remainHowManyDataToFlush"] == (f"{end} B" if waits else "0 B")
            await stage.at_ms(11_000)

    execute(one_broker(FlushDiskType.ASYNC_FLUSH), script)


def test_an_orderly_end_flushes_and_a_kill_loses_nothing():
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send(BROKER)
        await stage.stop(BROKER)
        stage.host(BROKER).disk.lose_power()
        stage.start(BROKER)
        await stage.for_ms(1_000)
        assert stage.node(BROKER).context.store.max_offset("orders", 0) == 1
        await guest.send(BROKER)
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(1_000)
        assert stage.node(BROKER).context.store.max_offset("orders", 0) == 2

    execute(one_broker(FlushDiskType.ASYNC_FLUSH), script)


@pytest.mark.parametrize(("kind", "waits_ms"), [(FlushDiskType.SYNC_FLUSH, 300), (FlushDiskType.ASYNC_FLUSH, 0)])
def test_a_slow_disk_delays_the_answers_to_sends_only_with_synchronous_flushes(kind, waits_ms):
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        stage.host(BROKER).disk.slow_down("slow", 300)
        began_ms = stage.now_ms
        await guest.send(BROKER)
        assert stage.now_ms - began_ms == pytest.approx(waits_ms, abs=5)

    execute(one_broker(kind), script)


# Roles, and the offset of a master


def test_a_broker_whose_role_becomes_slave_takes_no_message():
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.ask(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerRole=SLAVE")
        assert (await guest.send(BROKER)).code == ResponseCode.SERVICE_NOT_AVAILABLE
        await guest.ask(BROKER, RequestCode.UPDATE_BROKER_CONFIG, None, b"brokerRole=ASYNC_MASTER")
        assert (await guest.send(BROKER)).code == ResponseCode.SUCCESS

    execute(a_scenario(queues=1), script)


def test_a_master_is_no_slave():
    text = '[scenario]\nname = "a"\nrun_for_s = 1\n[nameserver]\ncount = 1\n[[broker]]\nname = "broker-a"\n'
    text += 'options = { brokerRole = "SLAVE" }\n'
    with pytest.raises(SpecError, match=r"brokerRole: expected an id greater than 0 of a SLAVE"):
        loads(text, "a")
    assert loads(text + "id = 1\n", "a").brokers[0].broker_id == 1


def test_the_trace_topic_exists_where_it_is_enabled():
    for enabled in (False, True):

        async def script(stage: Stage, enabled: bool = enabled) -> None:
            await stage.at_ms(1_000)
            config = stage.node(BROKER).context.topics.select_topic_config("RMQ_SYS_TRACE_TOPIC")
            assert (config is not None) == enabled
            assert config is None or (config.read_queue_nums, config.write_queue_nums, config.perm) == (1, 1, 6)

        execute(a_scenario(brokers=broker_groups(config=BrokerConfig(trace_topic_enable=enabled))), script)


def test_a_slave_takes_the_offset_up_to_which_its_master_has_flushed_and_a_master_takes_none():
    async def script(stage: Stage) -> None:
        await stage.at_ms(BEFORE_MS)
        guest = await a_guest(stage)
        for node, offset in ((S1, 7), (MASTER, 0)):
            answer = await guest.ask(node, RequestCode.RESET_MASTER_FLUSH_OFFSET, ResetMasterFlushOffsetHeader(7))
            assert answer.code == ResponseCode.SUCCESS
            status = decode_body(HARuntimeInfo, (await guest.ask(node, RequestCode.GET_BROKER_HA_STATUS)).body)
            assert status.ha_client_runtime_info.master_flush_offset == offset

    execute(a_group(), script)
