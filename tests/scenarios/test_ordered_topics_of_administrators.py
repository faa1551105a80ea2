"""Topics that administrators make ordered, or give attributes: what brokers and nameservers have afterwards."""

import json

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.spec import Scenario
from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from faults.words import WordsError
from nodes.beliefs import LifecycleEvent
from nodes.protocol.names import ORDER_TOPIC_CONFIG
from support.every_case import each_case

CREATE, PUT = "UPDATE_AND_CREATE_TOPIC", "PUT_KV_CONFIG"


def acting(*lines: str) -> Scenario:
    """Acts at 20 s, 30 s, ..., in a cluster of two brokers and two nameservers."""
    acts = tuple(TimedAct(f"act-{i}", act_of(line), 20_000 + 10_000 * i) for i, line in enumerate(lines))
    return attrs.evolve(a_scenario(brokers=broker_groups("broker-a", "broker-b"), nameservers=2), acts=acts)


def executed(*lines: str) -> tuple[Trace, dict[str, str], dict[str, str]]:
    """(trace, nameserver -> order configuration of `news`, attributes of `news` at broker-a)."""
    attributes: dict[str, str] = {}

    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000 + 10_000 * len(lines))
        config = stage.node("broker-a").context.topics.select_topic_config("news")
        attributes.update({} if config is None else config.attributes)

    trace = execute(acting(*lines), script)
    orders: dict[str, str] = {}
    for row in trace.select("admin"):
        detail = json.loads(row.detail)
        if row.request == PUT and (detail["namespace"], detail["key"]) == (ORDER_TOPIC_CONFIG, "news"):
            orders[row.node] = detail["value"]
    return trace, orders, attributes


def failures(trace: Trace) -> list[str]:
    return [row.detail for row in trace.select("lifecycle", event=LifecycleEvent.COMMAND_FAILED)]


def test_an_ordered_topic_of_a_cluster_has_an_entry_for_each_broker_at_all_nameservers_when_all_brokers_have_it():
    trace, orders, _ = executed("update-topic news queues 3 order true")
    assert [(row.node, row.request) for row in trace.select("admin")] == [
        *(("broker-a", CREATE), ("broker-b", CREATE)),
        *(("ns-1", PUT), ("ns-2", PUT)),
    ]
    assert orders == dict.fromkeys(("ns-1", "ns-2"), "broker-b:3;broker-a:3")


def test_at_one_broker_its_entry_is_set_and_those_of_others_stay():
    lines = ("update-topic news queues 3 order true", "update-topic news read 8 write 5 order true on broker-a")
    _, orders, _ = executed(*lines)
    assert {tuple(sorted(text.split(";"))) for text in orders.values()} == {("broker-a:5", "broker-b:3")}
    _, orders, _ = executed(lines[1])
    assert orders == dict.fromkeys(("ns-1", "ns-2"), "broker-a:5")


def test_a_topic_that_is_not_ordered_any_more_keeps_its_entry():
    trace, orders, _ = executed("update-topic news order true on broker-a", "update-topic news on broker-a")
    assert orders["ns-1"] == "broker-a:8"
    assert [row.request for row in trace.select("admin")] == [CREATE, PUT, PUT, CREATE]


def test_attributes_are_set_changed_and_removed_and_what_a_broker_refuses_changes_nothing():
    trace, _, attributes = executed("update-topic news attributes +message.type=FIFO,+reserve.time=60 on broker-a")
    assert attributes == {"message.type": "FIFO", "reserve.time": "60"}
    detail = json.loads(trace.select("admin")[0].detail)
    assert sorted(detail["attributes"].split(",")) == ["+message.type=FIFO", "+reserve.time=60"]
    trace, _, attributes = executed(
        "update-topic news attributes +reserve.time=60 on broker-a",
        "update-topic news attributes -reserve.time on broker-a",
        "update-topic news attributes +no.such.key=1 on broker-a",
    )
    assert attributes == {}
    (failed,) = failures(trace)
    assert "unsupported key: no.such.key" in failed


def test_a_broker_of_5_3_3_knows_no_attribute_of_groups():
    trace, _, _ = executed("update-sub-group readers attributes +k=v on broker-a")
    (failed,) = failures(trace)
    assert "unsupported key: k" in failed
    assert trace.select("admin") == []


@each_case("text", ["message.type=FIFO", "+a", "-a=b", "+a=b,-a", "+a=", "a", "+=b", "+a=b=c"])
def test_a_text_that_mqadmin_does_not_read_is_one_line(text):
    with pytest.raises(WordsError, match="attributes: expected attributes"):
        act_of(f"update-topic news attributes {text}")
