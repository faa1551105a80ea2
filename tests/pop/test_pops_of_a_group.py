"""POP when a master dies: what its slave hands out, where records go, and who revives."""

from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import pytest

from emulator.spec.model.scenario import Scenario, TopicSpec
from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.bodies import KvTable
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.registry import decode_body
from support.grouped import BEFORE_MS, MASTER, OTHER, S1, two_groups
from support.popping_guest import BROKER, GROUP, TOPIC, PoppingGuest, popping_guest

RETRY = f"%RETRY%{GROUP}_{TOPIC}"
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"
SLAVE = "broker-a-s1"
INVISIBLE_MS = 10_000
Script = Callable[[Stage, PoppingGuest], Awaitable[None]]


def runs(scenario: Scenario, script: Script) -> Trace:
    async def main(stage: Stage) -> None:
        await script(stage, await popping_guest(stage))

    return execute(scenario, main)


def reported(trace: Trace, node: str, *events: str) -> list[tuple[str, str]]:
    """Event and outcome at a broker, in order."""
    return [(row.event, row.tags) for row in trace.select("messages", node=node) if row.event in events]


def copies(trace: Trace, node: str) -> int:
    return len(trace.select("messages", node=node, event="stored", topic=RETRY))


async def pop_and_kill(stage: Stage, guest: PoppingGuest, *, invisible_ms: int) -> None:
    """Pop a message of the master, and kill it a second later."""
    await stage.at_ms(BEFORE_MS)
    await guest.send(MASTER)
    assert (await guest.pop(MASTER, invisible_ms=invisible_ms)).offsets == [0]
    await stage.for_ms(1_000)
    await stage.kill(MASTER)


AT_ONCE_MS = 1_000
"""The check point of a pop that hides no longer goes to the log at once, not to the wheel."""


@pytest.mark.trap("P38")
def test_a_plain_slave_hands_messages_out_without_a_check_point_and_forgets_that_within_5_s() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await guest.send(BROKER)
        await stage.for_ms(5_000)
        assert (await guest.pop(SLAVE)).offsets == [0]
        assert (await guest.pop(SLAVE)).messages == ()
        await stage.for_ms(5_000)
        assert (await guest.pop(SLAVE)).offsets == [0]

    trace = runs(a_scenario(brokers=broker_groups(slaves=1)), script)
    assert reported(trace, SLAVE, "check_point") == [("check_point", "refused")] * 2


@pytest.mark.trap("P2")
@pytest.mark.trap("P38")
def test_a_refused_check_point_is_reported_once_scanned_every_5_ms_and_blocks_the_offset() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await guest.send(MASTER)
        await stage.for_ms(1_000)
        assert (await guest.pop(S1)).offsets == [0]
        await stage.for_ms(1_000)
        offsets = stage.node(S1).tables.clients.offsets
        assert offsets.query_offset(GROUP, TOPIC, 0) == 0

    trace = runs(two_groups(), script)
    assert reported(trace, S1, "check_point") == [("check_point", "refused")]
    assert 199 <= len(trace.select("causes", node=S1, name="PopBufferMergeService")) <= 202


@pytest.mark.trap("P20")
def test_an_acting_slave_without_escape_loses_what_it_revives_and_its_offset_moves_on() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await pop_and_kill(stage, guest, invisible_ms=AT_ONCE_MS)
        await stage.for_ms(60_000)

    trace = runs(two_groups(), script)
    assert reported(trace, S1, "revived", "re_put") == [("revived", "refused"), ("re_put", "refused")]
    assert trace.select("messages", node=S1, event="committed", group=REVIVE_GROUP)
    assert [copies(trace, node) for node in (MASTER, S1, OTHER)] == [0, 0, 0]


@pytest.mark.trap("M61")
@pytest.mark.trap("P25")
@pytest.mark.parametrize("known", [True, False])
def test_a_copy_that_reached_another_broker_counts_as_failed_and_without_a_route_it_is_lost(known: bool) -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await pop_and_kill(stage, guest, invisible_ms=AT_ONCE_MS)
        await stage.for_ms(60_000)
        assert len((await guest.pop(OTHER, queue_id=-1)).messages) == known

    topics = (TopicSpec(RETRY, (OTHER,), 1),) if known else ()
    trace = runs(two_groups(topics=topics, enable_remote_escape=True), script)
    outcome = "remote" if known else "refused"
    assert reported(trace, S1, "revived", "re_put") == [("revived", outcome), ("re_put", "refused")]
    assert [copies(trace, node) for node in (MASTER, S1, OTHER)] == [0, 0, int(known)]


@pytest.mark.trap("P23")
def test_all_records_of_an_acting_slave_go_to_one_queue_of_another_broker() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        for _ in range(4):
            await guest.send(MASTER)
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.for_ms(40_000)
        for _ in range(4):
            popped = await guest.pop(S1, maximum=1, invisible_ms=INVISIBLE_MS)
            await guest.ack_all(popped, S1)
        await stage.for_ms(30_000)

    trace = runs(two_groups(enable_remote_escape=True), script)
    records = [row for row in trace.select("messages", node=OTHER, event="stored") if "REVIVE_LOG" in row.topic]
    assert sorted(row.tags for row in records) == ["ack"] * 4 + ["ck"] * 4
    assert len({row.queue_id for row in records}) == 1
    assert copies(trace, OTHER) == 0


@pytest.mark.trap("P24")
def test_a_message_of_a_slave_that_may_not_be_read_is_put_off_until_its_master_is_back() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await pop_and_kill(stage, guest, invisible_ms=INVISIBLE_MS)
        await stage.for_ms(90_000)
        stage.start(MASTER)
        await stage.for_ms(120_000)

    trace = runs(two_groups(enable_remote_escape=True, slave_read_enable=False), script)
    again = [
        parse_extra_info(row.key).invisible_time_ms for row in trace.select("messages", node=OTHER, event="re_put")
    ]
    assert again[:3] == [20_000, 40_000, 70_000]
    assert copies(trace, OTHER) == 1


@pytest.mark.trap("P27")
@pytest.mark.trap("M54")
def test_a_master_that_returns_revives_from_its_start_on_what_its_slave_has_revived_already() -> None:
    active = []

    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await guest.send(MASTER)
        await guest.pop(MASTER, invisible_ms=AT_ONCE_MS)
        await stage.for_ms(3_000)
        # A record that is due two seconds behind the first one, so that a pass handles that without its timer.
        await guest.send(MASTER)
        await guest.pop(MASTER, invisible_ms=AT_ONCE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(60_000)
        stage.start(MASTER)
        await stage.for_ms(100)
        reported_ = await guest.ask(MASTER, RequestCode.GET_BROKER_RUNTIME_INFO)
        active.append(decode_body(KvTable, reported_.body).table["brokerActive"])
        await stage.for_ms(30_000)

    topics = (TopicSpec(RETRY, (OTHER,), 1),)
    trace = runs(two_groups(topics=topics, enable_remote_escape=True, revive_queue_num=1), script)
    (revived,) = [row for row in trace.select("messages", node=MASTER, event="revived") if row.offset == 0]
    assert revived.tags == "stored"
    assert ("revived", "remote") in reported(trace, S1, "revived")
    assert copies(trace, OTHER) >= 1
    # It is isolated then: its other special services do not run yet.
    services = [row for row in trace.select("beliefs", node=MASTER, kind="special_service") if row.value == "true"]
    assert services[-1].at_ms > revived.at_ms
    assert active == ["true"]


@pytest.mark.trap("P35")
def test_a_fail_over_hands_an_ordered_queue_out_that_is_in_the_hands_of_another_consumer() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await guest.send(MASTER)
        assert (await guest.pop(MASTER, order=True, invisible_ms=300_000)).offsets == [0]
        await stage.at_ms(90_000)
        await stage.kill(MASTER)
        await stage.for_ms(30_000)
        assert (await guest.pop(S1, order=True, invisible_ms=300_000)).offsets == [0]

    runs(two_groups(), script)


@pytest.mark.trap("P7")
def test_a_change_whose_acknowledgement_is_lost_leaves_two_check_points_and_so_two_copies() -> None:
    codes = []

    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await guest.send(MASTER)
        await stage.for_ms(1_000)
        await stage.kill(MASTER)
        await stage.for_ms(40_000)
        popped = await guest.pop(S1, invisible_ms=INVISIBLE_MS)
        cut = partial(stage.cut, S1, OTHER, one_way=True)
        stage.at_first("messages", cut, node=OTHER, event="stored", tags="ck")
        codes.append((await guest.change(popped.handles[0], 0, INVISIBLE_MS, S1)).code)
        stage.heal(S1, OTHER)
        await stage.for_ms(60_000)

    trace = runs(two_groups(enable_remote_escape=True), script)
    assert codes == [ResponseCode.SYSTEM_ERROR]
    assert copies(trace, OTHER) == 2


@pytest.mark.trap("P14")
def test_a_revive_offset_beyond_the_log_keeps_a_queue_silent() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        topic = "rmq_sys_REVIVE_LOG_DefaultCluster"
        offsets = stage.node(BROKER).tables.clients.offsets
        await guest.send(BROKER)
        await guest.pop()
        await stage.for_ms(20_000)
        # Anybody may commit any offset.
        commit = headers.UpdateConsumerOffsetRequestHeader(REVIVE_GROUP, topic, 1, 100)
        await guest.ask(BROKER, RequestCode.UPDATE_CONSUMER_OFFSET, commit)
        offsets.commit_offset(REVIVE_GROUP, topic, 1, 100, now_ms=0)
        await guest.pop(queue_id=-1)
        await stage.for_ms(60_000)
        assert offsets.query_offset(REVIVE_GROUP, topic, 1) == 0
        assert (await guest.pop(queue_id=-1)).messages == ()

    trace = runs(a_scenario(), script)
    assert copies(trace, BROKER) == 1


def test_a_broker_that_is_never_popped_from_has_the_row_counts_that_it_had() -> None:
    trace = execute(
        attrs.evolve(a_scenario(brokers=broker_groups(config=BrokerConfig(), slaves=1)), seed=3), for_ms=60_000
    )

    names = {row.name for row in trace.select("causes")}
    assert not [name for name in names if "Pop" in name]


def test_a_slave_that_acts_revives_nothing_once_its_master_is_back() -> None:
    async def script(stage: Stage, guest: PoppingGuest) -> None:
        await stage.at_ms(BEFORE_MS)
        await stage.kill(MASTER)
        await stage.for_ms(30_000)
        assert stage.node(S1).parts.messages.pops.revive.is_running
        stage.start(MASTER)
        await stage.for_ms(60_000)
        assert not stage.node(S1).parts.messages.pops.revive.is_running
        assert stage.node(MASTER).parts.messages.pops.revive.is_running
        await guest.send(MASTER)
        await guest.pop(MASTER, invisible_ms=INVISIBLE_MS)
        await stage.for_ms(30_000)

    trace = runs(two_groups(), script)
    assert reported(trace, MASTER, "revived") == [("revived", "stored")]
    assert reported(trace, S1, "revived") == []
