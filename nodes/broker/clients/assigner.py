"""The assigner: one broker that divides the queues of a group for all its members, and the settings of groups."""

from nodes.allocation.division import Divide, dividing_by
from nodes.beliefs import Belief, BeliefKind
from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.context import BrokerContext
from nodes.broker.files import REBALANCE_SETTINGS_FILE, persist_rebalance_settings
from nodes.broker.registration.topic_routes import TopicRouteInfoManager
from nodes.broker.tables.assignments import STRATEGIES
from nodes.broker.tables.pinned_assignments import AssignmentAnswer, AssignmentQuestion
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.assigning import AssignmentClaim, RebalanceSetting
from nodes.protocol.bodies import MessageQueueAssignment, QueryAssignmentRequestBody, QueryAssignmentResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.registry import decode_body, encode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success


class Assigner:
    """Divides queues by this broker's own view, for members that ask it as their assigner.

    It is no part of RocketMQ: the seed is its mission "rebalancing architecture optimization".

    Emits:
        DIVISION whenever it divides the queues of a group.
    """

    def __init__(self, broker: BrokerContext, routes: TopicRouteInfoManager, clients: BrokerToClient) -> None:
        self._broker = broker
        self._routes = routes
        self._clients = clients

    def handlers(self) -> Handlers:
        """The requests that it answers itself."""
        return {RequestCode.SET_REBALANCE_MODE: self._set_rebalance_mode}

    def load(self) -> None:
        """Read the settings that an earlier process has persisted."""
        content = self._broker.host.disk.read(REBALANCE_SETTINGS_FILE)
        if content is not None:
            self._broker.rebalance_settings.decode(content)

    async def assign(self, asked: QueryAssignmentRequestBody, claim: AssignmentClaim) -> QueryAssignmentResponseBody:
        """Answer a member; the route of an unknown topic is fetched from the nameserver while it waits."""
        broker = self._broker
        setting = broker.rebalance_settings.of(asked.consumer_group)
        strategy = (setting.strategy_name if setting else "") or asked.strategy_name
        queues = await self._routes.topic_subscribe_info(asked.topic)
        members = broker.consumers.group(asked.consumer_group)
        divide = _divide(strategy, asked.consumer_group)
        if divide is None:
            broker.host.log.warning("QueryLoad: unsupported strategy", strategy=strategy)
        if queues is None or members is None or divide is None:
            return QueryAssignmentResponseBody(None, setting=setting)
        question = AssignmentQuestion(
            asked.consumer_group, asked.topic, asked.client_id, strategy, claim, tuple(queues), members.client_ids
        )
        answer = broker.pinned.ask(question, divide, now_ms=broker.host.clock.now_ms())
        self._follow_up(asked, answer)
        assigned = None if answer.queues is None else tuple(map(MessageQueueAssignment, answer.queues))
        return QueryAssignmentResponseBody(assigned, answer.epoch, setting)

    def _follow_up(self, asked: QueryAssignmentRequestBody, answer: AssignmentAnswer) -> None:
        group, host = asked.consumer_group, self._broker.host
        if answer.division is not None:
            shares = {cid: [[q.broker_name, q.queue_id] for q in share] for cid, share in answer.division.items()}
            value = {"epoch": answer.epoch, "shares": shares}
            host.record(Belief(BeliefKind.DIVISION, f"{group}/{asked.topic}", value))
        if answer.problem:
            host.log.warning("a strategy divides badly", group=group, topic=asked.topic, problem=answer.problem)
        for client_id in answer.heirs:
            self._notify(group, client_id)

    def _set_rebalance_mode(self, _channel: Channel, request: Command) -> Command:
        """Keep a setting, and wake the members of the group that are connected: they learn it in their next pass."""
        setting = decode_body(RebalanceSetting, request.body)
        if setting.strategy_name and _divide(setting.strategy_name, setting.consumer_group) is None:
            return request.answer(ResponseCode.INVALID_PARAMETER, f"no strategy is called {setting.strategy_name}")
        if not self._broker.rebalance_settings.set(setting):
            return request.answer(ResponseCode.SYSTEM_BUSY, "too many groups have a setting")
        persist_rebalance_settings(self._broker)
        for client_id in self._broker.consumers.client_ids(setting.consumer_group):
            self._notify(setting.consumer_group, client_id)
        return success(request)

    def _notify(self, group: str, client_id: str) -> None:
        channel_id = self._broker.consumers.find_channel(group, client_id)
        if channel_id is not None:
            fields = encode_header(headers.ConsumerGroupRequestHeader(group))
            self._clients.oneway(channel_id, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields, b"")


def _divide(strategy: str, group: str) -> Divide | None:
    allocate = STRATEGIES.get(strategy)
    return None if allocate is None else dividing_by(allocate, group)
