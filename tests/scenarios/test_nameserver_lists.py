"""Lists of nameservers: which nodes know which, and what happens when an operator changes them while nodes run."""

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.spec import SpecError, loads
from emulator.spec.model.scenario import Scenario
from emulator.testing import Stage, Trace, a_scenario, broker_groups, consumer_group, execute
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig, ConsumerConfig, ProducerConfig
from nodes.config.nameserver import nameserver_addresses
from nodes.protocol.codes import RequestCode
from support.every_case import each_case
from support.mistakes import only_mistake

REGISTER, ROUTE = int(RequestCode.REGISTER_BROKER), int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
TAKEN_OVER_MS = 130_000
"""Of a change after the first look, which is 10 s after the start: 120 s later."""


def known(broker: str = "", consumer: str = "", producer: str = "") -> Scenario:
    """A cluster with two nameservers, whose nodes know those that are named."""
    made = a_scenario(
        nameservers=2,
        brokers=broker_groups(config=BrokerConfig(namesrv_addr=broker)),
        consumers=consumer_group(1, ConsumerConfig(namesrv_addr=consumer)),
        rate_per_s=5,
    )
    producers = tuple(attrs.evolve(spec, config=ProducerConfig(namesrv_addr=producer)) for spec in made.producers)
    return attrs.evolve(made, producers=producers)


def asked(trace: Trace, code: int, src: str, from_ms: float = 0) -> list[str]:
    """The nodes that were sent a request, each once, in order of name."""
    rows = trace.select("rpc", src=src, code=code, kind="request", after_ms=from_ms)
    return sorted({row.dst for row in rows})


def changed(scenario: Scenario, line: str) -> Scenario:
    return attrs.evolve(scenario, acts=(TimedAct("change", act_of(line), 30_000),))


def test_each_node_knows_the_nameservers_of_its_option_or_all():
    trace = execute(known(broker="ns-2; ns-1", consumer="ns-2"), for_ms=60_000)
    assert asked(trace, REGISTER, "broker-a") == ["ns-1", "ns-2"]
    assert asked(trace, ROUTE, "c1") == ["ns-2"]


def test_a_client_whose_nameserver_no_broker_knows_has_no_route():
    trace = execute(known(broker="ns-1", producer="ns-2"), for_ms=60_000)
    assert asked(trace, REGISTER, "broker-a") == ["ns-1"]
    assert not trace.select("messages", event="stored", client_id="p1")
    assert not trace.select("beliefs", kind=BeliefKind.ROUTE, node="p1")


def test_a_broker_takes_a_new_list_over_at_the_end_of_the_period_and_the_old_nameserver_forgets_it_late():
    line = "update-broker-config namesrvAddr=ns-2"
    trace = execute(changed(known(consumer="ns-1"), line), for_ms=400_000)
    assert asked(trace, REGISTER, "broker-a", TAKEN_OVER_MS + 1_000) == ["ns-2"]
    before = trace.select("rpc", src="broker-a", dst="ns-1", code=REGISTER, kind="request", after_ms=31_000)
    assert 130_000 <= max(row.at_ms for row in before) < 130_100  # available are those of the last scan
    # The connection is idle for 120 s, and is closed: so late the nameserver forgets the broker.
    forgotten = trace.select("beliefs", kind=BeliefKind.LIVE_BROKERS, node="ns-1", subject="broker-a")[-1]
    assert forgotten.value == "null"
    assert 250_000 < forgotten.at_ms < 255_000
    # A client that still asks the old nameserver (upstream 2042, 2090) goes on with the route that it had.
    assert asked(trace, ROUTE, "c1", 300_000) == ["ns-1"]


def test_before_the_first_look_ten_seconds_after_the_start_a_change_waits_for_that():
    scenario = attrs.evolve(known(), acts=(TimedAct("a", act_of("update-broker-config namesrvAddr=ns-1"), 5_000),))
    trace = execute(scenario, for_ms=60_000)
    assert asked(trace, REGISTER, "broker-a", 11_000) == ["ns-1"]


def test_a_shorter_period_counts_from_the_next_process_on_which_has_the_list_at_once():
    line = "update-broker-config namesrvAddr=ns-2 updateNameServerAddrPeriod=1000"

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.at_ms(90_000)

    made = changed(known(), line)
    last = TimedAct("back", act_of("update-broker-config namesrvAddr=ns-1"), 80_000)
    trace = execute(attrs.evolve(made, acts=(*made.acts, last)), script)
    assert asked(trace, REGISTER, "broker-a", 32_000) == ["ns-1", "ns-2"]
    between = trace.select("rpc", src="broker-a", code=REGISTER, kind="request", after_ms=60_000)
    assert {row.dst for row in between if row.at_ms < 80_000} == {"ns-2"}


def test_the_next_process_takes_a_new_list_over_within_its_shorter_period():
    first = TimedAct("period", act_of("update-broker-config updateNameServerAddrPeriod=1000"), 30_000)
    second = TimedAct("list", act_of("update-broker-config namesrvAddr=ns-1"), 80_000)

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill("broker-a")
        stage.start("broker-a")
        await stage.at_ms(120_000)

    trace = execute(attrs.evolve(known(), acts=(first, second)), script)
    assert asked(trace, REGISTER, "broker-a", 82_000) == ["ns-1"]


def test_a_restart_gives_a_client_other_nameservers():
    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.end(await stage.begin("restart c1 with {namesrvAddr = ns-2}"))
        await stage.at_ms(60_000)

    trace = execute(known(consumer="ns-1"), script)
    assert asked(trace, ROUTE, "c1", 21_000) == ["ns-2"]


def test_what_is_no_address_changes_nothing():
    assert nameserver_addresses("a:1; b ;c:2;") == ("a:1", "c:2")

    async def script(stage: Stage) -> None:
        await stage.at_ms(1_000)
        broker = stage.node("broker-a")
        before = broker.context.nameservers
        broker.context.config = attrs.evolve(broker.context.config, namesrv_addr="nowhere")
        broker.parts.group.nameserver_list.on_config_changed()
        await stage.at_ms(20_000)
        assert broker.context.nameservers == before

    execute(known(), script)


FILE = """
[scenario]
name = "lists"
run_for_s = 60
[nameserver]
count = 2
[[broker]]
name = "broker-a"
{options}
[[topic]]
name = "orders"
[[consumer]]
group = "g"
topics = ["orders"]
{more}
"""
AT = "at_s = 30\n"


@each_case(
    ("options", "more", "reported"),
    [
        ('options = { namesrvAddr = "ns-3" }', "", 'broker[0].options.namesrvAddr: unknown nameserver "ns-3"'),
        ("", 'options = { namesrvAddr = "ns-1;ns-3" }', 'consumer[0].options.namesrvAddr: unknown nameserver "ns-3"'),
        (
            'container = "box"\noptions = { namesrvAddr = "ns-1" }',
            "",
            "broker[0].options.namesrvAddr: expected none: the container has the connections",
        ),
        (
            "",
            f'[[fault]]\ndo = "restart broker-a with {{namesrvAddr = ns-3}}"\n{AT}',
            'fault[0].options.namesrvAddr: unknown nameserver "ns-3"',
        ),
        (
            "",
            f'[[admin]]\ndo = "update-broker-config namesrvAddr=ns-3"\n{AT}',
            'admin[0].do: unknown nameserver "ns-3"',
        ),
        (
            'options = { namesrvAddr = "names:9876" }',
            '[[domain]]\nname = "name"\nnodes = []',
            'broker[0].options.namesrvAddr: unknown domain name "names"; did you mean "name"?',
        ),
        (
            'options = { namesrvAddr = "ns-1", fetchNameSrvAddrByDnsLookup = true }',
            "",
            "broker[0].options.namesrvAddr: expected one domain name, NAME:PORT, with fetchNameSrvAddrByDnsLookup",
        ),
        (
            "options = { fetchNamesrvAddrByAddressServer = true }",
            "",
            "broker[0].options.fetchNamesrvAddrByAddressServer: expected an [address_server] in the scenario",
        ),
        (
            "",
            '[address_server]\nnameservers = ["ns-1", "ns-3"]',
            'address_server.nameservers[1]: unknown nameserver "ns-3"',
        ),
        ("", '[[domain]]\nname = "n"\nnodes = ["ns-3"]', 'domain[0].nodes[0]: unknown nameserver "ns-3"'),
        ("", '[[domain]]\nname = "na me"\nnodes = []', "domain[0].name: expected a domain name of letters, digits"),
        (
            "",
            '[[domain]]\nname = "n"\nnodes = []\n[[domain]]\nname = "n"\nnodes = []',
            'domain[1].name: expected a name of its own, "n" is that of domain[0]',
        ),
        (
            "",
            f'[[admin]]\ndo = "update-address-server ns-1"\n{AT}',
            "admin[0].do: expected an [address_server] in the scenario",
        ),
        ("", f'[[admin]]\ndo = "update-domain n ns-1"\n{AT}', 'admin[0].do: unknown domain name "n"'),
    ],
)
def test_a_nameserver_that_does_not_exist_is_one_line(options, more, reported):
    with pytest.raises(SpecError) as caught:
        loads(FILE.format(options=options, more=more), "lists.toml")
    assert reported in only_mistake(caught.value)
