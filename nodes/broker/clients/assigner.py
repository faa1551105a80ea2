"""The assigner: one broker that allocates the queues of a group for all its members, and the settings of groups."""

from collections.abc import Iterable, Mapping, Sequence

from nodes.allocation.allocating import ALLOCATION, Allocate, dividing_by, dividing_sticky, dividing_together
from nodes.allocation.calculation import calculation_ns
from nodes.allocation.pr_2169 import AllocateSticky2169
from nodes.allocation.strategies import UnknownStrategyError, strategy_named
from nodes.allocation.strategy import AllocationError
from nodes.beliefs import Belief, BeliefKind
from nodes.broker.clients.assigner_rounds import AssignerRounds, SeenGroup
from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.context import BrokerContext
from nodes.broker.files import REBALANCE_SETTINGS_FILE, persist_rebalance_settings
from nodes.broker.part import Part
from nodes.broker.registration.topic_routes import TopicRouteInfoManager
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.pinned_assignments import AssignmentAnswer, AssignmentQuestion
from nodes.config import STATEFUL, AllocateStrategy
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.assigning import AssignmentClaim, RebalanceSetting, StrategyParameters
from nodes.protocol.bodies import MessageQueueAssignment, QueryAssignmentRequestBody, QueryAssignmentResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.java import java_sorted
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageQueue
from nodes.protocol.registry import decode_body, encode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success


class Assigner(Part):
    """Allocates queues by this broker's own view, for members that ask it as their assigner.

    It is no part of RocketMQ: the seed is its mission "rebalancing architecture optimization".

    Emits:
        DIVISION whenever it allocates the queues of a group.
    """

    def __init__(
        self, broker: BrokerContext, tables: ClientTables, routes: TopicRouteInfoManager, clients: BrokerToClient
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._routes = routes
        self._clients = clients
        self._prototypes: dict[str, AllocateSticky2169] = {}
        """Group -> memory of the strategy PR2169."""
        period_ms = broker.config.assigner_rebalance_interval_ms
        self._rounds = AssignerRounds(broker.host, period_ms, self._look, self._wake) if period_ms else None
        """None: it looks at a group when a member asks."""
        self._calculated_ns = 0
        """When the last calculation is done; it makes one after the other."""

    def handlers(self) -> Handlers:
        """The requests that it answers itself."""
        return {RequestCode.SET_REBALANCE_MODE: self._set_rebalance_mode}

    def load(self) -> None:
        """Read the settings that an earlier process has persisted."""
        content = self._broker.host.disk.read(REBALANCE_SETTINGS_FILE)
        if content is not None:
            self._tables.rebalance_settings.decode(content)

    async def start(self) -> None:
        """Start its thread, if it has one."""
        if self._rounds is not None:
            self._rounds.start()

    async def stop(self) -> None:
        """End its thread."""
        if self._rounds is not None:
            self._rounds.stop()

    async def assign(
        self, requested: QueryAssignmentRequestBody, claim: AssignmentClaim
    ) -> QueryAssignmentResponseBody:
        """Answer a member; the route of an unknown topic is fetched from the nameserver while it waits."""
        broker, group = self._broker, requested.consumer_group
        setting = self._tables.rebalance_settings.of(group)
        strategy, parameters = requested.strategy_name, claim.parameters
        if setting is not None and setting.strategy_name:
            strategy, parameters = setting.strategy_name, setting.parameters or parameters
        rounds = self._rounds
        seen = await self._look(group, requested.topic) if rounds is None else rounds.seen(group, requested.topic)
        members = self._tables.consumers.group(group)
        if seen is None or members is None:
            return QueryAssignmentResponseBody(None, setting=setting)
        if strategy == AllocateStrategy.PR2169:
            of_prototype = self._as_prototype(requested, claim, seen.client_ids)
            await self._calculated()
            return QueryAssignmentResponseBody(of_prototype, setting=setting)
        merged = await self._queues_of_group(members.topics) if _is_merged(strategy, requested.topic) else {}
        try:
            allocate_queues = _allocate_queues(strategy, parameters, requested, merged)
        except UnknownStrategyError as error:
            broker.host.log.warning("QueryLoad: unsupported strategy", strategy=strategy, error=str(error))
            return QueryAssignmentResponseBody(None, setting=setting)
        # What other topics have decides, too: with another text the topic is allocated again.
        label = " ".join((strategy, *(f"{topic}:{len(others)}" for topic, others in merged.items())))
        question = AssignmentQuestion(
            group, requested.topic, requested.client_id, label, parameters, claim, seen.queues, seen.client_ids
        )
        with broker.host.stopwatch(ALLOCATION):
            answer = self._tables.pinned.ask(question, allocate_queues, now_ms=broker.host.clock.now_ms())
        if answer.allocated_queues is not None:
            self._calculate(strategy, len(seen.queues), len(seen.client_ids), parameters.virtual_node_cnt)
        await self._calculated()
        self._follow_up(requested, answer)
        assigned = None if answer.queues is None else tuple(map(MessageQueueAssignment, answer.queues))
        return QueryAssignmentResponseBody(assigned, answer.epoch, setting)

    def _calculate(self, strategy: str, queues: int, members: int, places_each: int = 0) -> None:
        """A calculation begins, of the shares of all members; who asks meanwhile waits for it, too."""
        counted = self._broker.config.allocation_time
        time_ns = calculation_ns(counted, strategy, queues, members, shares=members, places_each=places_each)
        self._calculated_ns = max(self._calculated_ns, self._broker.host.clock.monotonic_ns()) + time_ns

    async def _calculated(self) -> None:
        """Wait until the last calculation is done."""
        host = self._broker.host
        if self._calculated_ns > host.clock.monotonic_ns():
            await host.sleep_until_ns(self._calculated_ns)

    async def _look(self, group: str, topic: str) -> SeenGroup | None:
        """The members of a group and the queues of a topic now."""
        queues = await self._routes.topic_subscribe_info(topic)
        members = self._tables.consumers.group(group)
        return None if queues is None or members is None else SeenGroup(tuple(queues), tuple(members.client_ids))

    async def _queues_of_group(self, topics: Iterable[str]) -> dict[str, tuple[MessageQueue, ...]]:
        """The queues of all topics of a group, except of retry topics."""
        merged = [topic for topic in topics if not topic.startswith(RETRY_TOPIC_PREFIX)]
        return {topic: tuple(await self._routes.topic_subscribe_info(topic) or ()) for topic in merged}

    def _as_prototype(
        self, requested: QueryAssignmentRequestBody, claim: AssignmentClaim, client_ids: Sequence[str]
    ) -> tuple[MessageQueueAssignment, ...]:
        """What pull request #2169 answers: its client took no answer and an error for no queue at all."""
        prototype = self._prototypes.setdefault(requested.consumer_group, AllocateSticky2169())
        queues = claim.mq_all or ()
        if not prototype.is_current(queues, client_ids):
            self._calculate(requested.strategy_name, len(queues), len(client_ids))
        try:
            with self._broker.host.stopwatch(ALLOCATION):
                mine = prototype.allocate(requested.client_id, queues, java_sorted(client_ids))
        except AllocationError as error:
            self._broker.host.log.warning("a strategy failed", strategy="PR2169", error=str(error))
            return ()
        return tuple(map(MessageQueueAssignment, mine or ()))

    def _follow_up(self, requested: QueryAssignmentRequestBody, answer: AssignmentAnswer) -> None:
        group, host = requested.consumer_group, self._broker.host
        if answer.allocated_queues is not None:
            shares = {
                cid: [[q.broker_name, q.queue_id] for q in share] for cid, share in answer.allocated_queues.items()
            }
            value = {"epoch": answer.epoch, "shares": shares}
            host.record(Belief(BeliefKind.ALLOCATION, f"{group}/{requested.topic}", value))
        if answer.problem:
            host.log.warning("a strategy allocates badly", group=group, topic=requested.topic, problem=answer.problem)
        for client_id in answer.heirs:
            self._notify(group, client_id)

    def _set_rebalance_mode(self, _channel: Channel, request: Command) -> Command:
        """Keep a setting, and wake the members of the group that are connected: they learn it in their next pass."""
        setting = decode_body(RebalanceSetting, request.body)
        if setting.strategy_name and setting.strategy_name not in STATEFUL:
            try:
                strategy_named(setting.strategy_name, setting.parameters or StrategyParameters())
            except UnknownStrategyError as error:
                return request.answer(ResponseCode.INVALID_PARAMETER, str(error))
        if not self._tables.rebalance_settings.set(setting):
            return request.answer(ResponseCode.SYSTEM_BUSY, "too many groups have a setting")
        persist_rebalance_settings(self._broker, self._tables.rebalance_settings)
        self._wake(setting.consumer_group)
        return success(request)

    def _wake(self, group: str) -> None:
        """Let the connected members of a group ask now."""
        for client_id in self._tables.consumers.client_ids(group):
            self._notify(group, client_id)

    def _notify(self, group: str, client_id: str) -> None:
        member = self._tables.consumers.find_channel(group, client_id)
        if member is not None:
            fields = encode_header(headers.ConsumerGroupRequestHeader(group))
            self._clients.oneway(member.channel, RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields, b"")


def _is_merged(strategy: str, topic: str) -> bool:
    """Whether the queues of all topics are allocated together."""
    return strategy == AllocateStrategy.KAFKA_ROUND_ROBIN and not topic.startswith(RETRY_TOPIC_PREFIX)


def _allocate_queues(
    strategy: str,
    parameters: StrategyParameters,
    requested: QueryAssignmentRequestBody,
    merged: Mapping[str, Sequence[MessageQueue]],
) -> Allocate:
    """How the queues of a topic are allocated.

    Args:
        strategy: by name.
        parameters: of the strategy.
        requested: for which group and topic.
        merged: topic -> queues that are divided together; empty: only those of the topic.

    Raises:
        UnknownStrategyError: there is no such strategy, or its parameters are wrong.
    """
    if strategy == AllocateStrategy.STICKY:
        return dividing_sticky
    if merged:
        return dividing_together(merged, requested.topic)
    return dividing_by(strategy_named(strategy, parameters), requested.consumer_group)
