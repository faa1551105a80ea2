"""Requests of a rebalance pass: the members of the group, or the queues of this member."""

from collections.abc import Iterable

from nodes.allocation.strategies import strategy_parameters
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.rebalance.rebalance_beliefs import RebalanceBeliefs
from nodes.client.rebalance.roles import FoundAssignment, FoundConsumers, Requested
from nodes.config import AllocateStrategy, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.assigning import AssignmentClaim
from nodes.protocol.bodies import (
    GetConsumerListByGroupResponseBody,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body, decode_body_cached, encode_body
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import invoke, succeeded

_QUERY_ASSIGNMENT_TIMEOUT_MS = 3_000


class BrokerAssigner:
    """Asks a broker of the topic: one drawn at random for every call, or the assigner.

    Two calls of a random broker may return different members. The assigner is the same for all members whose routes
    agree: of the brokers of the topic that have a master, the one with the smallest name.

    Implements `nodes.client.rebalance.roles.AssignerRequests`.

    Args:
        strategy_name: strategy for broker-side rebalance.

    Mirrors:
        `MQClientInstance#findConsumerIdList`, `#queryAssignment`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        group: str,
        strategy_name: str,
        beliefs: RebalanceBeliefs,
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._strategy_name = strategy_name
        self._beliefs = beliefs
        self._draw = self._host.rng("findBrokerAddrByTopic").randrange
        self._parameters = strategy_parameters(config)
        self._is_prototype = config.allocate_message_queue_strategy is AllocateStrategy.PR2169
        self._epochs: dict[str, int] = {}
        """Topic -> epoch of the assigner's allocation that was followed last."""

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
        return FoundConsumers(body.consumer_id_list, Requested(address, 1, len(answer.body or b"")), body.setting)

    async def query_assignment(self, topic: str) -> FoundAssignment | None:
        """The queues of this member, from one broker of the topic; None if no broker is known.

        One call, without retry and without fallback to a client-side rebalance.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """
        address = await self._address(topic)
        return None if address is None else (await self._query(topic, address, None))[0]

    async def ask_assigner(
        self, topic: str, owned: Iterable[MessageQueue], mq_all: Iterable[MessageQueue]
    ) -> FoundAssignment | None:
        """The queues of this member, from the assigner of the topic; None if no broker can be it.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """
        found = self._find_assigner(topic)
        if found is None:
            await self._instance.update_topic_route(topic)
            found = self._find_assigner(topic)
        self._beliefs.assigner(topic, *(found or (None, "")))
        if found is None:
            return None
        claim = AssignmentClaim(
            tuple(owned),
            self._epochs.get(topic, 0),
            self._config.revoke_before_assign,
            self._parameters,
            tuple(mq_all) if self._is_prototype else None,
        )
        answer, epoch = await self._query(topic, found[1], claim)
        if answer.assignments is not None and epoch:
            self._epochs[topic] = epoch
            self._beliefs.epoch(topic, epoch, found[1])
        return answer

    def _find_assigner(self, topic: str) -> tuple[str, str] | None:
        """Name and address; the prototype also took a slave, drawn for every call, of the first broker of all."""
        if self._is_prototype:
            return self._instance.routes.find_first_broker(topic, self._draw)
        return self._instance.routes.find_assigner(topic)

    async def _query(self, topic: str, address: str, claim: AssignmentClaim | None) -> tuple[FoundAssignment, int]:
        """The answer of a broker, and its epoch, which is 0 if it has none."""
        instance = self._instance
        body = encode_body(
            QueryAssignmentRequestBody(
                topic, self._group, instance.client_id, self._strategy_name, self._config.message_model, claim
            )
        )
        answer = await invoke(
            instance.rpc, address, RequestCode.QUERY_ASSIGNMENT, None, body, timeout_ms=_QUERY_ASSIGNMENT_TIMEOUT_MS
        )
        found = decode_body(QueryAssignmentResponseBody, succeeded(answer).body)
        requested = Requested(address, 1, len(body) + len(answer.body or b""))
        return FoundAssignment(found.message_queue_assignments, requested, found.setting), found.epoch

    async def _address(self, topic: str) -> str | None:
        instance = self._instance
        address = instance.routes.find_broker_addr_by_topic(topic, self._draw)
        if address is None:
            await instance.update_topic_route(topic)
            address = instance.routes.find_broker_addr_by_topic(topic, self._draw)
        return address
