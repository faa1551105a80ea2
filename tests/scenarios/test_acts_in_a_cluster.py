"""Acts of administrators in a whole cluster: what each asks, in which order, and what stays of one that fails."""

from pathlib import Path

import attrs
import pytest

from emulator.acts.act import TimedAct
from emulator.acts.catalogue import act_of
from emulator.analysis.rendering.shown_report import analyze
from emulator.run import run_scenario
from emulator.spec import Scenario
from emulator.spec.refusals.targets import is_of_administrator
from emulator.testing import Trace, a_scenario, broker_groups, execute
from nodes.beliefs import LifecycleEvent
from nodes.protocol.codes import RequestCode
from support.admin_requests import AdminExample

READY_MS = 30_000
ORDERS = "orders"


def acting(scenario: Scenario, *lines: str, every_ms: int = 10_000) -> Scenario:
    """The scenario with one act after the other, from `READY_MS` on."""
    acts = (TimedAct(f"act-{number}", act_of(line), READY_MS + number * every_ms) for number, line in enumerate(lines))
    return attrs.evolve(scenario, acts=tuple(acts))


def executed(scenario: Scenario, *lines: str, faults: tuple[str, ...] = ()) -> Trace:
    async def script(stage):
        await stage.at_ms(READY_MS - 1_000)
        for line in faults:
            await stage.begin(line)

    acting_scenario = acting(scenario, *lines)
    return execute(acting_scenario, script, for_ms=READY_MS + 10_000 * len(lines) + 10_000)


def requests(trace: Trace) -> list[tuple[str, str]]:
    """(node, request) of each change, in order."""
    return [(row.node, row.request) for row in trace.select("admin")]


def failures(trace: Trace) -> list[str]:
    return [row.detail for row in trace.select("lifecycle", event=LifecycleEvent.COMMAND_FAILED)]


def two_brokers(**given: object) -> Scenario:
    return a_scenario(brokers=broker_groups("broker-a", "broker-b"), nameservers=2, consumers=2, rate_per_s=5, **given)


def test_a_topic_grows_at_one_master_after_the_other_and_its_rows_name_the_administrator():
    trace = executed(two_brokers(), "update-topic orders queues 8")
    name = RequestCode.UPDATE_AND_CREATE_TOPIC.name
    assert requests(trace) == [("broker-a", name), ("broker-b", name)]
    first, second = trace.select("admin")
    assert first.t_ns < second.began_ns
    assert first.client.startswith("127.1.193.1:")
    started, stopped = trace.select("lifecycle", node="administrator")
    assert (started.t_ns, started.detail) == (READY_MS * 1_000_000, "act-0: update-topic orders queues 8")
    assert stopped.event == LifecycleEvent.STOPPED
    routes = [row for row in trace.select("beliefs", kind="route", node="c1") if row.subject == ORDERS]
    assert '"queues":[8,8,6]' in routes[-1].value


def test_a_broker_that_does_not_answer_leaves_a_topic_half_grown():
    trace = executed(two_brokers(), "update-topic orders queues 8", faults=("cut administrator broker-b",))
    assert requests(trace) == [("broker-a", RequestCode.UPDATE_AND_CREATE_TOPIC.name)]
    (failure,) = failures(trace)
    assert failure.startswith("act-0: failed: ")
    assert failure.endswith("; done at 127.1.2.1:10911")


def test_a_broker_that_does_not_answer_leaves_a_deleted_topic_at_the_nameservers():
    trace = executed(two_brokers(), "delete-topic orders", faults=("cut administrator broker-b",))
    assert requests(trace) == [("broker-a", RequestCode.DELETE_TOPIC_IN_BROKER.name)]


def test_a_topic_is_deleted_at_the_masters_and_then_at_the_nameservers():
    trace = executed(two_brokers(), "delete-topic orders")
    in_broker, in_namesrv = RequestCode.DELETE_TOPIC_IN_BROKER.name, RequestCode.DELETE_TOPIC_IN_NAMESRV.name
    assert sorted(requests(trace)[:2]) == [("broker-a", in_broker), ("broker-b", in_broker)]
    assert sorted(requests(trace)[2:]) == [("ns-1", in_namesrv), ("ns-2", in_namesrv)]


def test_a_group_is_switched_off_at_the_brokers_that_answer():
    line = "update-sub-group g consumeEnable=false"
    trace = executed(two_brokers(), line, faults=("cut administrator broker-a",))
    assert requests(trace) == [("broker-b", RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP.name)]
    assert len(failures(trace)) == 1


def test_a_new_permission_gives_all_brokers_the_number_of_queues_of_the_first_in_the_route():
    trace = executed(two_brokers(), "update-topic orders queues 6 on broker-b", "update-topic-perm orders 4")
    *_, first, second = trace.select("admin", topic=ORDERS)
    sizes = {row.detail.split('"readQueueNums":')[1].split(",")[0] for row in (first, second)}
    assert sizes == {'"4"'}


def test_what_one_act_waits_for_delays_the_next_one():
    trace = executed(
        two_brokers(),
        "update-topic orders queues 8 on broker-b",
        "update-topic orders queues 8 on broker-a",
        faults=("cut administrator broker-b",),
    )
    starts = [row.at_ms for row in trace.select("lifecycle", node="administrator", event="started")]
    assert starts[0] == READY_MS
    assert starts[1] == READY_MS + 10_000  # it has waited for 3 s only
    acts = (TimedAct("a", act_of("delete-topic orders on broker-b"), READY_MS),)
    acts += (TimedAct("b", act_of("delete-topic orders on broker-a"), READY_MS + 1),)

    async def script(stage):
        await stage.begin("cut administrator broker-b")

    trace = execute(attrs.evolve(two_brokers(), acts=acts), script, for_ms=READY_MS + 20_000)
    _, second = trace.select("lifecycle", node="administrator", event="started")
    assert second.at_ms > READY_MS + 2_900


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("reset-offset-by-time g orders 10s", [RequestCode.INVOKE_BROKER_TO_RESET_OFFSET] * 2),
        ("skip-accumulated-message g orders on broker-a", [RequestCode.INVOKE_BROKER_TO_RESET_OFFSET]),
        (
            "reset-offset g orders 0 3 on broker-a",
            [RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET],
        ),
        ("update-consume-offset g orders 0 3 on broker-a", [RequestCode.UPDATE_CONSUMER_OFFSET]),
        ("delete-sub-group g removeOffset true on broker-a", [RequestCode.DELETE_SUBSCRIPTIONGROUP]),
        ("update-broker-config brokerPermission=4", [RequestCode.UPDATE_BROKER_CONFIG] * 2),
        ("update-namesrv-config orderMessageEnable=true", [RequestCode.UPDATE_NAMESRV_CONFIG] * 2),
        ("set-consume-mode g orders PULL", [RequestCode.SET_MESSAGE_REQUEST_MODE] * 2),
        ("update-kv-config N k v", [RequestCode.PUT_KV_CONFIG] * 2),
        ("delete-kv-config N k on ns-1", [RequestCode.DELETE_KV_CONFIG]),
        ("wipe-write-perm broker-a", [RequestCode.WIPE_WRITE_PERM_OF_BROKER] * 2),
        ("add-write-perm broker-a on ns-2", [RequestCode.ADD_WRITE_PERM_OF_BROKER]),
        ("update-topic news read 4 write 2", [RequestCode.UPDATE_AND_CREATE_TOPIC] * 2),
    ],
)
def test_an_act_sends_the_requests_of_mqadmin(line, changed):
    trace = executed(two_brokers(), line)
    assert [request for _, request in requests(trace)] == [code.name for code in changed]
    assert failures(trace) == []


def test_a_deleted_group_loses_its_topics_too():
    trace = executed(two_brokers(), "delete-sub-group g")
    deleted = [(row.request, row.topic) for row in trace.select("admin") if row.topic]
    names = (RequestCode.DELETE_TOPIC_IN_BROKER.name, RequestCode.DELETE_TOPIC_IN_NAMESRV.name)
    assert deleted == [(name, topic) for topic in ("%RETRY%g", "%DLQ%g") for name in names for _ in range(2)]


def test_a_group_gets_the_offsets_of_another_one():
    lines = ("update-sub-group h", "clone-group-offset g h orders")
    trace = executed(two_brokers(), *lines)
    cloned = trace.select("admin", request=RequestCode.UPDATE_CONSUMER_OFFSET.name, group="h")
    assert len([row for row in cloned if row.topic == ORDERS]) == 8
    assert failures(trace) == []


def test_a_group_that_does_not_exist_gets_no_offsets():
    (failure,) = failures(executed(two_brokers(), "clone-group-offset g h orders"))
    assert failure == "act-0: failed: CODE: 26 DESC: subscription group h not exist; done at no node"


def test_mqadmin_resets_no_offset_to_zero():
    trace = executed(two_brokers(), "reset-offset g orders 0 0 on broker-a")
    assert requests(trace) == []
    assert failures(trace) == ["act-0: failed: mqadmin resets no offset to 0: it has done nothing; done at no node"]


def test_a_message_is_sent_and_consumed():
    scenario = a_scenario(consumers=1, nameservers=1)
    trace = executed(
        scenario, "send-message orders hello tags red keys k1", "send-message orders there queue 2 on broker-a"
    )
    first, second = trace.select("messages", event="consumed")
    assert (first.key, second.key) == ("k1", "")
    assert second.queue_id == 2
    assert trace.select("admin") == []


def test_options_of_controllers_change():
    example = AdminExample("controller-1", RequestCode.UPDATE_CONTROLLER_CONFIG)
    trace = executed(example.scenario(), "update-controller-config enableElectUncleanMaster=true")
    assert requests(trace) == [("controller-1", RequestCode.UPDATE_CONTROLLER_CONFIG.name)]


def test_a_run_with_acts_is_the_same_again(tmp_path: Path):
    lines = ("update-topic orders queues 8", "reset-offset-by-time g orders 20s", "send-message orders hello")
    scenario = attrs.evolve(acting(two_brokers(), *lines), run_for_ms=80_000)
    result = run_scenario(scenario, runs=tmp_path)
    again = run_scenario(scenario, runs=tmp_path)
    assert again.manifest["digest"] == result.manifest["digest"]


def test_an_act_is_judged_as_one_of_mqadmin(tmp_path: Path):
    scenario = attrs.evolve(acting(two_brokers(), "reset-offset-by-time g orders 10s"), run_for_ms=60_000)
    report = analyze(run_scenario(scenario, runs=tmp_path).path)
    assert report["offset_regressions"]
    assert report.verdict == "valid"
    phases = [text for phase in report["phases"] for text in phase.what]
    assert "administrator reset-offset-by-time g orders 10s" in phases


def test_a_reset_that_makes_members_drop_their_queues_for_a_moment_breaks_no_rule(tmp_path: Path):
    acts = (
        TimedAct("1", act_of("update-sub-group g consumeEnable=true"), 30_000),
        TimedAct("2", act_of("skip-accumulated-message g orders"), 80_400),
    )
    scenario = attrs.evolve(two_brokers(), acts=acts, run_for_ms=120_000)
    report = analyze(run_scenario(scenario, runs=tmp_path).path)
    assert any(row.start_ns > 80_000_000_000 for row in report["orphans"])
    assert report.verdict == "valid"


def test_a_fault_of_the_administrators_links_explains_nothing():
    assert is_of_administrator("administrator <-> broker-b")
    assert is_of_administrator("broker-b -> administrator")
    assert not is_of_administrator("administrator, c1 <-> broker-b")
