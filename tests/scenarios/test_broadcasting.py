"""Broadcasting: every member consumes everything, and keeps its offsets to itself."""

import pytest

from emulator.spec.model.scenario import ConsumerGroupSpec
from emulator.testing import GROUP, RETRY, TOPIC, Stage, a_scenario, consumer_group, execute
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode
from support.ordered import LOCK, consumed_by, requested

LIST, COMMIT, NOTIFY = (
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
)


def broadcasting(**options):
    return ConsumerConfig(message_model="BROADCASTING", **options)


def test_every_member_owns_all_queues_and_consumes_every_message():
    trace = execute(a_scenario(consumers=consumer_group(2, broadcasting()), queues=2, rate_per_s=10), for_ms=60_000)

    assert trace.owners() == {("broker-a", 0): ["c1", "c2"], ("broker-a", 1): ["c1", "c2"]}
    once_each = {sorted(node) == ["c1", "c2"] for node in trace.consumed().values()}
    assert once_each == {True}
    # It asks for no members, joins no list and commits to no broker; nothing is consumed again, so no retry topic.
    assert requested(trace, "c1", "broker-a", LIST) == requested(trace, "c1", "broker-a", COMMIT) == []
    assert requested(trace, "broker-a", "c1", NOTIFY) == []
    assert trace.owners(topic=RETRY) == {}


def test_a_member_that_was_killed_goes_on_where_its_own_file_says():
    async def script(stage: Stage) -> None:
        await stage.at_ms(33_000)
        await stage.kill("c1")
        await stage.at_ms(40_000)
        stage.start("c1")
        await stage.at_ms(90_000)

    trace = execute(a_scenario(consumers=consumer_group(1, broadcasting()), queues=1, rate_per_s=10), script)

    offsets = [row.offset for row in consumed_by(trace, "c1", topic=TOPIC)]
    again = len(offsets) - len(set(offsets))
    # What it had consumed since it last wrote the file, every 5 s; nothing is left out.
    assert 0 < again <= 50
    assert sorted(set(offsets)) == list(range(min(offsets), max(offsets) + 1))


@pytest.mark.trap("C39")
def test_members_on_one_machine_are_one_client_and_write_one_file_so_who_comes_back_skips_what_the_other_has_read():
    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        ids = stage.node("broker-a").tables.clients.consumers.client_ids(GROUP)
        assert ids == (f"{stage.host('c1').ip}@DEFAULT",) * 2
        await stage.kill("c1")
        await stage.at_ms(60_000)
        stage.start("c1")
        await stage.at_ms(110_000)

    group = ConsumerGroupSpec(GROUP, ("c1", "c2"), (TOPIC,), broadcasting(), one_address=True)
    trace = execute(a_scenario(consumers=(group,), queues=1, rate_per_s=10), script)

    seen = {row.offset for row in consumed_by(trace, "c1", topic=TOPIC)}
    missed = [offset for offset in range(min(seen), max(seen)) if offset not in seen]
    # It was away for 30 s, and the other has moved the offset in the file on meanwhile.
    assert len(missed) == 300
    others = {row.offset for row in consumed_by(trace, "c2", topic=TOPIC)}
    assert set(missed) <= others


def test_a_message_that_fails_is_dropped():
    group = ConsumerGroupSpec(GROUP, ("c1",), (TOPIC,), broadcasting(), fail_times=3)
    trace = execute(a_scenario(consumers=(group,), queues=1, rate_per_s=1), for_ms=60_000)

    offsets = [row.offset for row in consumed_by(trace, "c1", topic=TOPIC)]
    assert offsets == sorted(set(offsets))
    assert requested(trace, "c1", "broker-a", RequestCode.CONSUMER_SEND_MSG_BACK) == []


def test_members_that_consume_in_order_lock_nothing():
    trace = execute(
        a_scenario(consumers=consumer_group(2, broadcasting(consume_orderly=True)), queues=2, rate_per_s=10),
        for_ms=60_000,
    )

    assert requested(trace, "c1", "broker-a", LOCK) == requested(trace, "c2", "broker-a", LOCK) == []
    assert {tuple(sorted(node)) for node in trace.consumed().values()} == {("c1", "c2")}
