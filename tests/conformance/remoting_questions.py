"""Questions to the remoting ports of two proxies: the same for real proxies and for ours.

Each question notes its answers by name. Topics are `remoting-NORMAL`, `remoting-TRANSACTION` and `remoting-DELAY`, each
with one queue at `broker-a`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import attrs

from nodes.protocol import headers, headers_message, headers_pop
from nodes.protocol.bodies import (
    GetConsumerListByGroupResponseBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
    PullMessageResponseBody,
)
from nodes.protocol.bodies_admin import ConsumerConnection
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    MessageQueue,
    ProducerData,
    SubscriptionData,
    TopicRouteData,
)
from nodes.protocol.properties import properties_to_text
from nodes.protocol.registry import decode_body, encode_header

BROKER = "broker-a"
NORMAL, TRANSACTION, DELAY = (f"remoting-{kind}" for kind in ("NORMAL", "TRANSACTION", "DELAY"))
_RETAINED = ("MSG_REGION", "TRACE_ON", "queueId", "queueOffset", "offset", "nextBeginOffset", "minOffset", "maxOffset")
"""Fields of answers that are the same in each run."""
_OF_PROXIES = (
    RequestCode.HEART_BEAT,
    RequestCode.UNREGISTER_CLIENT,
    RequestCode.CHECK_CLIENT_CONFIG,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
)
"""Requests whose answers have a remark of the proxy although they succeed; other remarks are those of brokers."""


class RemotingCalls(Protocol):
    """Clients with a connection to each proxy."""

    async def ask(
        self, client: str, proxy: int, code: RequestCode, fields: Mapping[str, str], body: Any
    ) -> Command | None:
        """Send a request; None: no answer with its id came within 4 s."""

    async def requested(self, client: str, proxy: int) -> list[Command]:
        """The requests that a proxy has sent a client since the last look."""

    async def leave(self, client: str, proxy: int) -> None:
        """Close a connection."""

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let time pass."""

    def now_ms(self) -> int:
        """The wall clock of the clients."""


@attrs.frozen
class RemotingProbe:
    """Asks, and notes answers as plain values."""

    calls: RemotingCalls
    answers: dict[str, Any]

    async def ask(
        self,
        name: str,
        code: RequestCode,
        header: Any = None,
        body: Any = None,
        *,
        client: str = "c@1",
        proxy: int = 0,
    ) -> Command | None:
        """Ask, and note the answer under a name; an empty one is not noted."""
        fields = header if isinstance(header, dict) else {} if header is None else dict(encode_header(header))
        answer = await self.calls.ask(client, proxy, code, fields, body)
        if name:
            self.answers[name] = None if answer is None else _plain(code, answer)
        return answer

    async def beat(
        self, group: str, *, client: str = "c@1", proxy: int = 0, topics: tuple[str, ...] = (NORMAL,)
    ) -> None:
        """A heartbeat as consumer and producer of one group."""
        consumer = ConsumerData(
            group,
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            tuple(SubscriptionData(topic, sub_version=1) for topic in topics),
        )
        body = HeartbeatData(client, (ProducerData(group),), (consumer,) if topics else ())
        await self.ask(
            f"heartbeat of {client} for {group}", RequestCode.HEART_BEAT, None, body, client=client, proxy=proxy
        )

    def sent(
        self, topic: str, *, group: str = "pg", sys_flag: int = 0, **properties: str
    ) -> headers.SendMessageRequestHeaderV2:
        """The header of a message to the queue of a topic."""
        text = properties_to_text(properties)
        now_ms = self.calls.now_ms()
        return headers.SendMessageRequestHeaderV2(group, topic, "TBW102", 4, 0, sys_flag, now_ms, 0, text, bname=BROKER)

    async def members(self, name: str, group: str, *, client: str = "c@1") -> None:
        """The members of a group at both proxies."""
        for proxy in (0, 1):
            header = headers.ConsumerGroupRequestHeader(group)
            asked = RequestCode.GET_CONSUMER_LIST_BY_GROUP
            await self.ask(f"{name}, proxy {proxy}", asked, header, client=client, proxy=proxy)


def _plain(code: RequestCode, answer: Command) -> dict[str, Any]:
    fields = {name: answer.ext_fields[name] for name in _RETAINED if name in answer.ext_fields}
    failed = answer.code != ResponseCode.SUCCESS
    plain: dict[str, Any] = {"code": int(answer.code), "fields": fields}
    if failed or code in _OF_PROXIES:
        plain["remark"] = None if answer.remark is None else answer.remark.strip()
    return plain if failed else plain | _body(code, answer.body)


def _body(code: RequestCode, body: bytes | None) -> dict[str, Any]:
    match code:
        case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            return {"ids": sorted(decode_body(GetConsumerListByGroupResponseBody, body).consumer_id_list)}
        case RequestCode.GET_CONSUMER_CONNECTION_LIST:
            connection = decode_body(ConsumerConnection, body)
            return {
                "ids": sorted(c.client_id for c in connection.connection_set),
                "of": sorted(connection.subscription_table),
            }
        case RequestCode.GET_ROUTEINFO_BY_TOPIC:
            route = decode_body(TopicRouteData, body)
            brokers = {data.broker_name: sorted(data.broker_addrs) for data in route.broker_datas}
            queues = [[data.broker_name, data.read_queue_nums, data.write_queue_nums] for data in route.queue_datas]
            return {"brokers": brokers, "queues": queues, "order": route.order_topic_conf}
        case RequestCode.LOCK_BATCH_MQ:
            return {"locked": [queue.queue_id for queue in decode_body(LockBatchResponseBody, body).lock_ok_mq_set]}
        case RequestCode.PULL_MESSAGE | RequestCode.LITE_PULL_MESSAGE:
            return {"messages": [m.body.decode() for m in decode_body(PullMessageResponseBody, body).messages]}
        case _:
            return {}


# --- the questions -------------------------------------------------------------------------


async def routes(probe: RemotingProbe) -> None:
    """Topics, brokers and clusters, known or not."""
    for topic in (NORMAL, BROKER, "DefaultCluster", "TBW102", "remoting-unknown"):
        await probe.ask(topic, RequestCode.GET_ROUTEINFO_BY_TOPIC, headers.GetRouteInfoRequestHeader(topic))


async def members(probe: RemotingProbe) -> None:
    """Clients come, move to another proxy, close their connections, leave."""
    group, unknown = "remoting-members", headers.ConsumerGroupRequestHeader("remoting-unknown")
    await probe.ask("list of unknown", RequestCode.GET_CONSUMER_LIST_BY_GROUP, unknown)
    await probe.ask("connections of unknown", RequestCode.GET_CONSUMER_CONNECTION_LIST, unknown)
    await probe.ask("check", RequestCode.CHECK_CLIENT_CONFIG)
    await probe.beat(group)
    await probe.calls.sleep_ms(2_000)
    await probe.members("one", group)
    await probe.beat(group, proxy=1)
    await probe.calls.sleep_ms(2_000)
    await probe.members("one at both", group)
    await probe.beat(group, client="c@2")
    await probe.calls.sleep_ms(2_000)
    await probe.members("two", group)
    probe.answers["notified"] = [len(await probe.calls.requested(client, 0)) for client in ("c@1", "c@2")]
    known = headers.ConsumerGroupRequestHeader(group)
    await probe.ask("connections", RequestCode.GET_CONSUMER_CONNECTION_LIST, known)
    await probe.calls.leave("c@2", 0)
    await probe.calls.sleep_ms(2_000)
    await probe.members("after the end of a connection", group)
    left = headers.UnregisterClientRequestHeader("c@1", group, group)
    await probe.ask("unregister", RequestCode.UNREGISTER_CLIENT, left)
    await probe.ask("unregister again", RequestCode.UNREGISTER_CLIENT, left)
    await probe.calls.sleep_ms(2_000)
    await probe.members("after one has left", group)


async def messages(probe: RemotingProbe) -> None:
    """Messages are sent, pulled, taken back; offsets and locks of their queue."""
    group = "remoting-messages"
    send, batch, first = RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_MESSAGE
    await probe.ask("send", send, probe.sent(NORMAL), b"a")
    plain = probe.sent(NORMAL)
    old = headers.SendMessageRequestHeader(
        *(getattr(plain, field.name) for field in attrs.fields(headers.SendMessageRequestHeader))
    )
    await probe.ask("send as of version 1", first, old, b"b")
    for code in (send, batch):
        await probe.ask(f"{code.name} without broker", code, attrs.evolve(plain, bname=None), b"x")
    await probe.ask("to no topic", send, probe.sent("remoting-unknown"), b"x")
    await probe.ask("delayed, without broker", send, attrs.evolve(probe.sent(NORMAL, DELAY="1"), bname=None), b"x")
    await probe.ask("normal to transactions", send, probe.sent(TRANSACTION), b"x")
    recall = headers_message.RecallMessageRequestHeader(NORMAL, "x", bname=BROKER)
    await probe.ask("recall", RequestCode.RECALL_MESSAGE, recall)
    pull = headers.PullMessageRequestHeader(group, NORMAL, 0, 0, 32, 0, 0, 0, 0, bname=BROKER)
    await probe.ask("pull of unknown group", RequestCode.PULL_MESSAGE, pull)
    await probe.beat(group)
    await probe.ask("pull", RequestCode.PULL_MESSAGE, pull)
    await probe.ask("lite pull", RequestCode.LITE_PULL_MESSAGE, pull)
    await probe.ask("pull of another topic", RequestCode.PULL_MESSAGE, attrs.evolve(pull, topic="TBW102"))
    await probe.ask("minimum", RequestCode.GET_MIN_OFFSET, headers.GetMinOffsetRequestHeader(NORMAL, 0, bname=BROKER))
    maximum = headers.GetMaxOffsetRequestHeader(NORMAL, 0, bname=BROKER)
    await probe.ask("maximum", RequestCode.GET_MAX_OFFSET, maximum)
    await probe.ask("maximum without broker", RequestCode.GET_MAX_OFFSET, attrs.evolve(maximum, bname=None))
    await probe.ask("maximum of no broker", RequestCode.GET_MAX_OFFSET, attrs.evolve(maximum, bname="nobody"))
    searched = headers.SearchOffsetRequestHeader(NORMAL, 0, 0, bname=BROKER)
    await probe.ask("search", RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, searched)
    update = headers.UpdateConsumerOffsetRequestHeader(group, NORMAL, 0, 1, BROKER)
    await probe.ask("update", RequestCode.UPDATE_CONSUMER_OFFSET, update)
    query = headers.QueryConsumerOffsetRequestHeader(group, NORMAL, 0, bname=BROKER)
    await probe.ask("query", RequestCode.QUERY_CONSUMER_OFFSET, query)
    lock = LockBatchRequestBody(group, "c@1", (MessageQueue(NORMAL, BROKER, 0),))
    await probe.ask("lock", RequestCode.LOCK_BATCH_MQ, None, lock)
    await probe.ask("lock of another", RequestCode.LOCK_BATCH_MQ, None, attrs.evolve(lock, client_id="c@2"))
    await probe.ask("unlock", RequestCode.UNLOCK_BATCH_MQ, None, lock)
    await probe.ask("lock after that", RequestCode.LOCK_BATCH_MQ, None, attrs.evolve(lock, client_id="c@2"))
    await probe.ask("lock of nothing", RequestCode.LOCK_BATCH_MQ, None, attrs.evolve(lock, mq_set=()))


async def unserved(probe: RemotingProbe) -> None:
    """Pops, requests of other codes, requests without header and body."""
    pop = headers_pop.PopMessageRequestHeader("remoting-pop", NORMAL, -1, 32, 60_000, 0, 0, 0, bname=BROKER)
    await probe.ask("pop", RequestCode.POP_MESSAGE, pop)
    ack = headers_pop.AckMessageRequestHeader("remoting-pop", NORMAL, 0, "x", 0, bname=BROKER)
    await probe.ask("ack", RequestCode.ACK_MESSAGE, ack)
    change = headers_pop.ChangeInvisibleTimeRequestHeader("remoting-pop", NORMAL, 0, "x", 0, 1_000, bname=BROKER)
    await probe.ask("change", RequestCode.CHANGE_MESSAGE_INVISIBLETIME, change)
    for code in (RequestCode.GET_EARLIEST_MSG_STORETIME, RequestCode.SEND_REPLY_MESSAGE, RequestCode.QUERY_ASSIGNMENT):
        await probe.ask(f"{code.name}, which is not there", code, {"topic": NORMAL})
    for code in (
        *(RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION, RequestCode.UNREGISTER_CLIENT),
        *(RequestCode.HEART_BEAT, RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ, RequestCode.PULL_MESSAGE),
    ):
        await probe.ask(f"{code.name} without header and body", code)


async def transactions(probe: RemotingProbe) -> None:
    """A commit before the check, and one after it."""
    group = "remoting-transactions"
    await probe.beat(group, topics=())
    half = probe.sent(TRANSACTION, group=group, sys_flag=4, TRAN_MSG="true", PGROUP=group, UNIQ_KEY="U1")
    answer = await probe.ask("half", RequestCode.SEND_MESSAGE_V2, half, b"x")
    assert answer is not None
    offsets = int(answer.ext_fields["queueOffset"]), int(answer.ext_fields["msgId"][16:], 16)
    transaction_id = answer.ext_fields["transactionId"]
    end = headers.EndTransactionRequestHeader(
        group, *offsets, 8, msg_id="U1", transaction_id=transaction_id, topic=TRANSACTION, bname=BROKER
    )
    await probe.ask("commit", RequestCode.END_TRANSACTION, end)
    await probe.calls.sleep_ms(1_000)
    maximum = headers.GetMaxOffsetRequestHeader(TRANSACTION, 0, bname=BROKER)
    await probe.ask("maximum after the commit", RequestCode.GET_MAX_OFFSET, maximum)
    checks: list[Command] = []
    while not checks:
        await probe.calls.sleep_ms(500)
        checks = await probe.calls.requested("c@1", 0)
    fields = checks[0].ext_fields
    named = ("topic", "msgId", "transactionId", "offsetMsgId", "bname")
    probe.answers["check"] = {name: fields.get(name) for name in named}
    end = attrs.evolve(
        end,
        tran_state_table_offset=int(fields["tranStateTableOffset"]),
        commit_log_offset=int(fields["commitLogOffset"]),
        from_transaction_check=True,
        transaction_id=fields["transactionId"],
    )
    await probe.ask("commit after the check", RequestCode.END_TRANSACTION, end)
    await probe.calls.sleep_ms(1_000)
    await probe.ask("maximum after both", RequestCode.GET_MAX_OFFSET, maximum)


REMOTING_QUESTIONS: Mapping[str, Callable[[RemotingProbe], Awaitable[None]]] = {
    "routes": routes,
    "members": members,
    "messages": messages,
    "unserved": unserved,
    "transactions": transactions,
}
"""Name -> question; they are asked one after the other, each by clients of its own."""
