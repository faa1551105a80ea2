"""A client that does what real programs do and emulated ones do not: it keeps what brokers ask it."""

import attrs

from emulator.testing import Caller, Stage
from nodes.protocol import headers
from nodes.protocol.batch_body import BatchedMessage, encode_messages
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_message import CheckTransactionStateRequestHeader, QueryMessageRequestHeader
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    Message,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from nodes.protocol.properties import properties_to_text
from nodes.protocol.registry import decode_body, decode_header, encode_header

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
LAST_MS = 2**62


class Guest(Caller):
    """Such a client, as a test handles it."""

    def requested(self, code: RequestCode) -> list[Command]:
        """The requests of a code that brokers have sent here."""
        return [request for request in self.node.requested if request.code == code]

    async def beat(self, node: str, *, client_id: str = "guest@1", group: str = "pg", topic: str = "") -> None:
        """A heartbeat as member of a producer group, and of a consumer group where a topic is given."""
        consumer = ConsumerData(
            group,
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            (SubscriptionData(topic),),
        )
        consumers = (consumer,) if topic else ()
        body = HeartbeatData(client_id, (ProducerData(group),), consumers)
        assert (await self.ask(node, RequestCode.HEART_BEAT, None, body)).code == ResponseCode.SUCCESS

    async def send(self, node: str, topic: str = "orders", body: bytes = b"x", **properties: str) -> Command:
        """Send a message to queue 0."""
        return await self.ask(node, RequestCode.SEND_MESSAGE_V2, self.header(topic, properties), body)

    async def send_batch(self, node: str, *messages: BatchedMessage, topic: str = "orders") -> Command:
        """Send messages together to queue 0."""
        header = attrs.evolve(self.header(topic, {"WAIT": "true"}), batch=True)
        return await self.ask(node, RequestCode.SEND_BATCH_MESSAGE, header, encode_messages(messages))

    def header(self, topic: str, properties: dict[str, str]) -> headers.SendMessageRequestHeaderV2:
        now_ms = self.host.clock.now_ms()
        text = properties_to_text(properties)
        return headers.SendMessageRequestHeaderV2("pg", topic, "TBW102", 4, 0, 0, now_ms, 0, text)

    async def prepare(self, node: str, topic: str = "orders", key: str = "U1", **properties: str) -> "Prepared":
        """Send a half message to queue 0."""
        marks = {"TRAN_MSG": "true", "PGROUP": "pg", "UNIQ_KEY": key}
        answer = await self.send(node, topic, **marks, **properties)
        assert answer.code == ResponseCode.SUCCESS
        stored = decode_header(headers.SendMessageResponseHeader, answer.ext_fields)
        return Prepared(stored.queue_offset, int(stored.msg_id[16:], 16))

    async def end(
        self, node: str, half: "Prepared", how: int, *, checked: bool = False, group: str = "pg", shift: int = 0
    ) -> Command:
        """End a transaction; real clients do it oneway."""
        header = headers.EndTransactionRequestHeader(
            group, half.queue_offset + shift, half.commit_log_offset, how, from_transaction_check=checked
        )
        return await self.ask(node, RequestCode.END_TRANSACTION, header)

    def end_oneway(self, node: str, half: "Prepared", how: int) -> None:
        """End a transaction as real clients do."""
        header = headers.EndTransactionRequestHeader("pg", half.queue_offset, half.commit_log_offset, how)
        self.node.rpc.oneway(self.address(node), int(RequestCode.END_TRANSACTION), encode_header(header))

    async def query(self, node: str, key: str, *, topic: str = "orders", unique: bool | None = None) -> list[Message]:
        """Messages by key."""
        header = QueryMessageRequestHeader(topic, key, 64, 0, LAST_MS, unique)
        answer = await self.ask(node, RequestCode.QUERY_MESSAGE, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        return messages_of(answer)


@attrs.frozen
class Prepared:
    """A half message as its producer knows it."""

    queue_offset: int
    commit_log_offset: int

    @classmethod
    def questioned(cls, request: Command) -> "Prepared":
        """That of a check-back."""
        header = decode_header(CheckTransactionStateRequestHeader, request.ext_fields)
        return cls(header.tran_state_table_offset, header.commit_log_offset)


def messages_of(answer: Command) -> list[Message]:
    """The messages in a body."""
    return list(decode_body(PullMessageResponseBody, answer.body).messages)


async def a_guest(stage: Stage, number: int = 1) -> Guest:
    """A guest on a machine of its own."""
    probe = await stage.probe(number)
    return Guest(stage, probe.host, probe.node)
