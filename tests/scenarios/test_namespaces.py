"""Clients with a namespace: the names that they use, and what brokers make of them."""

from collections import Counter

import pytest

from emulator.spec import SpecError, loads
from emulator.testing import Stage, Trace, execute
from nodes.protocol.namespaces import address_of_endpoint, instance_of
from support.every_case import each_case

SHOP = """
[scenario]
name = "namespaces"
run_for_s = 60
start_spread_s = 0
[nameserver]
count = 1
[[broker]]
name = "broker-a"
options = { traceTopicEnable = true }
[[topic]]
name = "NS%orders"
queues = 1
[[topic]]
name = "orders"
queues = 1
"""
IN_NAMESPACE = """
[[consumer]]
group = "billing"
topics = ["orders"]
names = ["c1"]
fail_times = 1
options = { namespace = "NS", enableTrace = true }
[[producer]]
name = "p1"
group = "shop"
topic = "orders"
rate_per_s = 2
options = { namespace = "NS", enableTrace = true }
"""
OUTSIDE = """
[[consumer]]
group = "billing"
topics = ["orders"]
names = ["c2"]
"""


def run(clients: str, script: object = None) -> Trace:
    return execute(loads(SHOP + clients, "namespaces.toml"), script, for_ms=60_000)


def test_groups_and_topics_of_a_namespace_are_others_than_those_outside() -> None:
    trace = run(IN_NAMESPACE + OUTSIDE)

    consumed = Counter((row.node, row.group, row.topic) for row in trace.select("messages", event="consumed"))
    assert consumed["c1", "NS%billing", "NS%orders"] > 100
    assert consumed["c1", "NS%billing", "%RETRY%NS%billing"] > 80
    assert {node for node, _, _ in consumed} == {"c1"}
    members = trace.select("beliefs", kind="consumer_ids", node="broker-a")
    assert {row.subject for row in members} == {"NS%billing", "billing"}


def test_messages_have_the_namespace_and_their_traces_do_not() -> None:
    found: list[str] = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(50_000)
        store = stage.node("broker-a").context.store
        (first,) = store.messages("NS%orders", 0, 0, 1)
        assert first.properties["INSTANCE_ID"] == "NS"
        found.extend(message.body.decode() for message in store.messages("RMQ_SYS_TRACE_TOPIC", 0, 0, 1_000))

    run(IN_NAMESPACE, script)

    traces = [text.split("\x01") for body in found for text in body.split("\x02")[:-1]]
    assert {(fields[3], fields[4]) for fields in traces if fields[0] == "Pub"} == {("shop", "orders")}
    assert {fields[3] for fields in traces if fields[0] == "SubBefore"} == {"billing"}
    assert not any("NS%" in body for body in found)


@pytest.mark.trap("S10")
def test_the_second_form_of_namespaces_separates_nothing() -> None:
    clients = OUTSIDE.replace('names = ["c2"]', 'names = ["c2"]\noptions = { namespaceV2 = "one" }')
    producer = '[[producer]]\nname = "p1"\ngroup = "shop"\ntopic = "orders"\noptions = { namespaceV2 = "two" }\n'
    fields: list[dict[str, str]] = []

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        instance = stage.node("p1").instance
        fields.append(instance.rpc._sign({"a": "b"}, None))

    trace = run(clients + producer, script)

    assert len(trace.select("messages", event="consumed", node="c2", topic="orders")) > 500
    assert fields == [{"a": "b", "nsd": "true", "ns": "two"}]


def test_names_that_have_the_namespace_stay_as_they_are() -> None:
    clients = IN_NAMESPACE.replace('"billing"', '"NS%billing"').replace('["orders"]', '["NS%orders"]')
    (consumers,) = loads(SHOP + clients, "namespaces.toml").consumers

    assert (consumers.group, consumers.topics) == ("NS%billing", ("NS%orders",))


def test_an_endpoint_of_an_instance_is_an_address_and_a_namespace() -> None:
    domain = '[[domain]]\nname = "MQ_INST_1_a.example"\nnodes = ["ns-1"]\n'
    address = 'namesrvAddr = "http://MQ_INST_1_a.example:9876"'
    scenario = SHOP.replace("NS%orders", "MQ_INST_1_a%orders") + domain
    clients = IN_NAMESPACE.replace('namespace = "NS"', address)

    trace = execute(loads(scenario + clients, "namespaces.toml"), for_ms=30_000)

    consumed = trace.select("messages", event="consumed", topic="MQ_INST_1_a%orders")
    assert len(consumed) > 40
    assert {row.group for row in consumed} == {"MQ_INST_1_a%billing"}


@each_case(
    ("text", "namespace", "address"),
    [
        ("http://MQ_INST_1_a.example:80", "MQ_INST_1_a", "MQ_INST_1_a.example:80"),
        ("MQ_INST_1_a.example:80", "MQ_INST_1_a", "MQ_INST_1_a.example:80"),
        ("http://example:80", None, "example:80"),
        ("https://MQ_INST_1_a.example:80", "MQ_INST_1_a", "https://MQ_INST_1_a.example:80"),
        ("MQ_INST_1.example:80", None, "MQ_INST_1.example:80"),
    ],
)
def test_which_addresses_are_endpoints(text: str, namespace: str | None, address: str) -> None:
    assert (instance_of(text), address_of_endpoint(text)) == (namespace, address)


def test_a_topic_that_only_exists_outside_of_the_namespace_is_unknown() -> None:
    clients = OUTSIDE.replace('names = ["c2"]', 'names = ["c2"]\noptions = { namespace = "OTHER" }')

    with pytest.raises(SpecError, match='unknown topic "OTHER%orders"'):
        loads(SHOP + clients, "namespaces.toml")


def test_a_namespace_with_a_percent_sign_is_refused() -> None:
    with pytest.raises(SpecError, match=r"namespace: expected a name of letters, digits"):
        loads(SHOP + IN_NAMESPACE.replace('"NS"', '"N%S"'), "namespaces.toml")
