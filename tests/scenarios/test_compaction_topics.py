"""Topics with `cleanup.policy=COMPACTION`: what may be sent to them, what a pull gets, how long the policy lasts."""

from typing import Any

import pytest

from emulator.testing import Stage, Trace, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers, headers_admin
from nodes.protocol.batch_body import BatchedMessage
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.properties import properties_to_text
from nodes.protocol.sys_flags import PullSysFlag
from support.asking_guest import Guest, a_guest, messages_of

BROKER, TOPIC = "broker-a", "states"
CARRIED = int(PullSysFlag.SUBSCRIPTION)


def run(script: Any, config: BrokerConfig | None = None) -> Trace:
    return execute(a_scenario(brokers=broker_groups(config=config), queues=1), script)


async def a_writer(stage: Stage, attributes: str = "+cleanup.policy=COMPACTION") -> Guest:
    """A guest that has created the topic and is a member of a group that reads it."""
    guest = await a_guest(stage)
    assert (await update(guest, attributes)).code == ResponseCode.SUCCESS
    await guest.beat(BROKER, group="g", topic=TOPIC)
    return guest


async def update(guest: Guest, attributes: str) -> Command:
    header = headers_admin.CreateTopicRequestHeader(TOPIC, "TBW102", 1, 1, 6, "SINGLE_TAG", attributes=attributes)
    return await guest.ask(BROKER, RequestCode.UPDATE_AND_CREATE_TOPIC, header)


async def pull(guest: Guest, offset: int, expression: str = "*") -> Command:
    header = headers.PullMessageRequestHeader("g", TOPIC, 0, offset, 32, CARRIED, 0, 0, 0, expression, "TAG")
    return await guest.ask(BROKER, RequestCode.PULL_MESSAGE, header)


def test_a_message_without_key_is_refused() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_writer(stage)
        refused = await guest.send(BROKER, TOPIC)
        assert (refused.code, refused.remark) == (ResponseCode.MESSAGE_ILLEGAL, "Required message key is missing")
        assert (await guest.send(BROKER, TOPIC, KEYS="k")).code == ResponseCode.SUCCESS

    run(script)


@pytest.mark.trap("S5")
def test_a_pull_gets_messages_of_all_tags_and_none_of_a_batch_without_key() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_writer(stage)
        await guest.send(BROKER, TOPIC, KEYS="k", TAGS="red")
        await guest.send_batch(
            BROKER, BatchedMessage(b"a"), BatchedMessage(b"b", properties_to_text({"KEYS": "k"})), topic=TOPIC
        )
        answer = await pull(guest, 0, "blue")
        assert [message.queue_offset for message in messages_of(answer)] == [0, 2]
        assert answer.ext_fields["nextBeginOffset"] == "3"

    run(script)


@pytest.mark.trap("S6")
def test_an_offset_above_the_end_leads_back_to_the_first_message() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_writer(stage)
        await guest.send(BROKER, TOPIC, KEYS="k")
        moved = await pull(guest, 5)
        assert (moved.code, moved.ext_fields["nextBeginOffset"]) == (ResponseCode.PULL_OFFSET_MOVED, "0")

    run(script)


def test_without_compaction_at_the_broker_a_pull_is_one_of_any_topic() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_writer(stage)
        await guest.send(BROKER, TOPIC, KEYS="k", TAGS="red")
        assert (await pull(guest, 0, "blue")).code == ResponseCode.PULL_RETRY_IMMEDIATELY
        assert (await pull(guest, 5)).ext_fields["nextBeginOffset"] == "1"

    run(script, BrokerConfig(enable_compaction=False))


def test_the_policy_survives_a_restart_and_cannot_be_changed() -> None:
    async def script(stage: Stage) -> None:
        guest = await a_writer(stage)
        await stage.kill(BROKER)
        stage.start(BROKER)
        await stage.for_ms(5_000)
        assert stage.node(BROKER).context.topics.topics[TOPIC].attributes == {"cleanup.policy": "COMPACTION"}
        refused = await update(guest, "+cleanup.policy=DELETE")
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "attempt to update an unchangeable attribute. key: cleanup.policy" in (refused.remark or "")
        assert (await update(guest, "+cleanup.policy=KEEP")).code == ResponseCode.SYSTEM_ERROR

    run(script)
