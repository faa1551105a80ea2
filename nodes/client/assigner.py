"""Whom a rebalance pass asks who is in the group, or what its share is."""

from nodes.client.instance import ClientInstance
from nodes.client.rebalance_roles import FoundAssignment, FoundConsumers
from nodes.config import ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.bodies import (
    GetConsumerListByGroupResponseBody,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.registry import decode_body, decode_body_cached
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import invoke, succeeded

_QUERY_ASSIGNMENT_TIMEOUT_MS = 3_000


class BrokerAsker:
    """Asks a broker of the topic, drawn anew for every call: two calls may see two memberships.

    Implements `nodes.client.rebalance_roles.Assigner`.

    Args:
        strategy_name: what a broker that divides the queues is to do it by.

    Mirrors:
        `MQClientInstance#findConsumerIdList`, `#queryAssignment`.
    """

    def __init__(self, instance: ClientInstance, config: ConsumerConfig, group: str, strategy_name: str) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._strategy_name = strategy_name
        self._draw = self._host.rng("findBrokerAddrByTopic").randrange

    async def find_consumers(self, topic: str) -> FoundConsumers | None:
        """Members of the group as one broker of the topic lists them; None where nobody answered with a list.

        Raises:
            RemotingError: there is no route, and the nameserver did not answer.
        """
        address = await self._address(topic)
        if address is None:
            return None
        header = headers.ConsumerGroupRequestHeader(self._group)
        timeout_ms = self._config.mq_client_api_timeout
        try:
            answer = await invoke(
                self._instance.rpc, address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header, timeout_ms=timeout_ms
            )
        except RemotingError as error:
            self._host.log.warning("getConsumerIdListByGroup failed", broker=address, error=str(error))
            return None
        if answer.code != ResponseCode.SUCCESS:
            return None
        body = decode_body_cached(GetConsumerListByGroupResponseBody, answer.body)
        return FoundConsumers(body.consumer_id_list, address)

    async def query_assignment(self, topic: str) -> FoundAssignment | None:
        """This member's share of a topic as one of its brokers divides it; None where there is nobody to ask.

        One call, without another try and without falling back to dividing the queues here.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """
        address = await self._address(topic)
        if address is None:
            return None
        body = QueryAssignmentRequestBody(
            topic, self._group, self._instance.client_id, self._strategy_name, self._config.message_model
        )
        answer = await invoke(
            self._instance.rpc,
            address,
            RequestCode.QUERY_ASSIGNMENT,
            None,
            body,
            timeout_ms=_QUERY_ASSIGNMENT_TIMEOUT_MS,
        )
        found = decode_body(QueryAssignmentResponseBody, succeeded(answer).body)
        return FoundAssignment(found.message_queue_assignments, address)

    async def _address(self, topic: str) -> str | None:
        instance = self._instance
        address = instance.routes.find_broker_addr_by_topic(topic, self._draw)
        if address is None:
            await instance.update_topic_route(topic)
            address = instance.routes.find_broker_addr_by_topic(topic, self._draw)
        return address
