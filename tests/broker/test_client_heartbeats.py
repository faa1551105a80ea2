"""Heartbeats of a client: the lock around them, and the hash that stands for subscriptions."""

from types import SimpleNamespace

import attrs
import pytest
import trio

from nodes.client.instance.heartbeats import Heartbeats, heartbeat_fingerprint
from nodes.config import ClientConfig
from nodes.protocol.command import Command
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)

GROUP = ConsumerData(
    "g",
    ConsumeType.CONSUME_PASSIVELY,
    MessageModel.CLUSTERING,
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    (SubscriptionData("t", sub_version=7),),
)
SOMETHING = HeartbeatData("id", (ProducerData("p"),), (GROUP,))


class Brokers:
    """Count what they are reported."""

    def __init__(self):
        self.reported = []

    async def call(self, address, _code, _fields, body, *, timeout_ms):
        self.reported.append((address, body, timeout_ms))
        await trio.lowlevel.checkpoint()
        return Command(0)


def heartbeats(brokers, data_of):
    host = SimpleNamespace(log=SimpleNamespace(warning=lambda *_, **__: None))
    return Heartbeats(host, ClientConfig(), brokers, dict, data_of)


@pytest.mark.trap("C36", status="simplified", note="the lock is let go of where there is nothing to report")
async def test_with_nothing_to_report_no_one_is_notified_and_the_next_heartbeat_is_not_kept_waiting():
    brokers, data = Brokers(), [HeartbeatData("id")]
    beats = heartbeats(brokers, lambda: data[0])

    assert not await beats.send_to_one("b", "b0")
    data[0] = SOMETHING

    assert await beats.send_to_one("b", "b0")
    assert [address for address, _, _ in brokers.reported] == ["b0"]


async def test_two_heartbeats_are_never_under_way_at_once():
    brokers = Brokers()
    beats = heartbeats(brokers, lambda: SOMETHING)
    answers = []

    async def beat():
        answers.append(await beats.send_to_one("b", "b0"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        nursery.start_soon(beat)

    assert sorted(answers) == [False, True]
    assert len(brokers.reported) == 1


def test_the_hash_depends_on_what_is_subscribed_and_not_on_who_reports_or_when():
    other_client = attrs.evolve(SOMETHING, client_id="another")
    later = attrs.evolve(GROUP, subscription_data_set=(SubscriptionData("t", sub_version=8),))
    more = attrs.evolve(GROUP, subscription_data_set=(SubscriptionData("t"), SubscriptionData("u")))

    def hashed(group):
        return heartbeat_fingerprint(attrs.evolve(SOMETHING, consumer_data_set=(group,)))

    assert heartbeat_fingerprint(other_client) == heartbeat_fingerprint(SOMETHING) == hashed(later)
    assert hashed(more) != hashed(GROUP)
