"""A synchronous master of a group with RIP-32 takes messages as long as enough replicas are in sync."""

import pytest

from emulator.testing import Caller, Stage, execute
from nodes.config import BrokerRole
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.properties import properties_to_text
from support.grouped import BEFORE_MS, MASTER, S1, S2, a_group, acting, slow


async def send(probe: Caller, **properties: str) -> tuple[int, str | None]:
    """Send one message to the master: code and remark of the answer."""
    text = properties_to_text(properties)
    header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, properties=text)
    answer = await probe.ask(MASTER, RequestCode.SEND_MESSAGE, header, b"x")
    return answer.code, answer.remark


TAKEN = (ResponseCode.SUCCESS, None)
LATE = (ResponseCode.FLUSH_SLAVE_TIMEOUT, None)
REFUSED = (ResponseCode.SYSTEM_ERROR, "in-sync replicas not enough")


@pytest.mark.parametrize(
    ("options", "with_one_slave", "alone"),
    [
        ({"in_sync_replicas": 2}, TAKEN, REFUSED),
        ({"in_sync_replicas": 3}, REFUSED, REFUSED),
        ({"in_sync_replicas": 3, "enable_auto_in_sync_replicas": True}, TAKEN, TAKEN),
        (
            {"in_sync_replicas": 3, "enable_auto_in_sync_replicas": True, "min_in_sync_replicas": 2},
            TAKEN,
            REFUSED,
        ),
        ({"in_sync_replicas": 3, "broker_role": BrokerRole.ASYNC_MASTER}, TAKEN, TAKEN),
        ({"in_sync_replicas": 3, "enable_slave_acting_master": False, "slave_timeout": 1_000}, LATE, LATE),
    ],
    ids=["2", "3", "down to 1", "down to 2", "asynchronous", "without RIP-32"],
)
def test_a_message_is_refused_when_too_many_slaves_are_gone(options, with_one_slave, alone):
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        seen.append(await send(probe))
        for slave in (S1, S2):
            await stage.kill(slave)
            await stage.for_ms(3_000)
            seen.append(await send(probe))
        seen.append(await send(probe, WAIT="false"))

    execute(a_group(config=acting(**{"broker_role": BrokerRole.SYNC_MASTER, **options})), script)

    assert seen == [TAKEN, with_one_slave, alone, TAKEN]


def test_a_slave_that_is_linked_but_out_of_the_nameservers_sight_does_not_count():
    seen = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        stage.cut(S1, "ns-1")
        await stage.at_ms(28_000)
        seen.append(await send(probe))
        await stage.at_ms(40_000)
        seen.append((stage.node(MASTER).parts.group.ha.in_sync_replicas(0), await send(probe)))

    execute(a_group(slaves=1, config=acting(broker_role=BrokerRole.SYNC_MASTER, in_sync_replicas=2)), script)

    assert seen == [TAKEN, (2, REFUSED)]


def test_a_sender_waits_for_the_acknowledgements_of_slaves_and_for_no_tick():
    took_ms = []

    async def script(stage: Stage) -> None:
        probe = await stage.probe()
        await stage.at_ms(BEFORE_MS)
        slow(stage, MASTER, S2, 50)
        await send(probe)
        for wait in ("true", "false"):
            began_ms = stage.now_ms
            assert await send(probe, WAIT=wait) == TAKEN
            took_ms.append(stage.now_ms - began_ms)
            await stage.for_ms(500)

    config = acting(broker_role=BrokerRole.SYNC_MASTER, in_sync_replicas=3)
    execute(a_group(config=config, delay_ms=5), script)

    # There and back with 5 ms a frame; in between the piece of the log to the farther slave, and its report.
    assert took_ms == [10 + 55 + 5, 10]
