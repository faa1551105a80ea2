"""Requests of a rebalance pass: the members of the group, or the queues of this member."""

from nodes.client.instance.client_instance import ClientInstance
from nodes.client.rebalance.roles import FoundAssignment, FoundConsumers
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


class BrokerAssigner:
    """Asks a broker of the topic, drawn at random for every call: two calls may return different members.

    Implements `nodes.client.rebalance.roles.Assigner`.

    Args:
        strategy_name: strategy for broker-side rebalance.

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
        """The members of the group, from one broker of the topic; None if it did not answer with a list.

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
        """The queues of this member, from one broker of the topic; None if no broker is known.

        One call, without retry and without fallback to a client-side rebalance.

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
