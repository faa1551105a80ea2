"""POP with its records in a database of the broker, `popConsumerKVServiceEnable`."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.spec.model.scenario import TopicSpec
from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from emulator.trace.run_directory import open_run
from nodes.broker.tables.pop.consumer_records import PopConsumerRecord
from nodes.config import BrokerConfig
from nodes.protocol import headers_message as requested
from nodes.protocol import headers_pop as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.registry import decode_header
from support.grouped import BEFORE_MS, MASTER, OTHER, S1, two_groups
from support.popping_guest import BROKER, GROUP, INVISIBLE_MS, TOPIC, PoppingGuest, popping_guest

RETRY = f"%RETRY%{GROUP}_{TOPIC}"
WITH_RECORDS = {"pop_consumer_kv_service_init": True, "pop_consumer_kv_service_enable": True}
REVIVED_MS = INVISIBLE_MS + 600
"""After this time a message that no one has acknowledged was revived: a broker looks every 500 ms."""
Script = Callable[[Stage, PoppingGuest], Awaitable[None]]


def pops(script: Script, *, slaves: int = 0, **options: object) -> Trace:
    async def main(stage: Stage) -> None:
        await script(stage, await popping_guest(stage))

    broker = BrokerConfig(**{**WITH_RECORDS, **options})  # type: ignore[arg-type]
    return execute(a_scenario(brokers=broker_groups(config=broker, slaves=slaves)), main)


def records(stage: Stage, node: str = BROKER) -> list[int]:
    """Offsets of the records in the database."""
    found: tuple[PopConsumerRecord, ...] = stage.node(node).tables.pop.records.records
    return [record.offset for record in found]


def offset_of(stage: Stage, node: str = BROKER) -> int:
    found: int = stage.node(node).tables.clients.offsets.query_offset(GROUP, TOPIC, 0)
    return found


def events(trace: Trace, *wanted: str, node: str = BROKER) -> list[tuple[str, int, str]]:
    rows = trace.select("messages", node=node)
    return [(row.event, row.offset, row.tags) for row in rows if row.event in wanted]


async def send(guest: PoppingGuest, count: int, node: str = BROKER) -> None:
    for _ in range(count):
        await guest.send(node)


def test_what_is_acknowledged_has_no_record_any_more_and_the_rest_comes_back_under_its_retry_topic() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        popped = await guest.pop()
        assert (popped.offsets, popped.header.revive_qid, records(stage)) == ([0, 1, 2], 0, [0, 1, 2])
        assert await guest.ack(popped.handles[1], 1) == ResponseCode.SUCCESS
        assert records(stage) == [0, 2]
        await stage.for_ms(REVIVED_MS)
        again = await guest.pop(queue_id=-1)
        assert [(message.topic, message.reconsume_times) for message in again.messages] == [(RETRY, 1)] * 2
        await guest.ack_all(again, topic=RETRY)
        assert records(stage) == []
        await stage.for_ms(3_600_000)
        assert (await guest.pop(queue_id=-1)).messages == ()

    trace = pops(script)
    assert events(trace, "revived") == [("revived", 0, "stored"), ("revived", 2, "stored")]
    popped, revived = trace.select("messages", event="popped")[0], trace.select("messages", event="revived")[0]
    assert INVISIBLE_MS + 50 < revived.at_ms - popped.at_ms <= INVISIBLE_MS + 551
    assert not [row for row in trace.select("messages", event="stored") if "REVIVE_LOG" in row.topic]
    assert [row.name for row in trace.select("causes") if row.name == "PopConsumerService"] == ["PopConsumerService"]


def test_an_acknowledgement_with_another_invisible_time_succeeds_and_deletes_nothing() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        (handle,) = (await guest.pop()).handles
        wrong = handle.replace(f" {INVISIBLE_MS} ", f" {INVISIBLE_MS + 1} ")
        assert await guest.ack(wrong, 0) == ResponseCode.SUCCESS
        assert records(stage) == [0]

    pops(script)


def test_a_change_of_the_invisible_time_moves_the_record_and_a_repeated_one_moves_none() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        (handle,) = (await guest.pop()).handles
        reported = decode_header(
            headers.ChangeInvisibleTimeResponseHeader, (await guest.change(handle, 0, 60_000)).ext_fields
        )
        assert (reported.invisible_time, reported.revive_qid, records(stage)) == (60_000, 0, [0])
        assert await guest.ack(handle, 0) == ResponseCode.SUCCESS
        await stage.for_ms(REVIVED_MS)
        assert records(stage) == [0]
        await stage.for_ms(60_000)
        assert records(stage) == []

    assert events(pops(script), "revived") == [("revived", 0, "stored")]


def test_the_committed_offset_lags_by_one_pop_so_a_restart_hands_that_out_again() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 4)
        await guest.ack_all(await guest.pop(maximum=2))
        await guest.ack_all(await guest.pop(maximum=2))
        assert (offset_of(stage), records(stage)) == (2, [])
        await stage.for_ms(10_000)
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(5_000)
        assert (await guest.pop()).offsets == [2, 3]

    pops(script)


def test_a_process_revives_what_an_earlier_one_has_handed_out() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        await guest.pop()
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(REVIVED_MS)
        assert records(stage) == []

    assert events(pops(script), "revived") == [("revived", 0, "stored")]


def test_a_record_that_was_visible_long_before_it_was_written_is_found_by_the_next_process_only() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(20_000)
        await send(guest, 2)
        for invisible_ms in (-2_000, -5_000):
            await guest.pop(maximum=1, invisible_ms=invisible_ms)
            await stage.for_ms(10_000)
        assert records(stage) == [1]
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(5_000)
        assert records(stage) == []

    assert events(pops(script), "revived") == [("revived", 0, "stored"), ("revived", 1, "stored")]


def test_what_is_acknowledged_in_memory_never_reaches_the_database_and_a_stop_loses_the_rest() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        popped = await guest.pop(invisible_ms=60_000)
        assert await guest.ack(popped.handles[0], 0) == ResponseCode.SUCCESS
        await stage.for_ms(2_000)
        assert (records(stage), offset_of(stage)) == ([], 1)
        await stage.stop(BROKER)
        stage.start(BROKER)
        await stage.for_ms(5_000)
        assert (await guest.pop(invisible_ms=60_000)).offsets == [1, 2]
        await stage.for_ms(12_000)
        assert (records(stage), offset_of(stage)) == ([1, 2], 1)

    trace = pops(script, enable_pop_buffer_merge=True)
    assert events(trace, "acked", "check_point") == [
        ("acked", 0, "buffered"),
        ("check_point", 1, "stored"),
        ("check_point", 2, "stored"),
    ]


def test_while_a_pop_waits_for_the_disk_another_one_of_the_group_finds_nothing() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        found = []
        other = await popping_guest(stage, 1)
        await send(guest, 8)
        stage.host(BROKER).disk.slow_down("slow", 300)

        async def first() -> None:
            found.append((await guest.pop(maximum=2)).offsets)

        stage.world.nursery.start_soon(first)
        await stage.for_ms(100)
        assert (await other.pop(maximum=2)).messages == ()
        await stage.for_ms(600)
        assert found == [[0, 1]]
        assert (await other.pop(maximum=2)).offsets == [2, 3]

    pops(script)


def test_a_queue_that_is_popped_in_order_is_blocked_until_its_batch_is_acknowledged() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        popped = await guest.pop(maximum=2, order=True, attempt_id="a")
        assert (popped.offsets, popped.header.revive_qid, records(stage)) == ([0, 1], 999, [])
        assert (await guest.pop(order=True, attempt_id="b")).messages == ()
        await guest.ack_all(popped)
        assert (await guest.pop(order=True, attempt_id="b")).offsets == [2]

    pops(script)


def test_a_plain_slave_gives_up_what_it_cannot_revive() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        await stage.for_ms(5_000)
        assert (await guest.pop("broker-a-s1", invisible_ms=1_000)).offsets == [0]
        assert records(stage) == []
        await stage.for_ms(70_000)
        assert records(stage, "broker-a-s1") == []

    trace = pops(script, slaves=1, pop_revive_max_attempt_times=2)
    assert events(trace, "revived", "re_put", "lost", node="broker-a-s1") == [
        ("revived", 0, "refused"),
        ("re_put", 0, "stored"),
        ("revived", 0, "refused"),
        ("re_put", 0, "stored"),
        ("revived", 0, "refused"),
        ("lost", 0, "refused"),
    ]


def test_a_slave_knows_nothing_of_its_dead_masters_records_and_hands_the_message_out_again() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await send(guest, 1, MASTER)
        assert (await guest.pop(MASTER)).offsets == [0]
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.for_ms(40_000)
        assert records(stage, S1) == []
        again = await guest.pop(S1)
        assert again.offsets == [0]
        await guest.ack_all(again, S1)
        stage.start(MASTER)
        await stage.for_ms(20_000)
        assert (records(stage, MASTER), records(stage, S1)) == ([], [])

    trace = execute_two_groups(script)
    assert events(trace, "revived", node=S1) == []
    # Acknowledged at the slave, and revived by the master that never heard of it.
    assert events(trace, "revived", node=MASTER) == [("revived", 0, "stored")]


def test_each_try_of_an_acting_slave_leaves_one_more_copy_at_another_broker() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await send(guest, 1, MASTER)
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.for_ms(40_000)
        assert (await guest.pop(S1, invisible_ms=1_000)).offsets == [0]
        await stage.for_ms(80_000)

    trace = execute_two_groups(script, enable_remote_escape=True, pop_revive_max_attempt_times=2)
    assert events(trace, "revived", "lost", node=S1) == [("revived", 0, "remote")] * 3 + [("lost", 0, "refused")]
    assert len(trace.select("messages", node=OTHER, event="stored", topic=RETRY)) == 3


def execute_two_groups(script: Script, **options: object) -> Trace:
    async def main(stage: Stage) -> None:
        await script(stage, await popping_guest(stage))

    return execute(two_groups(topics=(TopicSpec(RETRY, (OTHER,), 1),), **WITH_RECORDS, **options), main)


def test_pops_need_the_database_that_they_are_reported_to_use() -> None:
    async def script(_stage: Stage, guest: PoppingGuest) -> None:
        assert (await guest.pop()).code == ResponseCode.SYSTEM_ERROR

    pops(script, pop_consumer_kv_service_init=False)


def test_a_reset_forgets_what_is_in_memory_and_the_next_pop_begins_there() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        assert (await guest.pop()).offsets == [0, 1, 2]
        reset = requested.ResetOffsetRequestHeader(GROUP, TOPIC, 0, 1)
        assert (await guest.ask(BROKER, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset)).code == ResponseCode.SUCCESS
        assert stage.node(BROKER).tables.pop.cache.queues == {}
        assert (await guest.pop()).offsets == [1, 2]

    pops(script, enable_pop_buffer_merge=True)


def test_retry_topics_that_are_to_keep_their_name_get_a_handle_and_a_batch_behind_them_gets_their_name() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 2)
        await guest.pop()
        await stage.for_ms(REVIVED_MS)
        await send(guest, 1)
        for _ in range(4):
            await guest.pop(queue_id=1)
        again = await guest.pop(queue_id=0)
        assert [(message.topic, message.queue_offset) for message in again.messages] == [
            (RETRY, 0),
            (RETRY, 1),
            (RETRY, 2),
        ]
        assert [parse_extra_info(handle).retry for handle in again.handles] == ["1", "1", "0"]

    pops(script, pop_response_return_actual_retry_topic=True)


BY_GROUP = """
[scenario]
name = "records"
seed = 1
run_for_s = 100
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[broker.options]
popConsumerKVServiceInit = true
popConsumerKVServiceEnable = true
enablePopBufferMerge = {merge}
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "g"
count = 2
topics = ["orders"]
mode = "pop"
consume_ms = 500
options = {{ popInvisibleTime = 10000 }}
[[producer]]
group = "shop"
topic = "orders"
rate_per_s = 10
[[fault]]
id = "killed"
do = "kill consumer-1"
at_s = 30
"""


@pytest.mark.parametrize("merge", ["false", "true"])
def test_a_group_that_pops_consumes_everything_and_what_a_dead_member_had_comes_back(
    merge: str, tmp_path: Path
) -> None:
    report = judge_run(open_run(run_scenario(loads(BY_GROUP.format(merge=merge), "a group"), runs=tmp_path).path))

    assert {"V7", "V14"}.isdisjoint(broken(report))
    found = report["popped"]
    assert sum(row.popped for row in found) > 900
    assert 0 < sum(row.revived for row in found) < 20
    assert sum(row.lost + row.late for row in found) == 0


def test_an_operator_moves_the_records_to_the_log_and_messages_are_revived_from_there() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        popped = await guest.pop()
        assert (popped.offsets, records(stage)) == ([0, 1, 2], [0, 1, 2])
        assert (await guest.ask(BROKER, RequestCode.POP_ROLLBACK)).code == ResponseCode.SUCCESS
        assert records(stage) == []
        await stage.for_ms(INVISIBLE_MS + 20_000)

    trace = pops(script)
    assert [offset for _, offset, _ in events(trace, "revived")] == [0, 1, 2]
    queues = [row.queue_id for row in trace.select("messages", event="stored") if "REVIVE_LOG" in row.topic]
    assert queues[:3] == [0, 1, 2], "the queue is the offset modulo reviveQueueNum"


def test_a_broker_without_the_database_has_nothing_to_move() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        await guest.pop()
        assert (await guest.ask(BROKER, RequestCode.POP_ROLLBACK)).code == ResponseCode.SUCCESS

    trace = pops(script, pop_consumer_kv_service_init=False, pop_consumer_kv_service_enable=False)
    assert len(events(trace, "check_point")) == 1
