"""The maintainers' matrix for pops from an acting slave: three containers with a master and two slaves each.

Messages are sent to one master, which is removed from its container; then a group pops them from the slave that acts
for it. What pops leave behind escapes into a master of the same container, or, if that is removed as well, to another
broker. Either way every message is consumed once, and those that the listener refuses once more from a retry topic.
"""

from collections import Counter
from pathlib import Path

import attrs
import pytest

from emulator.spec import load
from emulator.testing import Stage, execute
from faults.consume_mode import ConsumeMode
from nodes.config import ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import ConsumeFromWhere

EXAMPLE = Path(__file__).parents[2] / "examples" / "containers.toml"
MESSAGES = 20
GROUP = "workers"
ACTING = "broker-a-s1"


def cluster(fail_times):
    """The example with one popping consumer and no producer."""
    scenario = load(EXAMPLE)
    config = ConsumerConfig(client_rebalance=False, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    group = attrs.evolve(
        scenario.consumers[0],
        group=GROUP,
        names=("worker",),
        topics=("orders",),
        config=config,
        mode=ConsumeMode.POP,
        fail_times=fail_times,
    )
    return attrs.evolve(scenario, run_for_ms=600_000, consumers=(group,), producers=(), faults=type(scenario.faults)())


def consumed(trace):
    """Mapping offset -> how often, of the queue that was sent to and of retry topics."""
    rows = trace.select("messages", event="consumed", group=GROUP)
    plain = Counter(row.offset for row in rows if row.topic == "orders")
    return plain, Counter((row.broker_name, row.offset) for row in rows if row.topic != "orders")


@pytest.mark.parametrize("way", ["local", "remote"])
@pytest.mark.parametrize("acknowledges", [True, False])
def test_every_message_is_consumed_and_comes_once_more_only_if_it_was_refused(way, acknowledges):
    async def script(stage: Stage) -> None:
        await stage.kill("worker")
        caller = await stage.probe()
        await stage.at_ms(70_000)  # slaves copy topics and request modes once a minute
        header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, "")
        for number in range(MESSAGES):
            answer = await caller.ask("broker-a", RequestCode.SEND_MESSAGE, header, b"%d" % number)
            assert answer.code == ResponseCode.SUCCESS
        await stage.for_ms(2_000)
        await stage.stop("broker-a")
        if way == "remote":
            await stage.stop("broker-b")  # the master next to the slave that acts for broker-a
        await stage.for_ms(30_000)
        stage.start("worker")
        await stage.for_ms(150_000)

    trace = execute(cluster(0 if acknowledges else 1), script)

    plain, again = consumed(trace)
    assert plain == dict.fromkeys(range(MESSAGES), 1)
    assert sum(again.values()) == len(again) == (0 if acknowledges else MESSAGES)
    assert {row.node for row in trace.select("messages", event="popped", topic="orders", broker_name="broker-a")} == {
        ACTING
    }
    sources = {row.node for row in trace.select("messages", event="stored", topic="rmq_sys_REVIVE_LOG_DefaultCluster")}
    assert sources == {"broker-b"} if way == "local" else "broker-b" not in sources
