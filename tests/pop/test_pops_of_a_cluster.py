"""Pops of a broker, and what it answers to acknowledgements and changes of the invisible time."""

from collections.abc import Awaitable, Callable

import pytest

from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers_pop as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.registry import decode_header
from support.popping_guest import BROKER, GROUP, INVISIBLE_MS, TOPIC, PoppingGuest, popping_guest

RETRY_V1, RETRY_V2 = f"%RETRY%{GROUP}_{TOPIC}", f"%RETRY%{GROUP}+{TOPIC}"
REVIVED_MS = INVISIBLE_MS + 5_000
"""After this time a message that no one has acknowledged was revived, on an idle broker."""


def pops(script: Callable[[Stage, PoppingGuest], Awaitable[None]], *, for_ms: float = 0, **options: object) -> Trace:
    """Run a script against one broker with the topic `orders`, with four queues."""

    async def main(stage: Stage) -> None:
        await script(stage, await popping_guest(stage))

    return execute(a_scenario(brokers=broker_groups(config=BrokerConfig(**options))), main, for_ms=for_ms)  # type: ignore[arg-type]


def events(trace: Trace, *wanted: str) -> list[tuple[str, int]]:
    """Event and offset of what happened in POP, in order."""
    return [(row.event, row.offset) for row in trace.select("messages") if row.event in wanted]


def offset_of(stage: Stage, topic: str = TOPIC, queue_id: int = 0) -> int:
    found: int = stage.node(BROKER).tables.clients.offsets.query_offset(GROUP, topic, queue_id)
    return found


async def send(guest: PoppingGuest, count: int) -> None:
    for _ in range(count):
        await guest.send(BROKER)


def test_a_pop_hands_messages_out_once() -> None:
    async def script(_stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        first = await guest.pop(maximum=2)
        second = await guest.pop()
        assert (first.code, first.offsets, first.header.rest_num) == (ResponseCode.SUCCESS, [0, 1], 1)
        assert (second.offsets, second.header.rest_num) == ([2], 0)
        assert (await guest.pop()).code == ResponseCode.POLLING_TIMEOUT
        await guest.ack_all(first)

    trace = pops(script)
    assert [row.offset for row in trace.select("messages", event="popped")] == [0, 1, 2]
    assert [row.offset for row in trace.select("messages", event="acked")] == [0, 1]


@pytest.mark.trap("P1")
def test_the_offset_moves_within_5_ms_although_nothing_is_acknowledged() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        await guest.pop()
        await stage.for_ms(5)
        assert offset_of(stage) == 3
        assert stage.node(BROKER).tables.pop.in_flight.get(TOPIC, GROUP, 0) == 3

    pops(script)


def test_what_no_consumer_acknowledges_comes_back_from_the_retry_topic_with_its_own_handle() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        popped = await guest.pop()
        assert await guest.ack(popped.handles[1], 1) == ResponseCode.SUCCESS
        await stage.for_ms(REVIVED_MS)
        again = await guest.pop(queue_id=-1)
        assert [message.topic for message in again.messages] == [TOPIC, TOPIC]
        assert [message.reconsume_times for message in again.messages] == [1, 1]
        assert [parse_extra_info(handle).retry for handle in again.handles] == ["1", "1"]
        for handle, offset in zip(again.handles, again.offsets, strict=True):
            assert await guest.ack(handle, offset, topic=RETRY_V1) == ResponseCode.SUCCESS
        await stage.for_ms(REVIVED_MS)
        assert (await guest.pop(queue_id=-1)).messages == ()
        assert stage.node(BROKER).tables.pop.in_flight.counts == {}

    trace = pops(script)
    assert events(trace, "revived") == [("revived", 0), ("revived", 2)]
    popped, revived = trace.select("messages", event="popped")[0], trace.select("messages", event="revived")[0]
    assert INVISIBLE_MS + 2_000 <= revived.at_ms - popped.at_ms <= INVISIBLE_MS + 4_200


def test_a_message_that_is_never_acknowledged_is_revived_for_ever() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        for times in range(20):
            popped = await guest.pop(queue_id=-1)
            assert [message.reconsume_times for message in popped.messages] == [times]
            await stage.for_ms(REVIVED_MS)

    trace = pops(script)
    assert not [row for row in trace.select("messages", event="stored") if row.topic.startswith("%DLQ%")]


def test_the_idle_services_of_pop_cost_nothing() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        await guest.pop()
        await stage.for_ms(REVIVED_MS + 10_000)
        again = await guest.pop(queue_id=-1)
        await guest.ack(again.handles[0], 0, topic=RETRY_V1)
        await stage.for_ms(3_600_000)

    trace = pops(script)
    names = ("PopBufferMergeService", "PopLongPollingService", *(f"PopReviveService_{number}" for number in range(8)))
    late = [row for row in trace.select("causes") if row.name in names and row.at_ms > 60_000]
    assert late == []


@pytest.mark.trap("P4")
def test_an_acknowledgement_may_lie_behind_the_last_message_and_a_change_may_not() -> None:
    async def script(_stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 2)
        (handle, *_) = (await guest.pop()).handles
        assert [await guest.ack(handle, offset) for offset in (-1, 2, 3)] == [
            ResponseCode.NO_MESSAGE,
            ResponseCode.SUCCESS,
            ResponseCode.NO_MESSAGE,
        ]
        assert (await guest.change(handle, 2, 5_000)).code == ResponseCode.NO_MESSAGE
        assert (await guest.change(handle, 1, 5_000)).code == ResponseCode.SUCCESS

    pops(script)


@pytest.mark.trap("P5")
def test_acknowledgements_that_are_late_doubled_or_of_others_succeed_and_the_message_comes_back_all_the_same() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 2)
        popped = await guest.pop()
        stranger = await popping_guest(stage, 1)
        foreign = popped.handles[0].replace(BROKER, "nobody")
        await stage.for_ms(REVIVED_MS)
        assert await guest.ack(popped.handles[0], 0) == ResponseCode.SUCCESS
        assert await guest.ack(popped.handles[0], 0) == ResponseCode.SUCCESS
        assert await guest.ack(foreign, 0) == ResponseCode.SUCCESS
        assert await stranger.ack(popped.handles[1], 1, group="others") == ResponseCode.SUCCESS
        assert len((await guest.pop(queue_id=-1)).messages) == 2

    pops(script)


@pytest.mark.trap("P6")
def test_an_acknowledgement_with_the_handle_of_before_a_change_has_no_effect() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 2)
        popped = await guest.pop()
        for offset, handle in enumerate(popped.handles):
            reported = await guest.change(handle, offset, 20_000)
            changed = decode_header(headers.ChangeInvisibleTimeResponseHeader, reported.ext_fields)
            assert (changed.invisible_time, changed.revive_qid) == (20_000, 0)
            new = f"{offset} {changed.pop_time} 20000 0 0 {BROKER} 0 {offset}"
            assert await guest.ack(handle if offset == 0 else new, offset) == ResponseCode.SUCCESS
        await stage.for_ms(REVIVED_MS)
        assert (await guest.pop(queue_id=-1)).messages == ()
        await stage.for_ms(10_000)
        assert [message.reconsume_times for message in (await guest.pop(queue_id=-1)).messages] == [1]

    trace = pops(script)
    assert events(trace, "revived") == [("revived", 0)]


@pytest.mark.trap("P8")
@pytest.mark.parametrize("merge", [False, True])
def test_a_batch_of_acknowledgements_succeeds_and_passes_over_what_it_cannot_find(merge: bool) -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 4)
        popped = await guest.pop(invisible_ms=INVISIBLE_MS)
        assert await guest.batch_ack(popped, (0, 2, 40)) == ResponseCode.SUCCESS
        assert await guest.batch_ack(popped, (50,)) == ResponseCode.SUCCESS
        await stage.for_ms(REVIVED_MS)
        assert len((await guest.pop(queue_id=-1)).messages) == 2
        empty = await guest.ask(BROKER, RequestCode.BATCH_ACK_MESSAGE)
        assert empty.code == ResponseCode.NO_MESSAGE

    trace = pops(script, enable_pop_buffer_merge=merge)
    assert events(trace, "acked", "revived") == [("acked", 0), ("acked", 2), ("revived", 1), ("revived", 3)]


def test_a_pop_that_is_acknowledged_in_memory_is_never_written() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 2)
        popped = await guest.pop()
        assert offset_of(stage) == 0
        await guest.ack_all(popped)
        await stage.for_ms(10)
        assert offset_of(stage) == 2
        await guest.send(BROKER)
        await guest.pop()

    trace = pops(script, for_ms=60_000, enable_pop_buffer_merge=True)
    assert events(trace, "check_point", "revived") == [("check_point", 2), ("revived", 2)]
    assert {row.tags for row in trace.select("messages", event="acked")} == {"buffered"}


@pytest.mark.trap("P9")
@pytest.mark.parametrize("v2", [False, True])
def test_a_revived_message_wakes_a_held_pop_only_from_a_retry_topic_of_the_new_name(v2: bool) -> None:
    taken_ms = []

    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        # The first revival creates the retry topic, which a held pop does not know yet.
        for _ in range(2):
            await guest.pop(queue_id=-1)
            began_ms = stage.now_ms
            popped = await guest.pop(queue_id=-1, poll_ms=20_000)
            taken_ms.append(stage.now_ms - began_ms)
        assert len(popped.messages) == 1

    pops(script, enable_retry_topic_v2=v2)
    within_ms = REVIVED_MS if v2 else 20_000
    assert taken_ms[-1] <= within_ms
    assert v2 or taken_ms[-1] >= 19_900


@pytest.mark.trap("P10")
def test_a_held_pop_whose_filter_does_not_match_keeps_a_message_from_one_that_matches() -> None:
    codes = []

    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)  # offset 0 would wake whatever the filter says
        await guest.pop()
        other = await popping_guest(stage, 1)

        async def held(node: PoppingGuest, exp: str, poll_ms: int) -> None:
            codes.append((exp, (await node.pop(exp=exp, poll_ms=poll_ms)).offsets, round(stage.now_ms)))

        stage.world.nursery.start_soon(held, guest, "A", 3_000)
        await stage.for_ms(10)
        stage.world.nursery.start_soon(held, other, "B", 4_000)
        await stage.for_ms(1_000)
        await guest.send(BROKER, TAGS="B")
        await stage.for_ms(4_000)

    pops(script)
    (first, _, first_ms), (second, offsets, second_ms) = codes
    assert (first, second, offsets) == ("A", "B", [])
    # The pop of A took the message from the sight of B when its time was over: its filter passed over it.
    assert second_ms > first_ms


@pytest.mark.trap("P11")
def test_a_pop_whose_time_is_over_is_carried_out_once_more_and_may_find_messages() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        await guest.pop()
        began_ms = stage.now_ms
        # The revived message wakes no one, but it is there when the time is over.
        popped = await guest.pop(queue_id=-1, poll_ms=20_000)
        assert (popped.code, len(popped.messages)) == (ResponseCode.SUCCESS, 1)
        assert 19_950 <= stage.now_ms - began_ms <= 19_980

    pops(script)


def test_a_message_wakes_one_held_pop_of_all_queues_at_once() -> None:
    found = []

    async def script(stage: Stage, guest: PoppingGuest) -> None:
        other = await popping_guest(stage, 1)

        async def held(node: PoppingGuest) -> None:
            found.append(((await node.pop(queue_id=-1, poll_ms=5_000)).offsets, round(stage.now_ms)))

        stage.world.nursery.start_soon(held, guest)
        stage.world.nursery.start_soon(held, other)
        await stage.at_ms(1_000)
        reported = await guest.ask(BROKER, RequestCode.POLLING_INFO, headers.PollingInfoRequestHeader(GROUP, TOPIC, -1))
        assert decode_header(headers.PollingInfoResponseHeader, reported.ext_fields).polling_num == 2
        await guest.send(BROKER)
        await stage.for_ms(6_000)

    pops(script)
    assert found[0] == ([0], 1_004)
    assert found[1][0] == []
    assert 4_950 <= found[1][1] <= 4_980


def test_notifications_and_looks_take_nothing() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        requested = headers.NotificationRequestHeader(GROUP, TOPIC, -1, 3_000, 0)

        async def late() -> None:
            await stage.for_ms(1_000)
            await guest.send(BROKER)

        stage.world.nursery.start_soon(late)
        reported = await guest.ask(BROKER, RequestCode.NOTIFICATION, requested)
        assert decode_header(headers.NotificationResponseHeader, reported.ext_fields).has_msg
        peek = headers.PeekMessageRequestHeader(TOPIC, -1, 8, GROUP)
        for _ in range(2):
            seen = await guest.ask(BROKER, RequestCode.PEEK_MESSAGE, peek)
            assert seen.code == ResponseCode.SUCCESS
        assert (await guest.pop(queue_id=-1)).offsets == [0]
        assert (await guest.ask(BROKER, RequestCode.PEEK_MESSAGE, peek)).code == ResponseCode.PULL_NOT_FOUND

    pops(script)


@pytest.mark.trap("P28")
def test_a_message_that_is_deleted_meanwhile_counts_as_revived() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        await guest.pop()
        stage.node(BROKER).context.store.delete_before(TOPIC, 0, 1)
        await stage.for_ms(60_000)
        assert (await guest.pop(queue_id=-1)).messages == ()

    trace = pops(script)
    assert [(row.event, row.tags) for row in trace.select("messages", event="lost")] == [("lost", "gone")]
    assert trace.select("messages", event="re_put") == []


def test_a_restart_loses_neither_what_is_hidden_nor_what_was_acknowledged() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 3)
        popped = await guest.pop()
        assert await guest.ack(popped.handles[1], 1) == ResponseCode.SUCCESS
        await stage.for_ms(2_000)
        await stage.kill(BROKER)
        await stage.for_ms(1_000)
        stage.start(BROKER)
        await stage.for_ms(REVIVED_MS)
        again = await guest.pop(queue_id=-1)
        assert len(again.messages) >= 2

    trace = pops(script)
    assert [row.offset for row in trace.select("messages", event="revived", topic=TOPIC)] == [0, 2]


def test_an_orderly_stop_stores_what_is_in_memory() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 2)
        popped = await guest.pop()
        await guest.ack(popped.handles[0], 0)
        await stage.stop(BROKER)
        stage.start(BROKER)
        await stage.for_ms(REVIVED_MS + 5_000)
        assert offset_of(stage) == 2

    trace = pops(script, enable_pop_buffer_merge=True)
    assert events(trace, "check_point", "revived") == [("check_point", 0), ("revived", 1)]


BAD_HANDLES = ("", "x", "0 1 2", "0 now 10000 0 0 broker-a 0 0", "0 1 10000 x 0 broker-a 0 0", "9" * 300)


@pytest.mark.parametrize("handle", BAD_HANDLES)
def test_a_handle_that_cannot_be_read_is_refused_and_harms_nothing(handle: str) -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        popped = await guest.pop()
        assert await guest.ack(handle, 0) == ResponseCode.SYSTEM_ERROR
        assert (await guest.change(handle, 0, 1_000)).code == ResponseCode.SYSTEM_ERROR
        await guest.ack_all(popped)
        await stage.for_ms(REVIVED_MS)
        assert (await guest.pop(queue_id=-1)).messages == ()

    pops(script)


def test_a_handle_of_another_queue_or_of_long_ago_acknowledges_nothing() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        (handle,) = (await guest.pop()).handles
        words = handle.split()
        for place, word in ((0, "7"), (1, "1000"), (2, "5"), (3, "3"), (3, "-1"), (3, "77")):
            forged = " ".join([*words[:place], word, *words[place + 1 :]])
            assert await guest.ack(forged, 0) == ResponseCode.SUCCESS
        assert await guest.ack(handle, 0, queue_id=1) == ResponseCode.SUCCESS
        assert await guest.ack(handle, 0, queue_id=4) == ResponseCode.MESSAGE_ILLEGAL
        assert await guest.ack(handle, 0, topic="nothing") == ResponseCode.TOPIC_NOT_EXIST
        await stage.for_ms(REVIVED_MS)
        assert len((await guest.pop(queue_id=-1)).messages) == 1

    pops(script)


@pytest.mark.parametrize("invisible_ms", [0, -5, 7 * 24 * 3_600_000])
def test_an_invisible_time_of_nothing_or_of_a_week_is_taken(invisible_ms: int) -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await send(guest, 1)
        popped = await guest.pop(invisible_ms=invisible_ms)
        assert popped.offsets == [0]
        await stage.for_ms(20_000)
        again = await guest.pop(queue_id=-1)
        assert len(again.messages) == (1 if invisible_ms <= 0 else 0)

    pops(script)


def test_refusals_come_in_the_order_of_rocketmq() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        now_ms = stage.host(BROKER).clock.now_ms()
        refused = [
            (await guest.pop(topic="nothing", born_ms=now_ms - 600)).code,
            (await guest.pop(topic="nothing", maximum=33)).code,
            (await guest.pop(topic="nothing")).code,
            (await guest.pop(queue_id=4)).code,
            (await guest.pop(exp="||")).code,
            (await guest.pop(exp="a >", exp_type="SQL92")).code,
        ]
        assert refused == [
            ResponseCode.POLLING_TIMEOUT,
            ResponseCode.INVALID_PARAMETER,
            ResponseCode.TOPIC_NOT_EXIST,
            ResponseCode.INVALID_PARAMETER,
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
        ]

    pops(script)
