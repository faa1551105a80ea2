"""Requests to lock and unlock queues, and the calls to other members of the group that they need."""

from collections.abc import Iterable

import trio

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.clients.queue_locks import (
    ALL_PEERS_TIMEOUT_MS,
    PEER_TIMEOUT_MS,
    LockRound,
    RebalanceLockManager,
    lock_batch,
    unlock_batch,
)
from nodes.broker.tables.group.member_group import MemberGroup
from nodes.host import Channel
from nodes.protocol.bodies import LockBatchRequestBody, LockBatchResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import ProtocolError, decode_body, encode_body
from nodes.rpc.client import Reply, RpcClient
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success


class LockBatchMq(Part):
    """Answers LOCK_BATCH_MQ (41) and UNLOCK_BATCH_MQ (42).

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#lockBatchMQ`, `#unlockBatchMQ`.

    Emits:
        QUEUE_LOCKS whenever locks are granted or released; an expired lock counts as held until another client
        takes it.
    """

    def __init__(
        self, broker: BrokerContext, locks: RebalanceLockManager, client: RpcClient, group: MemberGroup
    ) -> None:
        self._broker = broker
        self._locks = locks
        self._client = client
        self._group = group
        self._believed: dict[str, dict[str, str]] = {}

    def handlers(self) -> Handlers:
        """Locks and unlocks."""
        return {
            RequestCode.LOCK_BATCH_MQ: InTask(self._lock_batch),
            RequestCode.UNLOCK_BATCH_MQ: self._unlock_batch,
        }

    async def _lock_batch(self, _channel: Channel, request: Command) -> Command:
        broker = self._broker
        body = decode_body(LockBatchRequestBody, request.body)
        turn = lock_batch(
            self._locks,
            body,
            now_ms=broker.host.clock.now_ms(),
            lock_in_strict_mode=broker.config.lock_in_strict_mode,
            total_replicas=broker.config.total_replicas,
            broker_id=broker.broker_id,
            members=self._group.members or {},
        )
        self._believe(body.consumer_group)
        locked = turn.answer(await self._confirmations(turn))
        return success(request, None, LockBatchResponseBody(tuple(sorted(locked))))

    async def _confirmations(self, turn: LockRound) -> list[Iterable[MessageQueue]]:
        """The queues that each member has locked, of the members that answered in time."""
        confirmed: list[Iterable[MessageQueue]] = []
        if not turn.ask:
            return confirmed
        settled: list[Reply] = []
        all_settled = trio.Event()

        def settle(reply: Reply) -> None:
            settled.append(reply)
            confirmed.extend(self._locked_by_member(reply))
            if len(settled) == len(turn.ask):
                all_settled.set()

        content = encode_body(turn.request)
        for address in turn.ask:
            # Each call may take 1 s, but RocketMQ detects expired calls 1 to 2 s late: a silent member
            # is waited for until the overall timeout, and an answer until then counts.
            self._client.call_async(
                address,
                int(RequestCode.LOCK_BATCH_MQ),
                NO_FIELDS,
                content,
                timeout_ms=ALL_PEERS_TIMEOUT_MS,
                callback=settle,
            )
        try:
            with self._broker.host.timeout_ms(ALL_PEERS_TIMEOUT_MS):
                await all_settled.wait()
        except trio.TooSlowError:
            self._broker.host.log.warning("lock of a majority: not all members answered", settled=len(settled))
        return confirmed

    def _locked_by_member(self, reply: Reply) -> list[tuple[MessageQueue, ...]]:
        if not isinstance(reply, Command) or reply.code != ResponseCode.SUCCESS:
            self._broker.host.log.warning("lock of a majority: a member failed", error=str(reply))
            return []
        try:
            return [decode_body(LockBatchResponseBody, reply.body).lock_ok_mq_set]
        except ProtocolError as error:
            self._broker.host.log.warning("lock of a majority: a member failed", error=str(error))
            return []

    def _unlock_batch(self, _channel: Channel, request: Command) -> Command:
        body = decode_body(LockBatchRequestBody, request.body)
        unlock = unlock_batch(
            self._locks,
            body,
            lock_in_strict_mode=self._broker.config.lock_in_strict_mode,
            members=self._group.members or {},
        )
        self._believe(body.consumer_group)
        if unlock.notified:
            content = encode_body(unlock.request)
            for address in unlock.notified:
                self._client.call_async(
                    address,
                    int(RequestCode.UNLOCK_BATCH_MQ),
                    NO_FIELDS,
                    content,
                    timeout_ms=PEER_TIMEOUT_MS,
                    callback=self._on_unlocked,
                )
        return success(request)

    def _on_unlocked(self, reply: Reply) -> None:
        if not isinstance(reply, Command):
            self._broker.host.log.warning("unlock: a member failed", error=str(reply))

    def _believe(self, group: str) -> None:
        locks = self._locks.locks.get(group, {})
        holders = {f"{q.topic}@{q.broker_name}@{q.queue_id}": lock.client_id for q, lock in sorted(locks.items())}
        if holders != self._believed.get(group, {}):
            self._believed[group] = holders
            self._broker.host.record(Belief(BeliefKind.QUEUE_LOCKS, group, holders or None))
