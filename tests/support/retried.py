"""Consumers that fail: their scenarios, and where the messages go that they send back."""

from typing import Any

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.testing import GROUP, RETRY, Caller, RowOfTrace, Stage, Trace, a_scenario, consumer_group
from nodes.config import ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import SubscriptionGroupConfig

SEND_BACK, SEND = RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2
DELAYED, DLQ = "SCHEDULE_TOPIC_XXXX", f"%DLQ%{GROUP}"


def failing(scenario: Scenario, fail_times: int = 1) -> Scenario:
    """The same scenario, its listeners fail so often for each message."""
    groups = [attrs.evolve(group, fail_times=fail_times) for group in scenario.consumers]
    return attrs.evolve(scenario, consumers=tuple(groups))


def one_consumer(fail_times: int = 1, *, consume_ms: int = 0, **options: Any) -> Scenario:
    """A broker with one queue, a producer of a message a second, and a consumer that fails."""
    config = ConsumerConfig(**options)
    scenario = a_scenario(
        consumers=consumer_group(1, config, consume_ms=consume_ms), queues=1, rate_per_s=1, run_for_ms=36_000_000
    )
    return failing(scenario, fail_times)


async def first_message_only(stage: Stage) -> None:
    """Let the producer send its first message and no other."""
    await stage.at_ms(500)
    await stage.kill("p1")


def configure(stage: Stage, node: str, **options: Any) -> None:
    """Give a broker another configuration of the group."""
    groups = stage.node(node).context.groups
    groups.update_subscription_group_config(SubscriptionGroupConfig(GROUP, **options), now_ms=0)


async def send_to_retry_topic(probe: Caller, node: str, **fields: Any) -> Command:
    """Send a message to the group's retry topic, as any producer can."""
    header = headers.SendMessageRequestHeader("pg", RETRY, "TBW102", 4, 0, 0, 0, 0, **fields)
    return await probe.ask(node, RequestCode.SEND_MESSAGE, header)


def stored_in(trace: Trace, topic: str, **wanted: Any) -> list[RowOfTrace]:
    """What brokers have stored of a topic."""
    return trace.select("messages", event="stored", topic=topic, **wanted)


def consumed_from(trace: Trace, topic: str, **wanted: Any) -> list[RowOfTrace]:
    """What listeners have returned with, of a topic."""
    return trace.select("messages", event="consumed", topic=topic, **wanted)


def sent(trace: Trace, code: RequestCode, src: str = "c1", **wanted: Any) -> list[RowOfTrace]:
    """Requests of a code that reached whom they were for."""
    return trace.select("rpc", src=src, code=int(code), kind="request", event="delivered", **wanted)
