"""A client of RocketMQ 4 at the remoting port of a proxy, as a test writes it: each request names its broker."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.testing import Caller, Stage, Trace, execute
from nodes.protocol import headers
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.bodies import GetConsumerListByGroupResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
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
from nodes.protocol.properties import properties_to_text
from nodes.protocol.registry import decode_body, decode_header, encode_body, encode_header
from support.proxy_guest import BROKER, GROUP, PROXY, TOPIC

PRODUCERS = "pg"
CLIENT = "client@1"


class RemotingGuest(Caller):
    """Such a client; other nodes it asks as any caller."""

    signs: SessionCredentials | None = None
    """With which it signs its requests; None: it does not."""

    def address(self, node: str) -> str:
        """The remoting port of a proxy; of other nodes as a caller has it."""
        proxies = {spec.name: spec for spec in self.stage.cluster.scenario.proxies}
        if node in proxies:
            return f"{self.stage.cluster.addresses[node]}:{proxies[node].config.remoting_listen_port}"
        return super().address(node)

    async def ask(
        self, node: str, code: RequestCode, header: Any = None, body: Any = None, *, timeout_ms: int = 15_000
    ) -> Command:
        """Send a request to a node, signed, and wait for the answer."""
        fields = {} if header is None else encode_header(header)
        content = None if body is None else encode_body(body)
        if self.signs is not None:
            fields = self.signs.sign(fields, content)
        return await self.node.rpc.call(self.address(node), int(code), fields, content, timeout_ms=timeout_ms)

    async def beat(
        self,
        proxy: str = PROXY,
        *,
        client_id: str = CLIENT,
        group: str = GROUP,
        topics: tuple[str, ...] = (TOPIC,),
        producers: tuple[str, ...] = (PRODUCERS,),
    ) -> Command:
        """A heartbeat as consumer of some topics, and as producer."""
        consumer = ConsumerData(
            group,
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            tuple(SubscriptionData(topic) for topic in topics),
        )
        body = HeartbeatData(client_id, tuple(map(ProducerData, producers)), (consumer,) if topics else ())
        return await self.ask(proxy, RequestCode.HEART_BEAT, None, body)

    async def leave(self, proxy: str = PROXY, *, client_id: str = CLIENT) -> Command:
        """Unregister both."""
        header = headers.UnregisterClientRequestHeader(client_id, PRODUCERS, GROUP)
        return await self.ask(proxy, RequestCode.UNREGISTER_CLIENT, header)

    async def members(self, proxy: str = PROXY, *, group: str = GROUP) -> tuple[str, ...] | None:
        """The client ids of a group; None: the proxy has none."""
        header = headers.ConsumerGroupRequestHeader(group)
        answer = await self.ask(proxy, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return decode_body(GetConsumerListByGroupResponseBody, answer.body).consumer_id_list

    async def produce(
        self, proxy: str = PROXY, *, topic: str = TOPIC, body: bytes = b"x", **properties: str
    ) -> Command:
        """Send a message to queue 0."""
        return await self.ask(proxy, RequestCode.SEND_MESSAGE_V2, self.sent(topic, properties), body)

    def sent(self, topic: str = TOPIC, properties: dict[str, str] | None = None) -> headers.SendMessageRequestHeaderV2:
        """The header of a message to queue 0."""
        text = properties_to_text(properties or {})
        now_ms = self.host.clock.now_ms()
        return headers.SendMessageRequestHeaderV2(PRODUCERS, topic, "TBW102", 4, 0, 0, now_ms, 0, text, bname=BROKER)

    async def pull(self, proxy: str = PROXY, *, code: RequestCode = RequestCode.PULL_MESSAGE, **fields: int) -> Command:
        """Pull queue 0 from its begin, without a subscription."""
        return await self.ask(proxy, code, attrs.evolve(pulled(), **fields))

    async def prepare(self, proxy: str = PROXY, *, key: str = "U1") -> "Half":
        """Send a half message to queue 0."""
        answer = await self.produce(proxy, TRAN_MSG="true", PGROUP=PRODUCERS, UNIQ_KEY=key)
        assert answer.code == ResponseCode.SUCCESS, answer
        stored = decode_header(headers.SendMessageResponseHeader, answer.ext_fields)
        return Half(key, stored.queue_offset, int(stored.msg_id[16:], 16))

    async def end(self, half: "Half", how: int, proxy: str = PROXY, *, checked: bool = False) -> Command:
        """End a transaction; real clients do it oneway."""
        header = headers.EndTransactionRequestHeader(
            PRODUCERS,
            half.queue_offset,
            half.commit_log_offset,
            how,
            from_transaction_check=checked,
            msg_id=half.key,
            transaction_id=half.key,
            topic=TOPIC,
            bname=BROKER,
        )
        return await self.ask(proxy, RequestCode.END_TRANSACTION, header)


def pulled() -> headers.PullMessageRequestHeader:
    """The header of a pull of queue 0 from its begin."""
    return headers.PullMessageRequestHeader(GROUP, TOPIC, 0, 0, 32, 0, 0, 0, 0, bname=BROKER)


def reason(answer: Command) -> tuple[int, str | None]:
    """The code and the remark of an answer."""
    return answer.code, answer.remark


@attrs.frozen
class Half:
    """A half message as its producer knows it."""

    key: str
    queue_offset: int
    commit_log_offset: int


def runs_remoting(scenario: Scenario, script: Callable[[Stage, RemotingGuest], Awaitable[None]]) -> Trace:
    """Run a script with such a client."""

    async def main(stage: Stage) -> None:
        await script(stage, await a_remoting_guest(stage))

    return execute(scenario, main)


async def a_remoting_guest(stage: Stage, number: int = 0) -> RemotingGuest:
    """Such a client on a machine of its own."""
    probe = await stage.probe(number)
    return RemotingGuest(stage, probe.host, probe.node)
