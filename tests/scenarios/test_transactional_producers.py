"""Producers that send in transactions: how they end, who is asked, and what is heard by no one."""

import attrs
import pytest

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import Scenario
from emulator.testing import TOPIC, Script, Stage, Trace, a_scenario, broker_groups, execute
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.config import BrokerConfig, NameserverConfig
from nodes.protocol.codes import RequestCode
from support.grouped import a_group

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
HALF, GIVEN_UP = "RMQ_SYS_TRANS_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"
END, CHECK = int(RequestCode.END_TRANSACTION), int(RequestCode.CHECK_TRANSACTION_STATE)
SECONDS = 1_000


def a_shop(*transactions: LocalTransactions, broker: BrokerConfig | None = None) -> Scenario:
    """A broker, a group that consumes, and a producer for each, all of one group, with a message a second."""
    producers = (
        ProducerSpec(f"p{i}", "shop", TOPIC, 1, transactions=transaction)
        for i, transaction in enumerate(transactions, start=1)
    )
    return attrs.evolve(a_scenario(consumers=1, brokers=broker_groups(config=broker)), producers=tuple(producers))


def stored(trace: Trace, topic: str = TOPIC) -> list[float]:
    return [row.at_ms for row in trace.select("messages", event="stored", topic=topic)]


def ends(trace: Trace, src: str = "p1") -> list[str]:
    """To whom each END_TRANSACTION went."""
    return [row.dst for row in trace.select("rpc", src=src, code=END, kind="oneway")]


def requested(trace: Trace) -> list[tuple[str, float]]:
    rows = trace.select("rpc", code=CHECK, kind="oneway", event="delivered")
    return [(row.dst, row.at_ms) for row in rows]


def after(duration_ms: float, deed: Script) -> Script:
    async def script(stage: Stage) -> None:
        await stage.at_ms(duration_ms)
        await deed(stage)

    return script


def test_what_is_committed_is_stored_when_its_local_transaction_is_over_and_consumed() -> None:
    trace = execute(a_shop(LocalTransactions(COMMIT, 300)), for_ms=60 * SECONDS)

    halves, orders = stored(trace, HALF), stored(trace)
    assert len(orders) > 50
    assert [order - half for half, order in zip(halves, orders, strict=False)] == [302] * len(orders)
    assert len(trace.consumed()) >= len(orders) - 1
    assert dict.fromkeys(ends(trace)) == {"broker-a": None}
    assert requested(trace) == []


def test_what_is_rolled_back_is_stored_for_no_one() -> None:
    trace = execute(a_shop(LocalTransactions(ROLLBACK)), for_ms=60 * SECONDS)

    assert (stored(trace), requested(trace)) == ([], [])
    assert len(ends(trace)) == len(stored(trace, HALF)) > 50


@pytest.mark.parametrize(("check_state", "comes"), [(COMMIT, True), (ROLLBACK, False)])
def test_who_does_not_know_is_asked_and_believed(check_state: LocalTransactionState, comes: bool) -> None:
    trace = execute(a_shop(LocalTransactions(UNKNOWN, check_state=check_state)), for_ms=100 * SECONDS)

    # The first check is at 30 s, and asks about all that are older than 6 s.
    requested_first = [at_ms for _, at_ms in requested(trace) if at_ms < 40 * SECONDS]
    assert len(requested_first) == len([at_ms for at_ms in stored(trace, HALF) if at_ms < 24 * SECONDS]) > 20
    assert (len(stored(trace)) > 60) is comes
    assert all(at_ms > 30 * SECONDS for at_ms in stored(trace))
    assert len(ends(trace)) > 2 * len(requested_first)  # also those that said nothing, and had to be asked


def test_who_never_knows_is_asked_until_the_broker_gives_up() -> None:
    broker = BrokerConfig(transaction_check_max=2)

    async def script(stage: Stage) -> None:
        await stage.at_ms(5 * SECONDS)
        await stage.kill("p2")
        await stage.at_ms(130 * SECONDS)

    # One that sends, and dies; another of its group, which sends much later, is there to be asked.
    trace = execute(a_shop(LocalTransactions(UNKNOWN, 10**9), LocalTransactions(UNKNOWN), broker=broker), script)

    of_the_dead = len([at_ms for at_ms in stored(trace, HALF) if at_ms < 5 * SECONDS])
    assert of_the_dead == 6
    assert [node for node, _ in requested(trace)] == ["p1"] * (2 * of_the_dead)
    assert len(stored(trace, GIVEN_UP)) == of_the_dead
    assert stored(trace) == []


def test_when_a_producer_dies_before_it_has_ended_its_transaction_any_other_of_its_group_is_asked() -> None:
    dying, other = LocalTransactions(COMMIT, 20 * SECONDS), LocalTransactions(COMMIT, 10**9, check_state=ROLLBACK)
    deed = after(10 * SECONDS, lambda stage: stage.kill("p1"))
    trace = execute(a_shop(dying, other), deed, for_ms=60 * SECONDS)

    assert [node for node, at_ms in requested(trace) if at_ms < 40 * SECONDS] == ["p2", "p2"]
    # It speaks for the dead, of whose transaction it knows nothing, and for its own, which it still is at.
    assert ends(trace, "p1") == []
    assert ends(trace, "p2") == ["broker-a"] * 2
    assert stored(trace) == []


def test_without_anybody_else_of_its_group_no_one_is_asked_before_it_is_back() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(10 * SECONDS)
        await stage.kill("p1")
        await stage.at_ms(70 * SECONDS)
        stage.start("p1")
        await stage.at_ms(100 * SECONDS)

    trace = execute(a_shop(LocalTransactions(COMMIT, 20 * SECONDS)), script)

    times = [at_ms for _, at_ms in requested(trace)]
    assert [at_ms > 90 * SECONDS for at_ms in times][:1] == [True]
    assert len([at_ms for at_ms in stored(trace) if at_ms > 90 * SECONDS]) >= 1


def test_a_half_message_that_is_retained_less_well_than_promised_is_rolled_back() -> None:
    async def script(stage: Stage) -> None:
        stage.host("broker-a").disk.slow_down("slow", 300)
        await stage.at_ms(20 * SECONDS)

    never_ms = 10**7
    others = {"flush_consumer_offset_interval": never_ms, "flush_delay_offset_interval": never_ms}
    broker = BrokerConfig(sync_flush_timeout=100, **others)
    trace = execute(a_shop(LocalTransactions(COMMIT), broker=broker), script, for_ms=90 * SECONDS)

    assert len(ends(trace)) > 80
    assert [at_ms for at_ms in stored(trace) if at_ms > 1 * SECONDS] == []
    assert requested(trace) == []


@pytest.mark.trap("C32")
def test_the_end_of_a_transaction_whose_master_is_gone_goes_to_a_nameserver_and_a_check_finds_it_out_later() -> None:
    group = a_group(nameserver=NameserverConfig(), config=BrokerConfig(), slaves=1)
    producer = ProducerSpec("p1", "shop", TOPIC, 1, transactions=LocalTransactions(COMMIT, 60 * SECONDS))

    async def script(stage: Stage) -> None:
        await stage.at_ms(10 * SECONDS)
        await stage.kill("ba")
        await stage.at_ms(75 * SECONDS)
        stage.start("ba")
        await stage.at_ms(150 * SECONDS)

    trace = execute(attrs.evolve(group, producers=(producer,)), script)

    # The master's id is in no route any more, so there is no address; and no address means a nameserver.
    assert ends(trace)[0] == "ns-1"
    (lost, *_) = trace.select("rpc", src="p1", code=END)
    assert (lost.event, trace.select("rpc", src="ns-1", dst="p1", code=END)) == ("delivered", [])
    node, at_ms = requested(trace)[0]
    assert (node, at_ms > 100 * SECONDS) == ("p1", True)
    assert ends(trace)[1] == "ba"
    assert at_ms < stored(trace)[0] < at_ms + 10
