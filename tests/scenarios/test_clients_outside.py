"""Clients outside of a private network: each example is reported in RocketMQ's words, and its fix silences that."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from emulator.analysis.judge import broken, judge_run
from emulator.analysis.report import Report, Service, symptoms
from emulator.run import run_scenario
from emulator.spec import Scenario, loads
from emulator.spec.warnings.harmful_settings import check
from emulator.testing import execute
from emulator.testing.trace import Trace
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from emulator.why.worst import worst_answers

EXAMPLES = Path(__file__).parents[2] / "examples" / "private_networks"
README = EXAMPLES.parent / "README.md"
UNREACHABLE = "clients are given addresses that lead nowhere from where they are"
INSIDE = "127.1.2.1:10911 is an address inside of docker; broker-a registered it (brokerIP1), so routes have it"


@attrs.frozen
class Judged:
    """A run of an example, and what was found."""

    scenario: Scenario
    path: Path
    trace: Trace
    report: Report

    @property
    def kinds(self) -> list[str]:
        """Kinds of its symptoms, the most severe first."""
        return list(dict.fromkeys(symptom.kind.value for symptom in symptoms(self.report)))

    def why(self, *words: str) -> str:
        """The answer to a question."""
        return "\n".join(answer_of_run(words, open_run(self.path)))

    def warned(self) -> list[str]:
        """What `check` foresees."""
        return [item.line() for item in check(self.scenario) if item.name == "unreachable-address"]


Executes = Callable[..., Judged]


@pytest.fixture(scope="module")
def run_example(tmp_path_factory: pytest.TempPathFactory) -> Executes:
    """Runs an example, with some of its text replaced."""

    def executed(name: str, *changes: tuple[str, str]) -> Judged:
        path = EXAMPLES / f"{name}.toml"
        text = path.read_text()
        for old, new in changes:
            assert text.count(old) == 1, (old, text.count(old))
            text = text.replace(old, new)
        trace, scenario = Trace(), loads(text, str(path))
        run = run_scenario(scenario, runs=tmp_path_factory.mktemp(name), listeners=(trace.note,))
        return Judged(scenario, run.path, trace, judge_run(open_run(run.path)))

    return executed


@pytest.fixture(scope="module")
def docker(run_example: Executes) -> Judged:
    return run_example("docker")


@pytest.fixture(scope="module")
def node_port(run_example: Executes) -> Judged:
    return run_example("node_port")


def test_clients_outside_are_given_the_address_inside_and_that_breaks_no_rule(docker: Judged) -> None:
    assert broken(docker.report) == ()
    assert docker.report.service is Service.PAGING
    assert docker.kinds == ["failed sends", "consumer lag", "stalled queues"]
    assert {symptom.cause for symptom in symptoms(docker.report)} == {f"no disturbance: {UNREACHABLE}"}
    assert {row.node for row in docker.trace.select("messages", event="stored")} == {"broker-a"}


def test_why_names_the_address_and_the_option(docker: Judged) -> None:
    assert docker.why("sends", "of", "shop").splitlines()[0].endswith("127.1.2.1:10911 is an address inside of docker")
    assert INSIDE in docker.why("sends", "of", "shop")
    assert INSIDE in docker.why("lag", "billing", "at", "100s")
    assert INSIDE in docker.why("group", "billing")
    worst = worst_answers(docker.report, open_run(docker.path))
    assert all(item.untried == (worst[0].untried[0],) for item in worst[:3])
    assert worst[0].untried[0].endswith("tries them): brokerIP1")


def test_check_foresees_it_and_the_page_quotes_it(docker: Judged) -> None:
    (line,) = docker.warned()
    assert "billing-1, shop cannot connect with it; brokerIP1 = 192.168.0.10 is where its port is published" in line
    assert "39 of 39 attempts of shop to send failed" in README.read_text()
    assert any("39 of 39 attempts of shop to send failed" in symptom.text for symptom in symptoms(docker.report))


def test_with_broker_ip1_nothing_is_wrong(run_example: Executes) -> None:
    fixed = run_example(
        "docker", ("options = {}", 'options = { brokerIP1 = "192.168.0.10" }'), ("run_for_s = 120", "run_for_s = 60")
    )

    assert fixed.warned() == []
    assert (broken(fixed.report), fixed.report.service) == ((), Service.CALM)


def test_two_brokers_of_which_one_is_out_of_reach_break_no_rule_either(run_example: Executes) -> None:
    second = '[[broker]]\nname = "broker-b"\noptions = { brokerIP1 = "192.168.0.10", listenPort = 10921 }\n\n[[topic]]'
    half = run_example(
        "docker",
        ('"broker-a", "inside"]', '"broker-a", "broker-b", "inside"]'),
        ('= "broker-a:10911" }', '= "broker-a:10911", "192.168.0.10:10921" = "broker-b:10921" }'),
        ("[[topic]]", second),
    )

    assert broken(half.report) == ()
    assert "stalled queues" in half.kinds
    stalled = next(symptom for symptom in symptoms(half.report) if symptom.kind.value == "stalled queues")
    assert "in orders broker-a" in stalled.text
    assert UNREACHABLE in stalled.cause
    assert INSIDE in half.why("lag", "billing", "at", "100s") + half.why("group", "billing")


def test_a_slave_out_of_reach_explains_no_broken_rule(tmp_path: Path) -> None:
    """Members ask masters, so what they cannot reach of a slave is not why a queue has no owner."""
    path = EXAMPLES.parent / "nameservers" / "removed_nameserver.toml"
    slave = "options = { fetchNamesrvAddrByAddressServer = true"
    broker = f'[[broker]]\nname = "broker-a"\nid = 1\n{slave}, brokerIP1 = "10.9.9.9" }}\n\n[[topic]]'
    text = path.read_text().replace("rate_per_s = 20", "rate_per_s = 2")
    assert text.count("[[topic]]") == 1

    run = run_scenario(loads(text.replace("[[topic]]", broker), str(path)), runs=tmp_path)

    assert set(broken(judge_run(open_run(run.path)))) == {"V2", "V8"}


def test_routes_of_a_proxy_name_a_port_that_is_not_published(node_port: Judged) -> None:
    assert broken(node_port.report) == ()
    assert node_port.kinds == ["failed starts", "consumer lag"]
    causes = {symptom.cause for symptom in symptoms(node_port.report)}
    assert causes == {f"no disturbance: {UNREACHABLE}", "mail-1 stopping at 0.2 s"}
    text = "connect to 192.168.0.10:8081 failed, first at"
    assert text in node_port.why("node", "mail-1")
    assert "192.168.0.10:8081 leads to no node: the port is not published" in node_port.why("node", "shop")
    (line,) = node_port.warned()
    assert "its routes name 192.168.0.10:8081, which leads to no node" in line
    assert "mail-1 could not start" in README.read_text()


def test_with_the_port_of_the_request_nothing_is_wrong(run_example: Executes) -> None:
    port = ("useEndpointPortFromRequest = false", "useEndpointPortFromRequest = true")
    fixed = run_example("node_port", port, ("run_for_s = 120", "run_for_s = 30"))

    assert fixed.warned() == []
    assert (broken(fixed.report), fixed.report.service) == ((), Service.CALM)
    endpoints = [row.held for row in fixed.trace.select("beliefs", node="mail-1", kind="proxy_route")]
    named = {address for route in endpoints if route for entry in route.values() for address in entry["endpoints"]}
    assert named == {"192.168.0.10:30081"}


FORTH = """
[scenario]
name = "restarted"
run_for_s = 200
[nameserver]
count = 1
[[private_network]]
name = "docker"
nodes = ["ns-1", "broker-a"]
publish = { "192.168.0.10:9876" = "ns-1:9876", "192.168.0.10:10911" = "broker-a:10911" }
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "billing"
names = ["billing-1"]
topics = ["orders"]
[[producer]]
name = "shop"
group = "shop"
topic = "orders"
rate_per_s = 10
[[fault]]
do = "restart broker-a with {brokerIP1 = 192.168.0.10}"
at_s = 60
[[admin]]
at_s = 30
do = "update-topic orders queues 8"
"""


def test_a_restart_with_broker_ip1_lets_clients_in_and_administrators_were_never_outside() -> None:
    trace = execute(loads(FORTH, "restarted.toml"), for_ms=200_000)

    assert not trace.select("lifecycle", event="command_failed")
    assert min(row.at_s for row in trace.select("messages", event="stored")) > 60
    owners = {(row.broker_name, row.queue_id) for row in trace.select("ownership", event="acquired", topic="orders")}
    assert owners == {("broker-a", number) for number in range(8)}
