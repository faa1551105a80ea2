"""What became of a message, and who asks far too often: harmed and healthy, in clusters and by hand."""

from pathlib import Path

import attrs
import pytest

from emulator.run import run_scenario
from emulator.spec import load, loads
from emulator.testing import a_scenario
from emulator.trace.schema import TraceLevel
from emulator.why.question import WhyError
from why.why_runs import Requested, has, requested
from why.written_traces import TracedByHand

EXAMPLES = Path(__file__).parents[2] / "examples"
SLOW_POP = """
[scenario]
name = "slow-pop"
seed = 1
run_for_s = 90
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "billing"
topics = ["orders"]
mode = "pop"
consume_ms = {consume_ms}
options = {{ popInvisibleTime = 10000, consumeFromWhere = "CONSUME_FROM_FIRST_OFFSET" }}
[[producer]]
group = "shop"
topic = "orders"
rate_per_s = 1
messages = 5
"""
PULL, RETRY, FOUND = 11, 20, 0
POP, RECEIVE = 200050, 900075
HANDLE = "4 2000 60000 0 0 broker-a 3 4"


@pytest.fixture
def traced(tmp_path):
    return TracedByHand(tmp_path)


# --- messages ---------------------------------------------------------------------------------


def test_a_message_that_was_consumed_once_is_calm_and_one_popped_too_slowly_is_followed_through_its_copies(tmp_path):
    calm = requested(loads(SLOW_POP.format(consume_ms=100), "calm"), tmp_path).why("message orders/broker-a/2@0")
    slow = requested(loads(SLOW_POP.format(consume_ms=15_000), "slow"), tmp_path).why("message orders/broker-a/2@0")

    assert calm[0] == "message orders/broker-a/2@0 was consumed once by group billing (consumer-1)"
    assert has(calm, "acknowledged for group billing")
    assert "was consumed 5 times by group billing (consumer-1)" in slow[0]
    assert has(slow, "revived it for group billing: no consumer acknowledged it in time")
    assert has(slow, "consumed %RETRY%billing_orders/broker-a/0@0 for group billing")


def test_a_message_that_a_listener_could_not_consume_is_sent_back(tmp_path):
    scenario = load(EXAMPLES / "dead_letters.toml")
    reported = requested(scenario, tmp_path, for_s=20).why("message orders/broker-a/0@0")

    assert has(reported, "consumer-1", "sent it back: stored for later as SCHEDULE_TOPIC_XXXX/broker-a/2@0")
    assert has(reported, "consumer-2", "sent it back: stored for later as SCHEDULE_TOPIC_XXXX/broker-a/2@2")


def test_a_message_is_found_by_one_of_its_keys_and_by_its_unique_id(traced):
    traced.at(1).message("broker-a", "stored", offset=4, key="order-7 paid")
    traced.at(2).message("c1", "consumed", group="g", offset=4, key="order-7 paid")
    traced.message("broker-a", "delayed", offset=5_000, key="7F01", queue="orders/broker-a/0")
    traced.at(7).message("broker-a", "stored", offset=9, queue="orders/broker-a/0")
    traced.message("broker-a", "delivered", offset=9, key="7F01", queue="orders/broker-a/0")
    by_key, by_id = traced.why("message order-7"), traced.why("message 7F01")

    assert by_key[0] == "message order-7 was consumed once by group g (c1)"
    assert has(by_id, "put it aside for 5.000 s, for orders/broker-a/0")
    assert has(by_id, "delivered it to orders/broker-a/0@9 after its delay")
    assert by_id[0] == "message 7F01 is stored since 7.000 s, and no consumer has consumed it"


@pytest.mark.parametrize(
    ("event", "reported"),
    [
        ("recalled", "was recalled by its producer"),
        ("dropped", "was given up, as it could not be delivered"),
        ("cut", "was cut from the log of a broker, as its master does not have it"),
        ("lost", "was given up by POP"),
        ("filtered", "was left out by a filter"),
    ],
)
def test_a_message_that_no_consumer_gets_says_why(traced, event, reported):
    traced.at(1).message("broker-a", "stored", offset=4)
    traced.at(2).message("broker-a", event, group="g", offset=4)

    assert traced.why("message orders/broker-a/3@4")[0].endswith(f"no consumer has consumed it; {reported}")


def test_a_place_that_was_used_again_and_a_group_that_began_behind_it_are_named(traced):
    traced.at(1).message("broker-a", "stored", offset=4)
    traced.message("c2", "consumed", group="h", offset=4)
    traced.at(2).message("broker-a", "stored", offset=4, stored_ms=2_000)
    traced.at(3).owned("c1", "acquired", offset=5)
    reported = traced.why("message orders/broker-a/3@4")

    assert reported[0].endswith("another message took its place at 2.000 s, which no consumer has consumed")
    assert reported[1] == "  group g began behind it, at offset 5, at 3.000 s"


def test_messages_with_the_same_keys_are_different_messages(traced):
    for offset in (4, 5, 6):
        traced.at(offset).message("broker-a", "stored", offset=offset, key="order-7 paid")
        traced.message("c1", "consumed", group="g", offset=offset, key="order-7 paid")
    at_place, by_key = traced.why("message orders/broker-a/3@5"), traced.why("message order-7")

    assert at_place[0] == "message orders/broker-a/3@5 was consumed once by group g (c1)"
    assert at_place[1] == "  2 other messages have the same key order-7; ask `message order-7`"
    assert not has(at_place, "orders/broker-a/3@4")
    assert by_key[0] == "3 messages have the key order-7; ask for one of them, `message orders/broker-a/3@4`"
    assert by_key[3] == "  message orders/broker-a/3@6 was consumed once by group g (c1)"


def test_copies_of_a_message_that_name_it_belong_to_it_and_those_of_others_do_not(traced):
    for offset in (4, 5):
        traced.at(1).message("broker-a", "stored", offset=offset, key="7")
        copy = {"queue": "%RETRY%g/broker-a/0", "offset": offset, "group": "g"}
        traced.at(11).message("broker-a", "stored", key="7", **copy)
        traced.message("broker-a", "retried", key=f"orders broker-a 3 {offset}", **copy)
        traced.at(12).message("c1", "consumed", **copy)

    for asked in ("orders/broker-a/3@4", "%RETRY%g/broker-a/0@4"):
        reported = traced.why(f"message {asked}")
        assert reported[0] == f"message {asked} was consumed once by group g (c1)"
        assert has(reported, "stored orders/broker-a/3@4")
        assert has(reported, "stored %RETRY%g/broker-a/0@4")
        assert not has(reported, "stored", "@5")


@pytest.mark.parametrize(("tags", "is_consumed"), [("stored", True), ("orderly", True), ("refused", False)])
def test_what_guests_have_acknowledged_they_have_consumed(traced, tags, is_consumed):
    traced.at(1).message("broker-a", "stored", offset=4)
    traced.at(2).message("broker-a", "popped", group="workers", offset=4, key=HANDLE)
    traced.at(5).message("broker-a", "acked", group="workers", offset=4, tags=tags, key=HANDLE)
    reported = traced.why("message orders/broker-a/3@4")[0]

    assert ("was consumed by group workers: acknowledged at 5.000 s" in reported) is is_consumed
    assert ("no consumer has consumed it" in reported) is not is_consumed


@pytest.mark.parametrize("closed", [True, False])
def test_a_message_that_went_to_the_call_of_a_guest_that_had_gone_says_so(traced, closed):
    if closed:
        traced.at(1).frame("guest", "proxy-1", 0, kind="connection", event="closed", connection=7)
    cause = traced.at(2).message("broker-a", "stored", offset=4)
    traced.message("broker-a", "popped", group="workers", offset=4, key=HANDLE, cause=cause)
    popped = traced.frame("broker-a", "proxy-1", POP, kind="response", status=0, cause=cause)
    answered = {"kind": "response", "status": 0, "cause": popped, "connection": 7}
    traced.frame("proxy-1", "guest", RECEIVE, event="lost" if closed else "delivered", **answered)
    reported = traced.why("message orders/broker-a/3@4")

    assert has(reported, "handed orders/broker-a/3@4 out to group workers, and guest did not get it") is closed
    assert has(reported, "guest had closed its connection at 1.000 s: the call was that of a dead client") is closed


def test_a_group_of_guests_that_only_pops_is_a_group(traced):
    traced.at(1).message("broker-a", "stored", offset=4)
    traced.at(2).message("broker-a", "popped", group="workers", offset=4, key=HANDLE)
    traced.at(9).message("broker-a", "acked", group="workers", offset=4, tags="stored", key=HANDLE)

    waits = traced.why("lag workers at 5s")
    assert waits[0].endswith("in 1 queue: it was handed out at 2.000 s, and no client has acknowledged it")
    assert traced.why("lag workers")[0] == "at 9.000 s nothing of group workers waits"
    assert has(traced.why("group workers at 5s"), "members share the messages of orders, which brokers hand out")


def test_unknown_messages_lead_to_one_that_is_there(traced):
    traced.at(1).message("broker-a", "stored", offset=4)
    refusals = {"message orders/broker-a/3@9": "its last message is orders/broker-a/3@4; ask `message orders/bro"}
    refusals["message abc"] = "no message of this run has a key: ask by place, such as `message orders/broker-a/3@4`"
    refusals["message orders/broker-a/3@4 at 1ms"] = "came later, at 1.000 s; ask `message orders/broker-a/3@4`"
    for question, reported in refusals.items():
        with pytest.raises(WhyError) as refused:
            traced.why(question)
        assert reported in str(refused.value)
    traced.at(2).message("broker-a", "stored", offset=5, key="order-7")
    with pytest.raises(WhyError, match="there is no message order-8; ask `message order-7`"):
        traced.why("message order-8")


# --- storms -----------------------------------------------------------------------------------


def storm():
    """The example with fewer messages, as one that the slave lacks is enough, and a slower network: fewer requests."""
    scenario = load(EXAMPLES / "pull_storm.toml")
    (producer,) = scenario.producers
    network = attrs.evolve(scenario.network, delay_ms=3)
    return attrs.evolve(scenario, network=network, producers=(attrs.evolve(producer, rate_per_s=30),))


def test_the_storm_at_an_acting_slave_leads_to_the_death_of_its_master_in_one_command(tmp_path):
    run = requested(storm(), tmp_path, for_s=100)
    reported = run.why("storm")

    assert reported[0].startswith("consumer-1 asked ba-s1 PULL_MESSAGE, answered PULL_RETRY_IMMEDIATELY, 1")
    assert reported[1].startswith("  why: it pulls at offsets that the log of this slave does not have yet")
    assert reported[2].startswith("  what may end it: offsetCheckInSlave = true")
    assert has(reported, "ba is away: killed at 45.000 s")
    assert has(reported, "ba-s1 acts for the master of ba since 45.0")
    assert has(reported, "operator", "since the operator began master-away (kill ba)")

    calm = run.why("storm at 20s")
    assert calm[0] == (
        "at 20.000 s there is no request storm: no client asks a server ten times as much as a healthy one"
    )
    assert "ask `storm of consumer-1 at 7" in calm[1]
    with pytest.raises(WhyError, match="there is no client consumer-9; ask `storm of consumer-1`"):
        run.why("storm of consumer-9")


def test_a_healthy_run_has_no_storm(tmp_path):
    reported = requested(a_scenario(consumers=1, rate_per_s=2), tmp_path, for_s=40).why("storm")

    assert reported == ("there is no request storm: no client asks a server ten times as much as a healthy one",)


def test_a_storm_is_found_where_answers_are_only_counted(tmp_path):
    scenario = attrs.evolve(storm(), run_for_ms=100_000)
    run = Requested(run_scenario(scenario, runs=tmp_path, level=TraceLevel.FINDINGS).path)

    assert run.why("storm")[0].startswith("consumer-1 asked ba-s1 PULL_MESSAGE, answered PULL_RETRY_IMMEDIATELY, 1")


@pytest.mark.parametrize(("per_s", "status", "is_storm"), [(60, RETRY, True), (40, RETRY, False), (60, FOUND, False)])
def test_a_storm_is_fifty_requests_a_second_without_messages_for_half_a_minute(traced, per_s, status, is_storm):
    for node in ("broker-a", "c1"):
        traced.life(node, "started")
    for second in range(40):
        traced.at(second)
        for _ in range(per_s):
            traced.frame("broker-a", "c1", PULL, kind="response", status=status)
    reported = traced.why("storm of c1")

    assert reported[0].startswith("c1 asked broker-a PULL_MESSAGE") is is_storm
