"""Nameservers and controllers whose requests take time: routes come late, and brokers that live expire."""

import json

from analysis.executed_rows import found_in_executed
from emulator.spec import loads
from emulator.testing import Stage, Trace, execute
from nodes.protocol.codes import RequestCode, ResponseCode

_SCENARIO = """
[scenario]
name = "busy-nameserver"
run_for_s = 3600
[network]
delay_ms = 1
[nameserver]
count = 1
options = {{ {options} }}
{brokers}
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "billing"
topics = ["orders"]
count = {consumers}
"""


def run(options: str, *, for_ms: int, brokers: int = 1, consumers: int = 1) -> Trace:
    """Brokers `broker-0` and on, and a nameserver with these options."""
    tables = "".join(f'[[broker]]\nname = "broker-{number}"\n' for number in range(brokers))
    text = _SCENARIO.format(options=options, brokers=tables, consumers=consumers)
    return execute(loads(text, "busy-nameserver"), for_ms=for_ms)


def waits_ms(trace: Trace, pool: str, node: str = "ns-1") -> list[int]:
    """The longest wait in each record about a pool."""
    values = [json.loads(row.value) for row in trace.select("beliefs", kind="busy", subject=pool, node=node)]
    return [value["waited_max_ms"] for value in values if value is not None]


def expired(trace: Trace) -> set[str]:
    """The broker groups of which the nameserver has lost the last broker."""
    rows = trace.select("beliefs", kind="live_brokers", node="ns-1")
    return {row.subject for row in rows if not json.loads(row.value)}


def answered(trace: Trace, code: RequestCode) -> list[int]:
    """Statuses of the answers of the nameserver to a request."""
    rows = trace.select("rpc", kind="response", event="delivered", code=code, src="ns-1")
    return [row.status for row in rows]


def test_routes_come_late_while_registrations_have_threads_of_their_own():
    options = 'processingTimes = "clientRequest 2s", clientRequestThreadPoolNums = 1'
    trace = run(options, for_ms=60_000, consumers=4)
    assert max(waits_ms(trace, "clientRequest")) > 3_000, "longer than a client waits for a route"
    assert waits_ms(trace, "default") == []
    assert not trace.select("beliefs", kind="busy", node="broker-0")


def test_registrations_that_wait_expire_brokers_that_live():
    options = 'processingTimes = "REGISTER_BROKER 30s", defaultThreadPoolNums = 1'
    trace = run(options, for_ms=600_000, brokers=6)
    assert len(expired(trace)) > 1
    assert not trace.select("lifecycle", event="killed")
    spans = found_in_executed(trace)["busy_brokers"]
    assert max(span.waited_max_ms for span in spans if (span.node, span.pool) == ("ns-1", "default")) > 120_000


def test_a_full_queue_refuses_registrations():
    options = 'processingTimes = "default 20s", defaultThreadPoolNums = 1, defaultThreadPoolQueueCapacity = 1'
    trace = run(options, for_ms=60_000, brokers=4)
    assert ResponseCode.SYSTEM_BUSY in answered(trace, RequestCode.REGISTER_BROKER)
    spans = found_in_executed(trace)["busy_brokers"]
    assert {reason for span in spans for reason in span.reasons} == {"OVERLOAD"}


def test_nothing_waits_where_no_request_takes_time():
    trace = run("clientRequestThreadPoolNums = 1, clientRequestThreadPoolQueueCapacity = 1", for_ms=40_000, consumers=4)
    assert not trace.select("beliefs", kind="busy")


_CONTROLLED = """
[scenario]
name = "busy-controller"
run_for_s = 3600
preset = "controller"
[controller]
options = {{ {options} }}
[[broker]]
name = "ba"
replicas = 3
"""


def epochs(options: str) -> set[int]:
    """The epochs of the masters of a group in three minutes without any fault."""
    trace = execute(loads(_CONTROLLED.format(options=options), "busy-controller"), for_ms=180_000)
    return {json.loads(row.value)["epoch"] for row in trace.select("beliefs", kind="sync_state")}


def test_heartbeats_that_wait_for_a_controller_cost_a_master_that_lives_its_role():
    options = 'processingTimes = "BROKER_HEARTBEAT {time}", controllerThreadPoolNums = 1'
    assert max(epochs(options.format(time="10ms"))) == 1
    assert max(epochs(options.format(time="6s"))) > 1


def test_a_thread_of_a_controller_waits_for_the_majority_that_an_entry_needs():
    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        names = [f"controller-{number}" for number in (1, 2, 3)]
        (leader,) = (name for name in names if stage.node(name).dledger.serving)
        for name in (*names, "ba-s1"):
            if name != leader:
                await stage.kill(name)
        await stage.at_ms(70_000)

    text = _CONTROLLED.format(options='processingTimes = "controller 1ms", controllerThreadPoolNums = 1')
    trace = execute(loads(text, "busy-controller"), script)
    values = [json.loads(row.value) for row in trace.select("beliefs", kind="busy", subject="controller")]
    assert max(value["waited_max_ms"] for value in values if value) > 1_000
