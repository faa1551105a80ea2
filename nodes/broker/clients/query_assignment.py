"""Broker-side rebalance: requests of members for their queues, and of operators for the message request mode."""

from nodes.allocation.allocating import ALLOCATION
from nodes.allocation.calculation import calculation_ns
from nodes.allocation.strategies import STRATEGIES_OF_BROKERS
from nodes.broker.clients.assigner import Assigner
from nodes.broker.context import BrokerContext
from nodes.broker.files import MESSAGE_REQUEST_MODE_FILE, persist_message_request_modes
from nodes.broker.part import Part
from nodes.broker.registration.topic_routes import TopicRouteInfoManager
from nodes.broker.tables.clients.assignments import do_load_balance
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.host import Channel
from nodes.protocol.bodies import (
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel, MessageQueue
from nodes.protocol.names import LMQ_QUEUE_ID, is_lmq
from nodes.protocol.registry import decode_body
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success


class QueryAssignment(Part):
    """Assigns queues from this broker's own view: its members, and its routes, which are up to 30 s old.

    Mirrors:
        `org.apache.rocketmq.broker.processor.QueryAssignmentProcessor`.
    """

    def __init__(
        self, broker: BrokerContext, tables: ClientTables, routes: TopicRouteInfoManager, assigner: Assigner
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._routes = routes
        self._assigner = assigner

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.QUERY_ASSIGNMENT: InTask(self._query_assignment),
            RequestCode.SET_MESSAGE_REQUEST_MODE: self._set_message_request_mode,
        }

    def load(self) -> None:
        """Read the modes that an earlier process has persisted."""
        content = self._broker.host.disk.read(MESSAGE_REQUEST_MODE_FILE)
        if content is not None:
            self._tables.request_modes.decode(content)

    async def _query_assignment(self, _channel: Channel, request: Command) -> Command:
        """Assign queues; the route of an unknown topic is fetched from the nameserver while the member waits."""
        requested = decode_body(QueryAssignmentRequestBody, request.body)
        if requested.claim is not None:
            return success(request, None, await self._assigner.assign(requested, requested.claim))
        queues = await self._queues(requested)
        members = self._tables.consumers.group(requested.consumer_group)
        with self._broker.host.stopwatch(ALLOCATION):
            assignments = do_load_balance(
                requested,
                self._tables.request_modes.mode(requested.topic, requested.consumer_group),
                queues,
                None if members is None else members.client_ids,
                server_load_balancer_enable=self._broker.config.server_load_balancer_enable,
            )
        if assignments is not None and members is not None:
            await self._calculate(requested, len(queues or ()), len(members.client_ids))
        if requested.strategy_name not in STRATEGIES_OF_BROKERS:
            self._broker.host.log.warning("QueryLoad: unsupported strategy", strategy=requested.strategy_name)
        setting = self._tables.rebalance_settings.of(requested.consumer_group)
        return success(request, None, QueryAssignmentResponseBody(assignments, setting=setting))

    async def _calculate(self, requested: QueryAssignmentRequestBody, queues: int, members: int) -> None:
        """The answer waits until the allocation is made; a member that broadcasts gets all queues at once."""
        broker = self._broker
        if requested.message_model is MessageModel.CLUSTERING and broker.config.server_load_balancer_enable:
            time_ns = calculation_ns(broker.config.allocation_time, requested.strategy_name, queues, members)
            if time_ns:
                await broker.host.sleep_until_ns(broker.host.clock.monotonic_ns() + time_ns)

    async def _queues(self, requested: QueryAssignmentRequestBody) -> tuple[MessageQueue, ...] | None:
        """The queues to allocate; a light message queue is one of this broker, and no route of it is asked for."""
        if requested.message_model is MessageModel.CLUSTERING and is_lmq(requested.topic):
            return (MessageQueue(requested.topic, self._broker.broker_name, LMQ_QUEUE_ID),)
        return await self._routes.topic_subscribe_info(requested.topic)

    def _set_message_request_mode(self, _channel: Channel, request: Command) -> Command:
        reported = decode_body(SetMessageRequestModeRequestBody, request.body)
        if reported.topic.startswith(RETRY_TOPIC_PREFIX):
            return request.answer(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
        if self._broker.topics.select_topic_config(reported.topic) is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"topic[{reported.topic}] not exist")
        now_ms = self._broker.host.clock.now_ms()
        if self._broker.groups.find_subscription_group_config(reported.consumer_group, now_ms=now_ms) is None:
            return request.answer(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
        self._tables.request_modes.set_mode(reported)
        persist_message_request_modes(self._broker, self._tables.request_modes)
        return success(request)
