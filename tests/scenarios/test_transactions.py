"""Half messages: committed, rolled back, asked about, given up."""

from typing import Any

import pytest

from emulator.spec.model.scenario import BrokerSpec, Scenario, TopicSpec
from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_message import ResumeCheckHalfMessageRequestHeader
from nodes.protocol.message_id import offset_message_id
from support.asking_guest import COMMIT, ROLLBACK, UNKNOWN, Guest, Prepared, a_guest, messages_of
from support.grouped import BEFORE_MS, MASTER, S1, a_group, acting, requests

BROKER, OTHER = "broker-a", "bb"
HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
GIVEN_UP = "TRANS_CHECK_MAX_TIME_TOPIC"
CHECK = RequestCode.CHECK_TRANSACTION_STATE
OF_BROKER = {"CLUSTER": "DefaultCluster", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
"""Properties that a broker gives each message with a unique id."""


def stored(trace: Trace, topic: str, node: str = BROKER) -> list[float]:
    return [row.at_ms for row in trace.select("messages", node=node, event="stored", topic=topic)]


def checks(trace: Trace, node: str = BROKER) -> list[float]:
    rows = trace.select("rpc", src=node, code=int(CHECK), kind="oneway")
    return [row.sent_ms for row in rows]


async def a_producer(stage: Stage, node: str = BROKER) -> Guest:
    guest = await a_guest(stage)
    await guest.beat(node)
    return guest


def test_a_half_message_is_seen_by_no_one_until_it_is_committed_and_then_as_it_was_sent() -> None:
    found: list[Any] = []

    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        half = await guest.prepare(BROKER, KEYS="order-7", TAGS="paid")
        found.append(await guest.query(BROKER, "order-7"))
        await stage.for_ms(2_000)
        found.append((await guest.end(BROKER, half, COMMIT)).code)
        found.append(await guest.query(BROKER, "U1"))
        await stage.for_ms(100_000)

    trace = execute(a_scenario(queues=1, consumers=1), script)
    before, code, (message,) = found
    assert (before, code) == ([], ResponseCode.SUCCESS)
    assert (message.topic, message.queue_id, message.body, message.sys_flag) == ("orders", 0, b"x", COMMIT)
    expected = {"PGROUP": "pg", "UNIQ_KEY": "U1", "KEYS": "order-7", "TAGS": "paid", **OF_BROKER}
    assert message.properties == {**expected, "__transactionId__": "U1"}
    assert len(trace.consumed()) == 1
    assert checks(trace) == []
    # The end is noted in memory first; one message sends it to the check, and so to who takes over the log.
    assert len(stored(trace, OP)) == 1


def test_what_is_rolled_back_is_never_seen_and_never_asked_about() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        half = await guest.prepare(BROKER)
        assert (await guest.end(BROKER, half, ROLLBACK)).code == ResponseCode.SUCCESS
        await stage.for_ms(200_000)

    trace = execute(a_scenario(), script)
    assert (stored(trace, "orders"), checks(trace)) == ([], [])
    assert len(stored(trace, HALF)) == 1


def test_of_a_transaction_without_end_another_producer_of_the_group_is_asked_when_the_first_is_dead() -> None:
    answered = []

    async def script(stage: Stage) -> None:
        first, second = await a_guest(stage, 1), await a_guest(stage, 2)
        await first.beat(BROKER)
        await first.prepare(BROKER, KEYS="k")
        await first.host.kill()
        await second.beat(BROKER, client_id="guest@2")
        while not second.requested(CHECK):
            await stage.for_ms(1_000)
        (request,) = second.requested(CHECK)
        (shown,) = messages_of(request)
        assert (shown.topic, shown.queue_id, shown.properties["PGROUP"]) == ("orders", 0, "pg")
        assert request.ext_fields["offsetMsgId"] == offset_message_id(shown.store_host, shown.commit_log_offset)
        assert (request.ext_fields["msgId"], request.ext_fields["transactionId"]) == ("U1", "U1")
        # It is asked about the copy behind the others, not about the message that was sent.
        assert Prepared.questioned(request).queue_offset == 1
        answered.append(await second.end(BROKER, Prepared.questioned(request), COMMIT, checked=True))
        await stage.for_ms(100_000)

    trace = execute(a_scenario(), script)
    assert answered[0].code == ResponseCode.SUCCESS
    (requested,) = checks(trace)
    assert 6_000 < requested <= 31_000
    assert len(stored(trace, "orders")) == 1


@pytest.mark.parametrize(("members", "requested"), [(1, 3), (0, 0)])
def test_a_producer_that_does_not_know_is_asked_again_until_the_message_is_given_up(
    members: int, requested: int
) -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        if members:
            await guest.beat(BROKER)
        half = await guest.prepare(BROKER)
        guest.end_oneway(BROKER, half, UNKNOWN)
        await stage.for_ms(80_000)
        if members:
            await guest.beat(BROKER)
        await stage.for_ms(100_000)

    trace = execute(a_scenario(brokers=broker_groups(config=BrokerConfig(transaction_check_max=3))), script)
    assert len(checks(trace)) == requested
    assert [round(b - a) for a, b in zip(checks(trace), checks(trace)[1:], strict=False)] == [30_000] * max(
        0, requested - 1
    )
    # No one needs to hear the question: also what was never asked aloud is given up after as many checks.
    assert (len(stored(trace, GIVEN_UP)), stored(trace, "orders")) == (1, [])


def test_who_may_end_a_transaction_is_looked_at() -> None:
    codes = []

    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        half = await guest.prepare(BROKER)
        wrong = [
            await guest.end(BROKER, half, COMMIT, group="strangers"),
            await guest.end(BROKER, half, COMMIT, shift=1),
            await guest.end(BROKER, Prepared(0, 12_345), COMMIT),
        ]
        codes.extend((answer.code, answer.remark) for answer in wrong)

    execute(a_scenario(), script)
    assert [code for code, _ in codes] == [ResponseCode.SYSTEM_ERROR] * 3
    assert [remark for _, remark in codes] == [
        "The producer group wrong",
        "The transaction state table offset wrong",
        "Find prepared transaction message failed",
    ]


def test_with_an_immunity_time_no_one_is_asked_before_and_the_producer_may_not_end_it_by_itself_after() -> None:
    codes = []

    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        half = await guest.prepare(BROKER, CHECK_IMMUNITY_TIME_IN_SECONDS="100")
        for beat in range(5):
            await stage.at_ms(25_000 * (beat + 1))
            await guest.beat(BROKER)
        codes.append((await guest.end(BROKER, half, COMMIT)).code)
        (request,) = guest.requested(CHECK)
        codes.append((await guest.end(BROKER, Prepared.questioned(request), COMMIT, checked=True)).code)

    trace = execute(a_scenario(), script)
    assert codes == [ResponseCode.ILLEGAL_OPERATION, ResponseCode.SUCCESS]
    assert [100_000 < at < 125_000 for at in checks(trace)] == [True]


def test_a_message_that_was_put_back_as_immune_is_asked_about_although_its_transaction_has_ended() -> None:
    # Its end names the offset where it lay first, and ends before the offset where a check begins are not read.
    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        half = await guest.prepare(BROKER, CHECK_IMMUNITY_TIME_IN_SECONDS="100")
        await stage.at_ms(40_000)
        assert (await guest.end(BROKER, half, COMMIT)).code == ResponseCode.SUCCESS
        await stage.at_ms(300_000)

    trace = execute(a_scenario(), script)
    assert (len(stored(trace, "orders")), [at > 100_000 for at in checks(trace)]) == (1, [True])


def test_transactions_can_be_switched_off() -> None:
    codes = []

    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        codes.append((await guest.send(BROKER, TRAN_MSG="true", PGROUP="pg")).code)
        codes.append((await guest.send(BROKER)).code)

    execute(a_scenario(brokers=broker_groups(config=BrokerConfig(reject_transaction_message=True))), script)
    assert codes == [ResponseCode.NO_PERMISSION, ResponseCode.SUCCESS]


def test_after_a_restart_half_messages_are_checked_again_and_what_had_ended_is_known() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        done = await guest.prepare(BROKER, key="DONE")
        await guest.prepare(BROKER, key="OPEN")
        await guest.end(BROKER, done, ROLLBACK)
        await stage.at_ms(20_000)
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.at_ms(25_000)
        await guest.beat(BROKER)
        await stage.at_ms(60_000)
        assert [request.ext_fields["msgId"] for request in guest.requested(CHECK)] == ["OPEN"]

    execute(a_scenario(), script)


def test_a_message_that_was_given_up_can_be_asked_about_again() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_producer(stage)
        await guest.prepare(BROKER)
        await stage.at_ms(100_000)
        store = stage.node(BROKER).context.store
        (given_up,) = store.get_message(GIVEN_UP, 0, 0).messages
        message_id = offset_message_id(given_up.store_host, given_up.commit_log_offset)
        await guest.beat(BROKER)
        header = ResumeCheckHalfMessageRequestHeader(message_id)
        assert (await guest.ask(BROKER, RequestCode.RESUME_CHECK_HALF_MESSAGE, header)).code == ResponseCode.SUCCESS
        refused = await guest.ask(
            BROKER, RequestCode.RESUME_CHECK_HALF_MESSAGE, ResumeCheckHalfMessageRequestHeader("nonsense")
        )
        assert refused.code == ResponseCode.SYSTEM_ERROR
        await stage.at_ms(140_000)

    trace = execute(a_scenario(brokers=broker_groups(config=BrokerConfig(transaction_check_max=1))), script)
    assert len(checks(trace)) == 2


def with_another_broker(**options: Any) -> Scenario:
    group = a_group(config=acting(**options))
    orders = TopicSpec("orders", ("ba", OTHER), 1)
    brokers = (*group.brokers, BrokerSpec(OTHER, config=acting(total_replicas=1)))
    return Scenario(
        name="two-groups", seed=1, run_for_ms=group.run_for_ms, start_spread_ms=0, network=group.network,
        nameservers=group.nameservers, brokers=brokers, topics=(orders,),
    )  # fmt: skip


async def master_dies_with_a_half_message(stage: Stage) -> Guest:
    await stage.at_ms(BEFORE_MS)
    guest = await a_producer(stage, MASTER)
    half = await guest.prepare(MASTER)
    await stage.for_ms(2_000)
    refused = await guest.end(S1, half, COMMIT)
    assert refused.code == ResponseCode.SLAVE_NOT_AVAILABLE
    await stage.power_off(MASTER)
    await stage.for_ms(100_000)
    return guest


def test_the_half_messages_of_a_dead_master_escape_to_another_broker_as_what_they_were() -> None:
    trace = execute(with_another_broker(enable_remote_escape=True), master_dies_with_a_half_message)
    escaped = requests(trace, S1, OTHER, RequestCode.SEND_MESSAGE_V2)
    assert len(escaped) == 1
    assert stored(trace, HALF, OTHER)[0] >= escaped[0].at_ms
    assert stored(trace, "orders", OTHER) == []


@pytest.mark.trap("M62")
def test_a_half_message_that_cannot_escape_is_passed_over_after_eleven_failures() -> None:
    seen = []

    async def script(stage: Stage) -> None:
        await master_dies_with_a_half_message(stage)
        offsets = stage.node(S1).tables.clients.offsets
        seen.append(offsets.query_offset("CID_RMQ_SYS_TRANS", HALF, 0))

    trace = execute(with_another_broker(enable_remote_escape=False), script)
    assert seen == [1]
    assert (stored(trace, HALF, OTHER), checks(trace, S1)) == ([], [])
    discarded = trace.select("messages", event="discarded")
    assert [(row.node, row.topic, row.key, row.tags) for row in discarded] == [(S1, "orders", "U1", "escape_failed")]
