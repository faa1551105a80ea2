"""Messages that a group gets late, again or never: each harm has rows in the trace, and its healthy twin has none."""

import json
from collections import Counter
from itertools import pairwise

import attrs
import pytest

from emulator.spec import TopicSpec, loads
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import Scenario
from emulator.testing import GROUP, TOPIC, RowOfTrace, Stage, Trace, a_scenario, broker_groups, consumer_group, execute
from nodes.beliefs import DiscardReason, MessageEvent
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.config import BrokerConfig
from support.administrator import an_administrator
from support.asking_guest import a_guest
from support.retried import DLQ, one_consumer

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
SECOND = 1_000
_POPS = """
[scenario]
name = "slow-pops"
seed = 1
run_for_s = 120
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
queues = 1
[[consumer]]
group = "g"
topics = ["orders"]
mode = "pop"
consume_ms = {consume_ms}
options = {{ popInvisibleTime = 10000, consumeFromWhere = "CONSUME_FROM_FIRST_OFFSET" }}
[[producer]]
group = "shop"
topic = "orders"
rate_per_s = 1
messages = 3
"""


def events(trace: Trace, *wanted: MessageEvent) -> list[RowOfTrace]:
    """The rows of these events, in order."""
    return [row for row in trace.rows["messages"] if row.event in wanted]


def place(row: RowOfTrace) -> str:
    """As the key of a copy names it."""
    return f"{row.topic} {row.broker_name} {row.queue_id} {row.offset}"


def origins(trace: Trace) -> dict[str, str]:
    """Mapping place of a copy -> place of the message that was stored first."""
    found: dict[str, str] = {}
    for row in events(trace, MessageEvent.RETRIED, MessageEvent.DEAD_LETTERED):
        found[place(row)] = found.get(row.key, row.key)
    return found


# --- redelivered, and given up by a group ---------------------------------------------


@pytest.mark.parametrize("fail_times", [0, 1, 5])
def test_a_dead_letter_and_each_delivery_before_it_lead_to_the_message_that_was_sent(fail_times: int) -> None:
    trace = execute(one_consumer(fail_times, max_reconsume_times=2), for_ms=120 * SECOND)

    letters = events(trace, MessageEvent.DEAD_LETTERED)
    assert {(row.group, row.topic, row.tags) for row in letters} == ({(GROUP, DLQ, "3")} if fail_times == 5 else set())
    assert len(letters) == len(trace.select("messages", event="stored", topic=DLQ))
    of_copies = origins(trace)
    deliveries = Counter(of_copies.get(place(row), place(row)) for row in trace.select("messages", event="consumed"))
    assert deliveries[f"{TOPIC} broker-a 0 0"] == min(fail_times, 2) + 1
    assert all(row.key.startswith(f"{TOPIC} broker-a 0 ") for row in letters)
    if fail_times == 0:
        assert of_copies == {}


@pytest.mark.parametrize(("consume_ms", "deliveries"), [(100, 1), (15_000, 5)])
def test_pops_that_end_before_the_listener_does_lead_to_the_message_that_was_sent(
    consume_ms: int, deliveries: int
) -> None:
    trace = execute(loads(_POPS.format(consume_ms=consume_ms), "pops.toml"), for_ms=120 * SECOND)

    of_copies = origins(trace)
    popped = Counter(of_copies.get(place(row), place(row)) for row in trace.select("messages", event="popped"))
    assert list(popped) == [f"{TOPIC} broker-a 0 {offset}" for offset in range(3)]
    assert min(popped.values()) >= deliveries
    assert (len(of_copies) == 0) is (deliveries == 1)
    assert len(events(trace, MessageEvent.RETRIED)) == len(events(trace, MessageEvent.REVIVED))


def test_what_a_group_without_a_retry_queue_sends_back_is_discarded() -> None:
    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        await admin.update_group(GROUP, retry_queue_nums=0)
        await stage.at_ms(40 * SECOND)

    trace = execute(one_consumer(1), script)
    discarded = events(trace, MessageEvent.DISCARDED)
    assert [(row.group, place(row), row.tags) for row in discarded[:2]] == [
        (GROUP, f"{TOPIC} broker-a 0 {offset}", DiscardReason.NO_RETRY_QUEUE) for offset in range(2)
    ]
    assert events(trace, MessageEvent.RETRIED) == []


# --- transactions ----------------------------------------------------------------------


def a_shop(transactions: LocalTransactions, messages: int = 0, **broker: int) -> Scenario:
    """A group that consumes, and a producer of one message a second, each in a transaction."""
    producer = ProducerSpec("p1", "shop", TOPIC, 1, transactions=transactions, messages=messages)
    return attrs.evolve(
        a_scenario(consumers=1, brokers=broker_groups(config=BrokerConfig(**broker))), producers=(producer,)
    )


@pytest.mark.parametrize(
    ("state", "options", "reason"),
    [
        (UNKNOWN, {"transaction_check_max": 2}, DiscardReason.CHECKED_TOO_OFTEN),
        (UNKNOWN, {"file_reserved_time": 1, "transaction_check_interval": 1_800_000}, DiscardReason.TOO_OLD),
        (COMMIT, {"transaction_check_max": 2}, None),
    ],
)
def test_a_half_message_that_is_put_aside_is_discarded_and_known_by_its_id(
    state: LocalTransactionState, options: dict[str, int], reason: DiscardReason | None
) -> None:
    for_ms = 5 * options.get("transaction_check_interval", 30 * SECOND)
    trace = execute(a_shop(LocalTransactions(state), messages=3, **options), for_ms=for_ms)

    discarded = events(trace, MessageEvent.DISCARDED)
    assert {row.tags for row in discarded} == ({reason} if reason else set())
    assert len(discarded) == len(trace.select("messages", event="stored", topic="TRANS_CHECK_MAX_TIME_TOPIC"))
    halves = {row.key: row for row in events(trace, MessageEvent.HALF)}
    for row in discarded:
        half = halves[row.key]
        assert (row.topic, row.queue_id, row.node) == (TOPIC, half.queue_id, "broker-a")
        assert row.seq > half.seq


@pytest.mark.parametrize("own", [COMMIT, ROLLBACK])
def test_both_ends_of_a_transaction_are_there_with_the_side_that_decided(own: LocalTransactionState) -> None:
    local = LocalTransactions(own, duration_ms=65 * SECOND, check_state=ROLLBACK)
    addresses: list[str] = []

    async def script(stage: Stage) -> None:
        addresses.extend([stage.host("p1").ip, f"{stage.host('broker-a').ip}:10911"])
        await stage.at_ms(70 * SECOND)

    trace = execute(a_shop(local), script)
    first = events(trace, MessageEvent.HALF)[0].key
    ends = [row for row in events(trace, MessageEvent.ENDED) if row.key == first]
    decided = [row for row in events(trace, MessageEvent.DECIDED) if row.key == first]
    # The broker asks at 30 s, when the local transaction still runs.
    assert [(row.tags, row.client_id != "") for row in ends] == [("rollback", True), (own, False)]
    assert [(row.tags, row.client_id != "") for row in decided] == [("rollback", True), (own, False)]
    assert [ends[0].client_id.rpartition(":")[0], decided[0].client_id] == addresses
    assert [round(row.at_s) for row in ends] == [30, 65]


@pytest.mark.parametrize("skew_ms", [0, -20_000])
def test_a_producer_whose_clock_is_behind_ends_its_transactions_twice(skew_ms: int) -> None:
    async def script(stage: Stage) -> None:
        if skew_ms:
            await stage.begin(f"skew p1 {skew_ms}")
        await stage.at_ms(100 * SECOND)

    trace = execute(a_shop(LocalTransactions(COMMIT)), script)
    ends = Counter(row.key for row in events(trace, MessageEvent.ENDED))
    again = [row for row in events(trace, MessageEvent.ENDED) if row.client_id]
    assert {row.tags for row in again} == ({"commit"} if skew_ms else set())
    assert sum(times - 1 for times in ends.values()) == len(again)
    stored = trace.select("messages", event="stored", topic=TOPIC)
    assert len(stored) == len(ends) + len(again)


# --- expired and skipped ----------------------------------------------------------------


@pytest.mark.parametrize(("limit_bytes", "expired"), [(16_000, 25), (0, 0)])
def test_messages_that_expire_before_a_group_has_consumed_them_can_be_counted(limit_bytes: int, expired: int) -> None:
    broker = BrokerConfig(store_max_bytes=limit_bytes) if limit_bytes else BrokerConfig()

    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await guest.send("broker-a", TOPIC, b"x" * 900)
        await stage.at_ms(30 * SECOND)
        await stage.stop("c1")
        for _ in range(40):
            await guest.send("broker-a", TOPIC, b"x" * 900)

    trace = execute(a_scenario(queues=1, consumers=1, brokers=broker_groups(config=broker)), script)
    rows = events(trace, MessageEvent.EXPIRED)
    assert all((row.topic, row.broker_name, row.queue_id) == (TOPIC, "broker-a", 0) for row in rows)
    first = max((row.offset for row in rows), default=0)
    committed = trace.select("messages", event="committed", topic=TOPIC)[-1].offset
    assert committed == 1
    assert max(0, first - committed) == expired


@pytest.mark.parametrize("resets", [True, False])
def test_messages_that_an_administrator_skips_are_those_between_the_last_commit_and_the_reset(resets: bool) -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(20 * SECOND)
        await stage.suspend("c1", 20 * SECOND)
        admin = await an_administrator(stage)
        if resets:
            await admin.reset_offsets(GROUP, TOPIC)
        await stage.for_ms(10 * SECOND)

    # Each message keeps the listener busy, so that it is behind.
    trace = execute(a_scenario(queues=1, consumers=consumer_group(1, consume_ms=2_000), rate_per_s=20), script)
    after = events(trace, MessageEvent.RESET)
    acts = trace.select("admin", request="INVOKE_BROKER_TO_RESET_OFFSET")
    assert len(after) == len(acts) == resets
    if resets:
        (reset,), (act,) = after, acts
        assert (act.topic, act.group, act.broker_name) == (reset.topic, reset.group, reset.broker_name)
        assert act.cause == reset.cause
        before = [row.offset for row in events(trace, MessageEvent.COMMITTED) if row.seq < reset.seq][-1]
        skipped = [at for at in range(before, reset.offset) if (("broker-a", 0, at) not in trace.consumed())]
        assert len(skipped) > 100


# --- late, and never seen ----------------------------------------------------------------


@pytest.mark.parametrize("away_ms", [0, 65 * SECOND])
def test_how_late_a_delayed_message_is_delivered_is_reported_by_two_rows(away_ms: int) -> None:
    async def script(stage: Stage) -> None:
        guest = await a_guest(stage)
        await stage.at_ms(10 * SECOND)
        await guest.send("broker-a", TOPIC, DELAY="3", UNIQ_KEY="U1")  # 10 s
        if away_ms:
            await stage.kill("broker-a")
            await stage.for_ms(10 * SECOND + away_ms)
            stage.start("broker-a")
        await stage.for_ms(20 * SECOND)

    trace = execute(a_scenario(queues=1), script)
    (delayed,), (delivered,) = events(trace, MessageEvent.DELAYED), events(trace, MessageEvent.DELIVERED)
    assert delayed.key == delivered.key == "U1"
    late_ms = delivered.at_ms - (delayed.at_ms + delayed.offset)
    assert late_ms == pytest.approx(away_ms, abs=2 * SECOND)


_NEWS = """
[scenario]
name = "news"
seed = 1
run_for_s = 30
start_spread_s = 0
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "news"
queues = 1
[[consumer]]
group = "readers"
names = ["r1"]
topics = ["news"]
options = { messageModel = "BROADCASTING", consumeFromWhere = "CONSUME_FROM_LAST_OFFSET" }
[[producer]]
group = "press"
topic = "news"
rate_per_s = RATE
"""


@pytest.mark.parametrize(("rate", "missed"), [(50, 50), (1, 1)])
def test_what_a_broadcasting_member_misses_lies_between_its_start_and_its_first_pull(rate: int, missed: int) -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(10 * SECOND)
        await stage.kill("r1")
        stage.start("r1")
        await stage.for_ms(10 * SECOND)

    trace = execute(loads(_NEWS.replace("RATE", str(rate)), "news.toml"), script)
    started = trace.select("lifecycle", node="r1", event="started", incarnation=2)[0]
    (acquired,) = trace.select("ownership", node="r1", event="acquired", incarnation=2)
    stored = trace.select("messages", event="stored", topic="news", after_ms=started.at_ms)
    unseen = [row for row in stored if row.offset < acquired.offset]
    assert len(unseen) == pytest.approx(missed, abs=1)
    consumed = {row.offset for row in trace.select("messages", event="consumed", incarnation=2)}
    assert consumed.isdisjoint(row.offset for row in unseen)


_ELECTED = """
[scenario]
name = "elected"
seed = 1
run_for_s = 200
preset = "controller"
[nameserver]
count = 1
[controller]
count = 1
[[broker]]
name = "broker-a"
replicas = 2
[[topic]]
name = "orders"
queues = 2
"""


@pytest.mark.parametrize("wait_ms", [5 * SECOND, 80 * SECOND])
def test_a_topic_that_an_election_loses_is_younger_than_what_the_new_master_has_copied(wait_ms: int) -> None:
    is_lost = wait_ms < 10 * SECOND
    known: list[bool] = []

    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        await stage.at_ms(65 * SECOND)
        await admin.create_topic("late", on=["broker-a"])
        await stage.for_ms(wait_ms)
        await stage.kill("broker-a")
        await stage.for_ms(40 * SECOND)
        known.append(stage.node("broker-a-s1").context.topics.select_topic_config("late") is not None)

    trace = execute(loads(_ELECTED, "elected.toml"), script)
    assert known == [not is_lost]
    (act,) = trace.select("admin", request="UPDATE_AND_CREATE_TOPIC", topic="late")
    roles = trace.select("beliefs", node="broker-a-s1", kind="broker_role")
    promoted = next(row for row in roles if row.held["serves_as"] == "master")
    versions = trace.select("beliefs", node="broker-a-s1", kind="data_version", subject="topics")
    # With its promotion it gives its table a version of its own; the one before is that of its last copy.
    copied = [row for row in versions if row.seq < promoted.seq and row.cause != promoted.cause][-1]
    assert (copied.t_ns < act.began_ns) is is_lost
    # Nameservers still list it, as a topic of the new master.
    route = trace.select("beliefs", node="ns-1", kind="route", subject="late")[-1].held
    assert list(route) == ["broker-a"]


def test_a_topic_that_is_deleted_and_made_again_leaves_both_acts_before_offsets_fall() -> None:
    async def script(stage: Stage) -> None:
        admin = await an_administrator(stage)
        await stage.at_ms(60 * SECOND)
        await admin.delete_topic(TOPIC)
        await stage.for_ms(SECOND)
        await admin.create_topic(TOPIC, queues=2)
        await stage.for_ms(60 * SECOND)

    scenario = a_scenario(queues=2, consumers=1, rate_per_s=10)
    scenario = attrs.evolve(scenario, topics=(TopicSpec(TOPIC, ("broker-a",), 2),))
    trace = execute(scenario, script)
    acts = [(row.node, row.request, row.topic) for row in trace.select("admin")]
    assert acts == [
        ("broker-a", "DELETE_TOPIC_IN_BROKER", TOPIC),
        ("ns-1", "DELETE_TOPIC_IN_NAMESRV", TOPIC),
        ("broker-a", "UPDATE_AND_CREATE_TOPIC", TOPIC),
    ]
    commits = [row for row in trace.select("messages", event="committed", topic=TOPIC) if row.queue_id == 0]
    falls = [now for before, now in pairwise(commits) if now.offset < before.offset]
    deleted = trace.select("admin", request="DELETE_TOPIC_IN_BROKER")[0]
    assert len(falls) == 1
    assert falls[0].t_ns > deleted.t_ns
    assert json.loads(trace.select("admin", request="UPDATE_AND_CREATE_TOPIC")[0].detail)["readQueueNums"] == "2"
