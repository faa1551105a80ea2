"""Request-reply: brokers hand replies to the clients that asked."""

import attrs
import pytest

from emulator.testing import Stage, a_scenario, broker_groups, execute
from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_message import ReplyMessageRequestHeader
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.properties import text_to_properties
from nodes.protocol.registry import decode_header
from support.asking_guest import Guest, a_guest

BROKER, CLUSTER_TOPIC = "broker-a", "DefaultCluster_REPLY_TOPIC"
ASKS = "10.0.0.1@asks"
PUSH = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT


async def who_asks(stage: Stage, *, takes: bool | None = True) -> Guest:
    """A producer that waits for replies; `takes`: whether it accepts them, None: it does not answer."""
    guest = await a_guest(stage, 1)
    code = ResponseCode.SUCCESS if takes else ResponseCode.SYSTEM_ERROR
    guest.node.answer_with = None if takes is None else lambda request: request.answer(code)
    await guest.beat(BROKER, client_id=ASKS)
    return guest


async def reply(guest: Guest, *, topic: str = CLUSTER_TOPIC, v2: bool = True, **properties: str) -> Command:
    """Reply to a request."""
    header = guest.header(topic, {"CORRELATION_ID": "7", **properties})
    if v2:
        return await guest.ask(BROKER, RequestCode.SEND_REPLY_MESSAGE_V2, header, b"pong")
    plain = headers.SendMessageRequestHeader(**attrs.asdict(header))
    return await guest.ask(BROKER, RequestCode.SEND_REPLY_MESSAGE, plain, b"pong")


def executed(script, **options):
    return execute(a_scenario(queues=1, brokers=broker_groups(config=BrokerConfig(**options))), script)


@pytest.mark.parametrize("v2", [True, False])
def test_a_reply_reaches_the_client_that_asked_and_is_stored(v2):
    seen = {}

    async def script(stage: Stage) -> None:
        asks, replies = await who_asks(stage), await a_guest(stage, 2)
        seen["answer"] = await reply(replies, v2=v2, REPLY_TO_CLIENT=ASKS)
        (seen["pushed"],) = asks.requested(PUSH)
        seen["broker"], seen["from"] = asks.address(BROKER), replies.host.ip

    trace = executed(script)
    pushed = decode_header(ReplyMessageRequestHeader, seen["pushed"].ext_fields)
    assert seen["pushed"].body == b"pong"
    assert (pushed.topic, pushed.queue_id, pushed.producer_group) == (CLUSTER_TOPIC, 0, "pg")
    assert pushed.store_host == seen["broker"]
    assert pushed.born_host.startswith(f"{seen['from']}:")
    properties = text_to_properties(pushed.properties)
    assert {"CORRELATION_ID": "7", "REPLY_TO_CLIENT": ASKS}.items() <= properties.items()
    assert int(properties["PUSH_REPLY_TIME"]) == pushed.store_timestamp

    assert seen["answer"].code == ResponseCode.SUCCESS
    answered = decode_header(headers.SendMessageResponseHeader, seen["answer"].ext_fields)
    (stored,) = trace.select("messages", event="stored", topic=CLUSTER_TOPIC)
    assert (answered.queue_id, answered.queue_offset) == (0, stored.offset)
    assert decode_message_id(answered.msg_id)[1] == 10_911


def test_a_reply_that_is_not_stored_has_the_id_0():
    seen = {}

    async def script(stage: Stage) -> None:
        await who_asks(stage)
        seen["answer"] = await reply(await a_guest(stage, 2), REPLY_TO_CLIENT=ASKS)

    trace = executed(script, store_reply_message_enable=False)
    answered = decode_header(headers.SendMessageResponseHeader, seen["answer"].ext_fields)
    assert (answered.msg_id, answered.queue_id, answered.queue_offset) == ("0", 0, 0)
    assert trace.select("messages", event="stored") == []


@pytest.mark.parametrize(("takes", "properties", "remark", "waits_ms"), [
    (True, {"REPLY_TO_CLIENT": "gone"}, "push reply message fail, channel of <gone> not found.", 0),
    (True, {}, "reply message properties[REPLY_TO_CLIENT] is null", 0),
    (False, {"REPLY_TO_CLIENT": ASKS}, f"push reply message to {ASKS} fail.", 0),
    (None, {"REPLY_TO_CLIENT": ASKS}, f"push reply message to {ASKS} fail.", 10_000),
])  # fmt: skip
def test_who_replies_learns_that_no_one_took_it_and_the_reply_is_stored_nevertheless(
    takes, properties, remark, waits_ms
):
    seen = {}

    async def script(stage: Stage) -> None:
        await who_asks(stage, takes=takes)
        replies = await a_guest(stage, 2)
        began_ms = stage.now_ms
        seen["answer"] = await reply(replies, **properties)
        seen["waited_ms"] = stage.now_ms - began_ms

    trace = executed(script)
    assert (seen["answer"].code, seen["answer"].remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert waits_ms <= seen["waited_ms"] < waits_ms + 100
    assert len(trace.select("messages", event="stored", topic=CLUSTER_TOPIC)) == 1


def test_a_reply_to_a_topic_that_no_one_may_send_to_is_refused_and_not_pushed():
    seen = {}

    async def script(stage: Stage) -> None:
        asks = await who_asks(stage)
        seen["answer"] = await reply(await a_guest(stage, 2), topic="SCHEDULE_TOPIC_XXXX", REPLY_TO_CLIENT=ASKS)
        seen["pushed"] = asks.requested(PUSH)

    executed(script)
    assert (seen["answer"].code, seen["pushed"]) == (ResponseCode.NO_PERMISSION, [])
