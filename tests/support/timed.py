"""Timed messages in a cluster: sending them, and when brokers stored them."""

from emulator.testing import Caller, Trace
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.properties import properties_to_text
from nodes.protocol.registry import decode_header

WHEEL = "rmq_sys_wheel_timer"


async def ask(probe: Caller, node: str, **properties: str) -> Command:
    """Send a message with these properties to queue 0; returns the answer."""
    text = properties_to_text(properties)
    header = headers.SendMessageRequestHeader("pg", "orders", "TBW102", 4, 0, 0, 0, 0, text)
    return await probe.ask(node, RequestCode.SEND_MESSAGE, header)


async def send(probe: Caller, node: str, **properties: str) -> headers.SendMessageResponseHeader:
    """Send such a message, which is accepted."""
    answer = await ask(probe, node, **properties)
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    return decode_header(headers.SendMessageResponseHeader, answer.ext_fields)


def stored(trace: Trace, node: str, topic: str = "orders", **between: float) -> list[float]:
    """When a broker stored messages of a topic, in ms."""
    return [row.at_ms for row in trace.select("messages", node=node, event="stored", topic=topic, **between)]
