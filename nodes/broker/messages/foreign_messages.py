"""Messages of other brokers, which this one fetches to revive them."""

from nodes.broker.context import BrokerContext
from nodes.broker.registration.topic_routes import TopicRouteInfoManager
from nodes.broker.shared import Shared
from nodes.broker.tables.store.message_store import MessageStore
from nodes.filter.filter_api import SUB_ALL, TAG
from nodes.protocol import headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import Message
from nodes.protocol.registry import decode_body
from nodes.protocol.sys_flags import PullSysFlag
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import invoke
from nodes.values import frozen

_PULL_TIMEOUT_MS = 10_000
_NOTHING_THERE = (
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@frozen
class Fetched:
    """A message, or why there is none."""

    message: Message | None = None
    need_retry: bool = False
    """Whether the broker did not say that there is none."""


class ForeignMessages:
    """Pulls single messages from other brokers, unless their store is in the same process.

    Args:
        routes: to other brokers.
        client: of this broker.
        shared: what it shares with the other brokers of its container; None: it is in none.

    Mirrors:
        `org.apache.rocketmq.broker.failover.EscapeBridge#getMessageFromRemoteAsync`,
        `org.apache.rocketmq.broker.out.BrokerOuterAPI#pullMessageFromSpecificBrokerAsync`.
    """

    def __init__(
        self, broker: BrokerContext, routes: TopicRouteInfoManager, client: RpcClient, shared: Shared | None = None
    ) -> None:
        self._broker = broker
        self._shared = shared
        self._routes = routes
        self._client = client
        self._group = f"InnerConsumerGroup_{broker.broker_name}_{broker.broker_id}"

    def store_of(self, broker_name: str | None) -> MessageStore | None:
        """A store that is read without a request: this broker's, or that of another one in its container.

        Mirrors:
            `org.apache.rocketmq.broker.BrokerController#getMessageStoreByBrokerName`.
        """
        if broker_name == self._broker.broker_name:
            return self._broker.store
        return None if self._shared is None or broker_name is None else self._shared.store_of(broker_name)

    async def address(self, topic: str, broker_name: str | None) -> str | None:
        """The address of the broker's master, else of any member; a nameserver is asked only if none is known."""
        return await self._routes.broker_address_in_subscribe(topic, broker_name)

    async def pull(self, address: str, broker_name: str, topic: str, queue_id: int, offset: int) -> Fetched:
        """Pull one message; a slave that serves no reads refuses, and so counts as one that may have it."""
        requested = headers.PullMessageRequestHeader(
            self._group,
            topic,
            queue_id,
            offset,
            1,
            int(PullSysFlag.SUBSCRIPTION),
            0,
            0,
            self._broker.host.clock.now_ms(),
            SUB_ALL,
            TAG,
            bname=broker_name,
        )
        try:
            answer = await invoke(
                self._client, address, RequestCode.PULL_MESSAGE, requested, timeout_ms=_PULL_TIMEOUT_MS
            )
        except RemotingError:
            return Fetched(need_retry=True)
        if answer.code != ResponseCode.SUCCESS:
            return Fetched(need_retry=answer.code not in _NOTHING_THERE)
        found = decode_body(PullMessageResponseBody, answer.body).messages
        return Fetched(found[0] if found else None)
