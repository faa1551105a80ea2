"""A client that pops: requests of POP, as a test writes them."""

from base64 import b64encode
from collections.abc import Iterable, Mapping

import attrs

from emulator.testing import Stage
from nodes.protocol import headers_pop as headers
from nodes.protocol.bodies import BatchAck, BatchAckMessageRequestBody, PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import build_extra_info, parse_start_offset_info, start_offset_info_key
from nodes.protocol.model import Message
from nodes.protocol.registry import decode_body, decode_header
from support.asking_guest import Guest

BROKER, TOPIC, GROUP = "broker-a", "orders", "g"
INVISIBLE_MS = 10_000


@attrs.frozen
class Popped:
    """The answer to a pop."""

    code: int
    header: headers.PopMessageResponseHeader
    messages: tuple[Message, ...]
    broker_name: str

    @property
    def offsets(self) -> list[int]:
        """Of the messages."""
        return [message.queue_offset for message in self.messages]

    @property
    def handles(self) -> list[str]:
        """Of the messages, made as a client makes them."""
        return [self._handle(message) for message in self.messages]

    def _handle(self, message: Message) -> str:
        given = message.properties.get("POP_CK")
        if given is not None:
            return given
        starts: Mapping[str, int] = parse_start_offset_info(self.header.start_offset_info or "") or {}
        start = starts[start_offset_info_key(message.topic, message.queue_id)]
        times = (start, self.header.pop_time, self.header.invisible_time, self.header.revive_qid)
        place = (message.topic, self.broker_name, message.queue_id, message.queue_offset)
        return build_extra_info(*times, *place)


class PoppingGuest(Guest):
    """Such a client."""

    async def pop(
        self,
        node: str = BROKER,
        *,
        topic: str = TOPIC,
        group: str = GROUP,
        queue_id: int = 0,
        maximum: int = 32,
        invisible_ms: int = INVISIBLE_MS,
        poll_ms: int = 0,
        init_mode: int = 0,
        order: bool = False,
        attempt_id: str | None = None,
        exp: str | None = None,
        exp_type: str | None = None,
        born_ms: int = 0,
    ) -> Popped:
        """Pop; the answer may have any code."""
        times = (invisible_ms, poll_ms, born_ms)
        requested = headers.PopMessageRequestHeader(
            group, topic, queue_id, maximum, *times, init_mode, exp_type, exp, order, attempt_id
        )
        answer = await self.ask(node, RequestCode.POP_MESSAGE, requested, timeout_ms=60_000)
        reported = decode_header(headers.PopMessageResponseHeader, answer.ext_fields)
        found = decode_body(PullMessageResponseBody, answer.body).messages if answer.body else ()
        name = self.stage.node(node).context.broker_name
        return Popped(answer.code, reported, found, name)

    async def ack(
        self, handle: str, offset: int, node: str = BROKER, *, topic: str = TOPIC, group: str = GROUP, queue_id: int = 0
    ) -> int:
        """Acknowledge a message; returns the code."""
        requested = headers.AckMessageRequestHeader(group, topic, queue_id, handle, offset)
        return (await self.ask(node, RequestCode.ACK_MESSAGE, requested)).code

    async def ack_all(self, popped: Popped, node: str = BROKER, **place: str | int) -> None:
        """Acknowledge all messages of a pop."""
        for handle, offset in zip(popped.handles, popped.offsets, strict=True):
            assert await self.ack(handle, offset, node, **place) == ResponseCode.SUCCESS  # type: ignore[arg-type]

    async def change(
        self,
        handle: str,
        offset: int,
        invisible_ms: int,
        node: str = BROKER,
        *,
        topic: str = TOPIC,
        group: str = GROUP,
        queue_id: int = 0,
    ) -> Command:
        """Change the invisible time of a message."""
        requested = headers.ChangeInvisibleTimeRequestHeader(group, topic, queue_id, handle, offset, invisible_ms)
        return await self.ask(node, RequestCode.CHANGE_MESSAGE_INVISIBLETIME, requested)

    async def batch_ack(self, popped: Popped, offsets: Iterable[int], node: str = BROKER, *, retry: str = "0") -> int:
        """Acknowledge messages of a pop of one queue together; returns the code."""
        reported = popped.header
        start, *_ = (parse_start_offset_info(reported.start_offset_info or "") or {"": 0}).values()
        bits = sum(1 << offset - start for offset in offsets)
        packed = b64encode(bits.to_bytes(8, "little")).decode()
        times = (reported.revive_qid, reported.pop_time, reported.invisible_time)
        entry = BatchAck(GROUP, TOPIC, retry, start, 0, *times, packed)
        body = BatchAckMessageRequestBody(popped.broker_name, (entry,))
        return (await self.ask(node, RequestCode.BATCH_ACK_MESSAGE, None, body)).code


async def popping_guest(stage: Stage, number: int = 0) -> PoppingGuest:
    """Start such a client."""
    caller = await stage.probe(number)
    return PoppingGuest(stage, caller.host, caller.node)
