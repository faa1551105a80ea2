"""Clients of RocketMQ 4 whose nameserver is the remoting port of a proxy."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from analysis.executed_rows import found_in_executed
from emulator.analysis.judge import broken
from emulator.analysis.measures.stale_routes import STALE_ROUTES, StaleRoute
from emulator.spec import SpecError, loads
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.proxies import ConsumerMode, ProxySpec
from emulator.spec.model.scenario import ConsumerGroupSpec, Scenario, TopicSpec
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import GROUP, RETRY, TOPIC, Stage, Trace, a_scenario, broker_groups, execute
from nodes.beliefs import BeliefKind
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.config import (
    BrokerConfig,
    ConsumerConfig,
    LitePullConsumerConfig,
    ProducerConfig,
    PullConsumerConfig,
)
from nodes.config.proxy import ProxyConfig
from nodes.protocol.codes import RequestCode
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.units import NS_PER_S

PROXY, OTHER = "proxy-1", "proxy-2"
BROKERS = ("broker-a", "broker-b")
TRACES = "RMQ_SYS_TRACE_TOPIC"
SECONDS = 1_000


def behind(
    *groups: ConsumerGroupSpec,
    brokers: tuple[str, ...] = BROKERS,
    config: BrokerConfig | None = None,
    proxy: ProxyConfig | None = None,
    kind: TopicMessageType = TopicMessageType.NORMAL,
    slaves: int = 0,
    producer: ProducerConfig | None = None,
    **sent: Any,
) -> Scenario:
    """Groups, and a producer of ten messages a second, behind the first of two proxies."""
    made = a_scenario(
        brokers=broker_groups(*brokers, config=config, slaves=slaves),
        topics=(TopicSpec(TOPIC, brokers, 4, kind),),
    )
    options = producer or ProducerConfig(namesrv_addr=PROXY)
    producers = (ProducerSpec("p1", "shop", TOPIC, 10, options, **sent),)
    proxies = tuple(ProxySpec(name, proxy or ProxyConfig()) for name in (PROXY, OTHER))
    return attrs.evolve(made, proxies=proxies, consumers=groups, producers=producers)


def consumers(count: int = 1, config: ConsumerConfig | None = None, **more: Any) -> ConsumerGroupSpec:
    names = tuple(f"c{i}" for i in range(1, count + 1))
    return ConsumerGroupSpec(GROUP, names, (TOPIC,), config or ConsumerConfig(namesrv_addr=PROXY), **more)


def peers(trace: Trace, node: str) -> set[str]:
    """The nodes with which a client has exchanged frames."""
    return {row.dst for row in trace.select("rpc", src=node)} | {row.src for row in trace.select("rpc", dst=node)}


KINDS = {
    "push": ConsumerConfig(namesrv_addr=PROXY),
    "orderly": ConsumerConfig(namesrv_addr=PROXY, consume_orderly=True),
    "lite pull": LitePullConsumerConfig(namesrv_addr=PROXY),
    "classic pull": PullConsumerConfig(namesrv_addr=PROXY),
}


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_clients_of_each_kind_speak_with_the_proxy_alone(config: ConsumerConfig) -> None:
    trace = execute(behind(consumers(2, config)), for_ms=50 * SECONDS)

    assert [peers(trace, node) for node in ("c1", "c2", "p1")] == [{PROXY}] * 3
    stored = trace.select("messages", event="stored", topic=TOPIC, until_ms=40 * SECONDS)
    consumed = trace.consumed()
    assert {row.broker_name for row in stored} == set(BROKERS)
    assert len(stored) > 300
    assert [row for row in stored if (row.broker_name, row.queue_id, row.offset) not in consumed] == []
    assert {row.node for row in trace.select("messages", event="consumed", group=GROUP)} == {"c1", "c2"}
    # Brokers do not know the group: its members are those of the proxies.
    assert [row for row in trace.select("beliefs", kind=BeliefKind.CONSUMER_IDS, subject=GROUP) if row.value] == []


def test_slaves_are_never_read_behind_a_proxy() -> None:
    trace = execute(behind(consumers(), brokers=("broker-a",), slaves=1), for_ms=30 * SECONDS)
    pulled = trace.select("rpc", src=PROXY, code=RequestCode.PULL_MESSAGE, kind="request")
    assert {row.dst for row in pulled} == {"broker-a"}


def test_a_message_that_fails_comes_back_through_the_proxy() -> None:
    trace = execute(behind(consumers(fail_times=1), messages=5), for_ms=120 * SECONDS)
    assert len(trace.select("messages", event="stored", topic=RETRY)) == 5
    assert len(trace.select("messages", event="consumed", topic=RETRY)) == 5


@pytest.mark.trap("G49")
def test_a_second_member_is_found_at_the_next_rebalance() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(30 * SECONDS)
        await stage.kill("c2")
        await stage.at_ms(65 * SECONDS)
        stage.start("c2")
        await stage.at_ms(100 * SECONDS)

    trace = execute(behind(consumers(2)), script)
    notices = trace.select("rpc", code=RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
    assert [row for row in notices if row.dst in ("c1", "c2")] == []
    views = [row for row in trace.select("beliefs", node="c1", kind=BeliefKind.VIEW) if row.at_ms > 65 * SECONDS]
    assert 65 * SECONDS < views[0].at_ms < 86 * SECONDS


@pytest.mark.trap("G55")
@pytest.mark.parametrize("end", [Stage.kill, pytest.param(Stage.power_off, marks=pytest.mark.slow)])
def test_a_client_that_moves_to_another_proxy_is_there_twice_and_leaves_queues_without_owner(
    end: Callable[[Stage, str], Awaitable[None]],
) -> None:
    lists = ConsumerConfig(namesrv_addr=f"{PROXY};{OTHER}")
    members: list[tuple[str, ...]] = []

    async def script(stage: Stage) -> None:
        def look() -> None:
            members.append(stage.node(OTHER)._clients.consumers.client_ids(GROUP))

        await stage.at_ms(30 * SECONDS)
        look()
        await end(stage, PROXY)
        await stage.at_ms(100 * SECONDS)
        look()
        await stage.at_ms(170 * SECONDS)
        look()

    trace = execute(behind(consumers(3, lists)), script)
    moved = _at(trace, PROXY)
    assert [len(ids) for ids in members] == [3, 3 + len(moved), 3]
    assert len(moved) >= 1
    assert len(set(members[1])) == 3
    believed = [row for row in trace.beliefs(BeliefKind.PROXY_MEMBERS, GROUP, node=OTHER) if row.at_ms < 100 * SECONDS]
    assert sum(";" in proxies for proxies in believed[-1].held.values()) == len(moved)
    found = found_in_executed(trace)
    assert any(row.end_ns - row.start_ns > 60 * NS_PER_S for row in found["orphans"])
    assert broken(found) == ()


def _at(trace: Trace, proxy: str) -> set[str]:
    """The consumers that have sent heartbeats to a proxy in the first half minute."""
    rows = trace.select("rpc", dst=proxy, code=RequestCode.HEART_BEAT, until_ms=30 * SECONDS)
    return {row.src for row in rows if row.src.startswith("c")}


@pytest.mark.trap("G46")
def test_a_commit_of_a_producer_behind_a_proxy_counts_after_the_first_check() -> None:
    commit = LocalTransactions(LocalTransactionState.COMMIT)
    scenario = behind(
        consumers(), brokers=("broker-a",), kind=TopicMessageType.TRANSACTION, transactions=commit, messages=5
    )
    trace = execute(scenario, for_ms=150 * SECONDS)

    sent = trace.select("messages", event="stored", topic="RMQ_SYS_TRANS_HALF_TOPIC")
    assert sent[0].at_ms < 2 * SECONDS
    orders = trace.select("messages", event="stored", topic=TOPIC)
    checks = trace.select("rpc", src=PROXY, dst="p1", code=RequestCode.CHECK_TRANSACTION_STATE, event="delivered")
    assert (len(orders), len(checks)) == (5, 5)
    assert orders[0].at_ms > checks[0].at_ms > 20 * SECONDS
    assert len(trace.consumed()) == 5


@pytest.mark.trap("G47")
def test_a_group_that_pops_gets_nothing_behind_a_proxy() -> None:
    config = ConsumerConfig(namesrv_addr=PROXY, client_rebalance=False, pinned_assigner=False)
    popping = consumers(1, config, mode=ConsumerMode.POP)
    trace = execute(behind(popping), for_ms=60 * SECONDS)
    assert len(trace.select("messages", event="stored", topic=TOPIC)) > 300
    assert trace.select("rpc", dst="broker-a", code=RequestCode.POP_MESSAGE) == []


@pytest.mark.trap("G54")
@pytest.mark.parametrize("trace_on", [False, True])
def test_a_producer_behind_a_proxy_traces_messages_only_if_the_proxy_says_so(trace_on: bool) -> None:
    scenario = behind(
        proxy=ProxyConfig(trace_on=trace_on),
        config=BrokerConfig(trace_topic_enable=True),
        producer=ProducerConfig(namesrv_addr=PROXY, enable_trace=True),
    )
    trace = execute(scenario, for_ms=30 * SECONDS)
    assert bool(trace.select("messages", event="stored", topic=TRACES)) is trace_on


@pytest.mark.trap("G52")
def test_a_producer_behind_a_proxy_creates_no_topic() -> None:
    producers = (ProducerSpec("p1", "shop", "new", 10, ProducerConfig(namesrv_addr=PROXY)),)
    topics = (TopicSpec("new", BROKERS, created_later=True),)
    scenario = attrs.evolve(behind(), topics=topics, producers=producers)
    trace = execute(scenario, for_ms=60 * SECONDS)
    assert trace.select("messages", event="stored", topic="new") == []


def test_a_route_is_stale_behind_a_proxy_as_long_as_the_proxy_has_the_old_one() -> None:
    async def script(stage: Stage) -> None:
        await stage.at_ms(60 * SECONDS)
        before.extend(found_in_executed(stage.trace).of(STALE_ROUTES))
        await stage.kill("broker-b")
        await stage.at_ms(180 * SECONDS)

    before: list[StaleRoute] = []
    trace = execute(behind(consumers(2)), script)
    stale = found_in_executed(trace).of(STALE_ROUTES)
    assert before == []
    assert {"c1", "c2", "p1"} <= {item.node for item in stale}
    assert all(0 < item.end_ns - item.start_ns < 80e9 for item in stale)


# --- scenario files --------------------------------------------------------------------

FILE = """
[scenario]
name = "behind"
seed = 1
run_for_s = 5
[[proxy]]
name = "proxy-1"
options = {{ remotingListenPort = 9080 }}
[[broker]]
name = "broker-a"
options = {{ namesrvAddr = "{broker}" }}
[[topic]]
name = "orders"
[[consumer]]
group = "g"
topics = ["orders"]
options = {{ namesrvAddr = "{client}" }}
"""


def test_clients_may_name_proxies_as_their_nameservers_and_no_warning_follows() -> None:
    scenario = loads(FILE.format(broker="", client="proxy-1;ns-1"), "behind.toml")
    assert check(scenario) == ()
    trace = execute(scenario, for_ms=5 * SECONDS)
    assert peers(trace, "consumer-1") & {"proxy-1", "ns-1"}


@pytest.mark.parametrize(("broker", "client", "key"), [("proxy-1", "", "broker"), ("", "proxy-9", "consumer")])
def test_brokers_have_no_proxies_and_clients_none_that_do_not_exist(broker: str, client: str, key: str) -> None:
    with pytest.raises(SpecError, match=rf"{key}\[0\]\.options\.namesrvAddr: unknown nameserver"):
        loads(FILE.format(broker=broker, client=client), "behind.toml")
