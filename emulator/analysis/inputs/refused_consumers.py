"""Refused consumers: when brokers or proxies refused all that consumers ask for messages, or as members of their group.

Users and permissions, a group or a topic that does not exist, values that a proxy does not allow, addresses that lead
nowhere from where a consumer is: people decide that, so RocketMQ breaks no promise where messages wait for it.
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, ClassVar

from emulator.analysis.inputs.facts import RunFacts
from emulator.history.presence import Presence
from emulator.history.proxy_routes import ProxyRoutes
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import BeliefRow, FrameCount, Span
from emulator.history.steps import common, merged
from emulator.history.unreachable import UnreachableAddresses
from emulator.trace.schema import BELIEFS, TraceTable
from nodes.beliefs import BeliefKind
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.exchange import Movement
from nodes.protocol.registry import codes_where
from nodes.protocol.v2.enums import Code
from nodes.units import NS_PER_S

_RECEIVES = codes_where(lambda exchange: exchange.movement is Movement.RECEIVE)
_BY_PEOPLE = (
    *(ResponseCode.NO_PERMISSION, ResponseCode.TOPIC_NOT_EXIST, ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST),
    *(code for code in Code if Code.BAD_REQUEST <= code < Code.REQUEST_TIMEOUT and code is not Code.MESSAGE_NOT_FOUND),
)
_AS_MEMBER = (RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.HEART_BEAT)
_ASKS_AGAIN_S = 35
"""A consumer that was refused asks again within this time."""


class _Answer(IntEnum):
    """What was answered in a second; of several answers the greatest counts."""

    REFUSED = 0
    ERROR = 1
    """A refusal by ACL 1.0 has no code of its own."""
    SERVED = 2


_REFUSED = (_Answer.REFUSED,)
_NOT_SERVED = (_Answer.REFUSED, _Answer.ERROR)

_Answers = dict[int, _Answer]
"""Mapping second -> what was answered."""


class RefusedConsumers(Watcher):
    """Answers when consumers were refused.

    Args:
        presence, proxy_routes, unreachable: have read all rows.
        facts: of the run.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(
        self,
        presence: Presence,
        proxy_routes: ProxyRoutes,
        unreachable: UnreachableAddresses,
        facts: RunFacts,
    ) -> None:
        self._presence = presence
        self._unreachable = unreachable
        self._node_of = facts.node_of
        groups = tuple(facts.broker_names.values())
        named = tuple(node for node in facts.broker_names if node in groups)
        self._masters = tuple(n for n, group in facts.broker_names.items() if n in named or group not in named)
        """Brokers whose address members need: those with the names of their groups; of a group without one, all."""
        self._denied: dict[str, None] = {}
        """Clients to which users and permissions have denied anything."""
        self._proxy_routes = proxy_routes
        self._answers: dict[tuple[str, str], _Answers] = {}
        """Mapping consumer and server -> answers to what it asks for messages; and consumer and name of a request ->
        answers of all servers to what it asks and sends as a member."""
        self._as_member: dict[str, dict[str, _Answers]] = {}
        """Mapping consumer -> server -> answers to what it asks and sends as a member."""
        self._known: dict[tuple[Hashable, ...], Sequence[Span]] = {}
        """Mapping question -> its answer, in which no instant is: findings ask the same at many."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.DENIED and row.value_hash:
            self._denied[self._node_of(json.loads(row.value)["ip"])] = None

    def hear(self, frames: Iterable[FrameCount]) -> Iterator[FrameCount]:
        """Note the answers among the frames of a run, which are passed on."""
        for frame in frames:
            if frame.kind == "response" and frame.event == "delivered":
                if frame.code in _RECEIVES:
                    _note(self._answers.setdefault((frame.dst, frame.src), {}), frame)
                elif frame.code in _AS_MEMBER:
                    _note(self._answers.setdefault((frame.dst, RequestCode(frame.code).name), {}), frame)
                    _note(self._as_member.setdefault(frame.dst, {}).setdefault(frame.src, {}), frame)
            yield frame
        self._known.clear()

    def as_members(self, queue: GroupQueue, t_ns: int) -> Sequence[Span]:
        """When brokers refused all members of an instant as members, or all had an address that led nowhere.

        Without a list of members nobody allocates, and a list without a member has no queue for it: one request that
        all brokers refuse is enough, whatever they answer to the other one.
        """

        def of_member(member: str) -> Iterator[Span]:
            for code in _AS_MEMBER:
                yield from self._refusals(member, code.name)
            yield from self._hidden(member, self._masters)

        members = self._members(queue, t_ns)
        return self._once(("as members", members), lambda: _common(members, of_member))

    def hide_from_members(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether all members of a group had an address of a broker at an instant that led nowhere."""
        members = self._members(queue, t_ns)
        spans = self._once(
            ("hide", members), lambda: _common(members, lambda member: self._hidden(member, self._masters))
        )
        return _hold(spans, t_ns)

    def refuse_members(self, queue: GroupQueue, servers: Sequence[str], t_ns: int) -> bool:
        """Whether brokers refused all members of a group at an instant, or those of a queue any."""
        return _hold((*self.as_members(queue, t_ns), *self.keep_from(queue, servers, t_ns)), t_ns)

    def of_members(self, queue: GroupQueue, node: str, servers: Sequence[str], t_ns: int) -> Sequence[Span]:
        """When all members that subscribe to a topic at an instant were refused, or had addresses that led nowhere.

        Args:
            queue: of the group.
            node: the consumer, in a group that broadcasts; else empty.
            servers: the brokers of the queue.
            t_ns: the instant.
        """

        def of_member(member: str) -> Iterator[Span]:
            for server in (*servers, *self._proxy_routes.proxies_of(member, t_ns)):
                yield from self._refusals(member, server)
            masters = [server for server in servers if server in self._masters]
            yield from self._hidden(member, (*masters, *self._proxy_routes.proxies_of(member, t_ns)))

        return _common([member for member in self._members(queue, t_ns) if node in ("", member)], of_member)

    def in_part(self, nodes: Iterable[str], servers: Sequence[str] = ()) -> Sequence[Span]:
        """When a broker refused any of some consumers what it asks and sends as a member: it does not list that one.

        Args:
            nodes: the consumers.
            servers: the brokers; empty: all.
        """
        found: list[Span] = []
        for node in nodes:
            kinds = _NOT_SERVED if node in self._denied else _REFUSED
            for server, answers in self._as_member.get(node, {}).items():
                if not servers or server in servers:
                    found += _spans_of(answers, kinds)
        return merged(found)

    def keep_from(self, queue: GroupQueue, servers: Sequence[str], t_ns: int) -> Sequence[Span]:
        """When a broker of a queue refused any member of an instant, which is allocated the queue all the same.

        Args:
            queue: of the group.
            servers: the brokers of the queue.
            t_ns: the instant.
        """
        members = self._members(queue, t_ns)
        receives = (span for member in members for server in servers for span in self._refusals(member, server))
        key = "keep", members, tuple(servers)
        return self._once(key, lambda: merged((*self.in_part(members, servers), *receives)))

    def apart(self, views: Iterable[str]) -> Sequence[Span]:
        """When views, or lists of members, differed in no member but those that some broker refused as such.

        Args:
            views: as JSON.
        """
        read = [json.loads(view) for view in views]
        lists: list[list[str]] = [view["cids"] if isinstance(view, dict) and "cids" in view else view for view in read]
        others = [view.get("queues") if isinstance(view, dict) else None for view in read]
        if not all(isinstance(ids, list) for ids in lists) or any(other != others[0] for other in others):
            return ()
        every = dict.fromkeys(client_id for ids in lists for client_id in ids)
        differing = [client_id for client_id in every if len({ids.count(client_id) for ids in lists}) > 1]
        return common(self.in_part((self._node_of(client_id),)) for client_id in differing) if differing else ()

    def _members(self, queue: GroupQueue, t_ns: int) -> tuple[str, ...]:
        """The members that there are at an instant."""
        members = self._presence.members(queue.group, queue.topic, t_ns)
        return tuple(dict.fromkeys(member for member, _ in members))

    def _once(self, question: tuple[Hashable, ...], answer: Callable[[], Sequence[Span]]) -> Sequence[Span]:
        """The answer to a question, which is looked for once."""
        if question not in self._known:
            self._known[question] = answer()
        return self._known[question]

    def _hidden(self, client: str, servers: Iterable[str]) -> Sequence[Span]:
        """When the address that a client had of any of some servers led nowhere."""
        return [span for server in servers for span in self._unreachable.spans(client, server)]

    def _refusals(self, client: str, server: str) -> Sequence[Span]:
        """When all answers to a client were refusals, up to its next request."""
        return self._spans(client, server, _NOT_SERVED if client in self._denied else _REFUSED)

    def _spans(self, client: str, server: str, kinds: Sequence[_Answer]) -> Sequence[Span]:
        answers = self._answers.get((client, server), {})
        return self._once((client, server, kinds), lambda: tuple(_spans_of(answers, kinds)))

    def not_serving(self, client: str, servers: Sequence[str], t_ns: int) -> Iterator[str]:
        """The brokers, or the proxies of a client, whose answers were refusals or errors at an instant."""
        for server in (*servers, *self._proxy_routes.proxies_of(client, t_ns)):
            if _hold(self._spans(client, server, _NOT_SERVED), t_ns):
                yield server


def _common(members: Sequence[str], of_member: Callable[[str], Iterable[Span]]) -> Sequence[Span]:
    """The spans that all members have."""
    return common(merged(of_member(member)) for member in members) if members else ()


def _hold(spans: Iterable[Span], t_ns: int) -> bool:
    return any(start_ns <= t_ns < end_ns for start_ns, end_ns in spans)


def _spans_of(answers: _Answers, kinds: Sequence[_Answer]) -> Iterator[Span]:
    seconds = sorted(answers.items())
    never = (seconds[-1][0] + _ASKS_AGAIN_S, _Answer.SERVED) if seconds else (0, _Answer.SERVED)
    for (second, answer), (following, _) in pairwise((*seconds, never)):
        if answer in kinds:
            yield second * NS_PER_S, min(following, second + _ASKS_AGAIN_S) * NS_PER_S


def _note(answers: _Answers, frame: FrameCount) -> None:
    is_error = frame.status == ResponseCode.SYSTEM_ERROR or frame.status >= Code.INTERNAL_ERROR
    answer = _Answer.REFUSED if frame.status in _BY_PEOPLE else _Answer.ERROR if is_error else _Answer.SERVED
    answers[frame.second] = max(answers.get(frame.second, answer), answer)
