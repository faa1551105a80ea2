"""Registrations in parts, and of single topics: what nameservers are sent, and what they make of it."""

import attrs

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.spec.model.scenario import NameserverSpec
from emulator.testing import Trace, a_scenario, broker_groups, execute
from nodes.beliefs import BeliefKind
from nodes.broker.registration.registration import split
from nodes.config import BrokerConfig, NameserverConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import TopicConfig

REGISTER, TOPIC = int(RequestCode.REGISTER_BROKER), int(RequestCode.REGISTER_TOPIC_IN_NAMESRV)


def executed(broker: BrokerConfig, nameserver: NameserverConfig | None = None, *acts: TimedAct) -> Trace:
    made = a_scenario(
        nameservers=(NameserverSpec("ns-1", nameserver or NameserverConfig()),),
        brokers=broker_groups(config=broker),
        consumers=1,
        rate_per_s=5,
    )
    return execute(attrs.evolve(made, acts=acts), for_ms=60_000)


def sent(trace: Trace, code: int, from_ms: float = 0) -> list[float]:
    rows = trace.select("rpc", src="broker-a", code=code, kind="request", event="delivered", after_ms=from_ms)
    return [row.at_ms for row in rows]


def routes(trace: Trace, topic: str) -> list[str]:
    return [row.value for row in trace.select("beliefs", kind=BeliefKind.ROUTE, node="ns-1", subject=topic)]


def test_parts_have_a_size_and_the_last_one_may_be_empty():
    table = {name: TopicConfig(name) for name in ("a", "b", "c", "d")}
    assert [sorted(part) for part in split(table, 3)] == [["a", "b", "c"], ["d"]]
    assert [len(part) for part in split(table, 2)] == [2, 2, 0]
    assert [len(part) for part in split(table, 9)] == [4]


def test_a_registration_in_parts_is_several_requests_one_after_the_other():
    whole = executed(BrokerConfig())
    parts = executed(BrokerConfig(enable_split_registration=True, split_registration_size=8))
    assert len(sent(parts, REGISTER)) > len(sent(whole, REGISTER))
    first, second, *_ = sent(parts, REGISTER)
    assert second - first >= 2
    assert routes(parts, "orders")[-1] == routes(whole, "orders")[-1]
    assert parts.select("messages", event="consumed")


def test_each_part_has_a_version_of_its_own():
    parts = executed(BrokerConfig(enable_split_registration=True, split_registration_size=8))
    versions = parts.select("beliefs", kind=BeliefKind.DATA_VERSION, node="broker-a", subject="topics")
    assert len(versions) > 6


def test_a_nameserver_that_deletes_what_is_not_registered_deletes_the_topics_of_all_other_parts():
    broker = BrokerConfig(enable_split_registration=True, split_registration_size=1)
    deleting = NameserverConfig(delete_topic_with_broker_registration=True)
    trace = executed(broker, deleting)
    assert routes(trace, "orders")[-1] == "null"
    # As often as the broker registers all of them.
    assert routes(trace, "orders").count("null") >= 2


def test_a_new_topic_alone_is_no_registration_of_its_broker():
    act = TimedAct("grow", act_of("update-topic news queues 3"), 35_000)
    config = BrokerConfig(enable_single_topic_register=True)
    alone = executed(config, None, act)
    assert len(sent(alone, TOPIC, 34_000)) == 1
    assert '"queues":[3,3,6]' in routes(alone, "news")[-1]
    whole = executed(BrokerConfig(), None, act)
    assert sent(whole, TOPIC) == []
    assert routes(whole, "news")[-1] == routes(alone, "news")[-1]
    assert len(sent(whole, REGISTER, 34_000)) == len(sent(alone, REGISTER, 34_000)) + 1
