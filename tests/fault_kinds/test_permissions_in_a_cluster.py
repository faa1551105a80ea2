"""Topics and brokers that may only be read, or only be written: who learns of it when, and what is left of it."""

import attrs
import pytest

from emulator.spec import SpecError, loads
from emulator.testing import TOPIC, Trace
from emulator.trace.schema import BELIEFS
from fault_kinds.at_work import busy_cluster, restricted
from fault_kinds.by_script import Breaker, Deeds, broken, once
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import TopicConfig
from support.every_case import each_case
from support.grouped import MASTER, S1, a_group

BEGIN_MS, END_MS = 65_000, 125_000
ROUTE_MS = 30_000
"""How often clients ask for routes."""
PASS_MS = 21_000
"""By then a consumer has rebalanced once more."""


def executed(deeds: Deeds, *, for_ms: float = END_MS + 40_000) -> Trace:
    return broken(busy_cluster(1), deeds, for_ms=for_ms)


def stored(trace: Trace, after: float, until: float, broker: str | None = None) -> int:
    rows = trace.select("messages", event="stored", topic=TOPIC, after_ms=after, until_ms=until)
    return len([row for row in rows if broker in (None, row.broker_name)])


def consumed(trace: Trace, after: float, until: float, broker: str) -> int:
    return len(
        trace.select("messages", event="consumed", topic=TOPIC, broker_name=broker, after_ms=after, until_ms=until),
    )


def refused(trace: Trace, code: RequestCode) -> list[float]:
    """When answers of NO_PERMISSION arrived."""
    rows = trace.select(
        "rpc", kind="response", code=int(code), event="delivered", status=int(ResponseCode.NO_PERMISSION)
    )
    return [row.at_ms for row in rows]


def test_a_read_only_topic_takes_messages_until_the_producer_asks_for_its_route_again():
    trace = executed(once("permission brokers 4 topic orders", BEGIN_MS, END_MS))

    sends = [row.at_ms for row in trace.select("messages", event="stored", topic=TOPIC)]
    last = max(at_ms for at_ms in sends if at_ms < END_MS)
    assert BEGIN_MS + 1_000 < last < BEGIN_MS + ROUTE_MS
    # While it knows no queue it asks before each send, so that it goes on at once.
    assert min(at_ms for at_ms in sends if at_ms > END_MS) < END_MS + 1_000
    assert refused(trace, RequestCode.SEND_MESSAGE_V2) == []
    assert all(len(owners) == 1 for owners in trace.owners(END_MS - 1).values())


def test_messages_go_to_the_brokers_that_still_take_them():
    trace = executed(once("permission broker-a 4 topic orders", BEGIN_MS, END_MS))

    assert stored(trace, BEGIN_MS + ROUTE_MS, END_MS, "broker-a") == 0
    assert stored(trace, BEGIN_MS + ROUTE_MS, END_MS) > 100
    assert stored(trace, END_MS + ROUTE_MS, END_MS + 40_000, "broker-a") > 20


def test_a_write_only_topic_refuses_pulls_at_once_and_loses_its_queues_to_no_one_with_the_next_routes():
    trace = executed(once("permission broker-a 2 topic orders", BEGIN_MS, END_MS))

    assert BEGIN_MS <= refused(trace, RequestCode.PULL_MESSAGE)[0] < BEGIN_MS + 1_000
    assert consumed(trace, BEGIN_MS + 50, END_MS, "broker-a") == 0
    owners = trace.owners(BEGIN_MS + ROUTE_MS + PASS_MS)
    assert [key[0] for key, names in owners.items() if names] == ["broker-b"] * 4
    assert stored(trace, BEGIN_MS, END_MS, "broker-a") > 100
    seen = trace.consumed()
    assert [key for key in trace.stored() if key[0] == "broker-a" and key not in seen] == []


def test_a_read_only_broker_refuses_sends_in_order_at_once_and_the_others_by_its_route():
    async def deeds(breaker: Breaker) -> None:
        stage = breaker.stage
        topics = stage.node("broker-a").context.topics
        topics.update_topic_config(attrs.evolve(topics.select_topic_config(TOPIC), order=True), now_ms=0)
        await breaker.during("permission broker-a 4", BEGIN_MS, END_MS)

    in_order, otherwise = executed(deeds), executed(once("permission broker-a 4", BEGIN_MS, END_MS))

    assert BEGIN_MS <= refused(in_order, RequestCode.SEND_MESSAGE_V2)[0] < BEGIN_MS + 1_000
    assert stored(in_order, BEGIN_MS + 50, END_MS, "broker-a") == 0
    assert refused(otherwise, RequestCode.SEND_MESSAGE_V2) == []
    assert stored(otherwise, BEGIN_MS + 50, BEGIN_MS + ROUTE_MS, "broker-a") > 0
    assert stored(otherwise, BEGIN_MS + ROUTE_MS, END_MS, "broker-a") == 0


@pytest.mark.parametrize("words", ["broker-a 4", "broker-a 4 topic orders"])
def test_nameservers_hear_of_it_at_once_when_it_begins_and_when_it_ends(words):
    trace = executed(once(f"permission {words}", BEGIN_MS, END_MS), for_ms=END_MS + 1_000)

    for at_ms in (BEGIN_MS, END_MS):
        reported = trace.select(BELIEFS.name, kind="route", after_ms=at_ms - 1, until_ms=at_ms + 10)
        assert dict.fromkeys(row.node for row in reported) == dict.fromkeys(["ns-1", "ns-2"])


async def perms(breaker: Breaker, wanted: dict[str, str], seen: list[bool]) -> None:
    """Whether a broker that runs is restricted so, and the file for its next process says the same."""
    await breaker.stage.for_ms(1)
    context = breaker.stage.node("broker-a").context
    seen.append(restricted("broker-a", context) == wanted)


CASES = {
    "broker-a 4": {"broker broker-a": "permission 4"},
    "broker-a 2 topic orders": {f"{TOPIC} of broker-a": "permission 2"},
}


@pytest.mark.parametrize("words", CASES)
@pytest.mark.parametrize("end", ["kill", "stop", "suspend", "power-off"])
def test_it_lasts_and_ends_whatever_becomes_of_the_process_meanwhile(words, end):
    seen: list[bool] = []

    async def deeds(breaker: Breaker) -> None:
        await breaker.stage.at_ms(20_000)
        await breaker.begin("it", f"permission {words}")
        for fault_id in ("first", "second"):
            await breaker.stage.for_ms(5_000)
            await breaker.begin(fault_id, f"{end} broker-a")
            await breaker.stage.for_ms(5_000)
            if fault_id == "second":
                await breaker.end("it")
            await breaker.end(fault_id)
            await breaker.stage.for_ms(5_000)
            await perms(breaker, CASES[words] if fault_id == "first" else {}, seen)

    broken(busy_cluster(1), deeds)

    assert seen == [True, True]


@pytest.mark.parametrize("words", CASES)
@pytest.mark.parametrize("last", ["resumed", "killed"])
def test_what_begins_and_ends_with_a_process_that_stands_still_is_done_by_it_or_by_the_next(words, last):
    seen: list[bool] = []

    async def deeds(breaker: Breaker) -> None:
        for begins in (True, False):
            await breaker.stage.for_ms(20_000)
            await breaker.begin("still", "suspend broker-a")
            await breaker.stage.for_ms(1_000)
            await (breaker.begin("it", f"permission {words}") if begins else breaker.end("it"))
            await breaker.stage.for_ms(1_000)
            if last == "killed":
                await breaker.begin("dead", "kill broker-a")
                await breaker.end("still")
                await breaker.end("dead")
            else:
                await perms(breaker, {} if begins else CASES[words], seen)  # nothing runs that could hear of it
                await breaker.end("still")
            await perms(breaker, CASES[words] if begins else {}, seen)

    broken(busy_cluster(1), deeds)

    assert seen == [True] * len(seen) != []


def test_of_two_the_newer_decides_and_each_ends_on_its_own():
    seen: list[bool] = []

    async def deeds(breaker: Breaker) -> None:
        await breaker.stage.at_ms(20_000)
        await breaker.begin("read", "permission brokers 4 topic orders")
        await breaker.begin("write", "permission broker-a 2 topic orders")
        await perms(breaker, {f"{TOPIC} of broker-a": "permission 2"}, seen)
        await breaker.end("write")
        await perms(breaker, {f"{TOPIC} of broker-a": "permission 4"}, seen)
        await breaker.begin("write", "permission broker-a 2 topic orders")
        await breaker.end("read")
        await perms(breaker, {f"{TOPIC} of broker-a": "permission 2"}, seen)
        await breaker.end("write")
        await perms(breaker, {}, seen)

    broken(busy_cluster(1), deeds)

    assert seen == [True] * 4


def test_a_topic_is_changed_at_masters_and_its_slaves_copy_it():
    async def deeds(breaker: Breaker) -> None:
        topics = breaker.stage.node(S1).context.topics
        await breaker.stage.at_ms(60_000)
        await breaker.begin("it", "permission brokers 4 topic orders")
        at_once.append(topics.select_topic_config(TOPIC))
        await breaker.stage.for_ms(61_000)
        later.append(topics.select_topic_config(TOPIC))
        assert breaker.stage.node(MASTER).context.topics.select_topic_config(TOPIC).perm == 4

    at_once: list[TopicConfig] = []
    later: list[TopicConfig] = []
    broken(a_group(), deeds)

    assert [config.perm for config in (*at_once, *later)] == [6, 4]


@each_case(
    ("words", "reported"),
    [
        ("permission b-s1 4 topic orders", "fault[0].do: expected masters, not b-s1: slaves copy the topics"),
        ("permission slaves of b 4 topic orders", "fault[0].do: expected masters, not slaves of b: slaves copy"),
        ("permission nameservers 4", "fault[0].do: expected brokers, not nameservers: only brokers have permissions"),
        ("permission b 4 topic TBW102", "fault[0].do: expected a topic that is not RocketMQ's own"),
    ],
)
def test_a_scenario_file_is_reported_in_one_line_who_has_no_permission(words, reported):
    head = '[scenario]\nname = "x"\nrun_for_s = 60\n[nameserver]\n[[broker]]\nname = "b"\nreplicas = 2\n'
    with pytest.raises(SpecError) as error:
        loads(f'{head}[[fault]]\ndo = "{words}"\nat_s = 1\n', "file.toml")
    assert reported in str(error.value)
