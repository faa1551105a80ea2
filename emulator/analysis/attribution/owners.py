"""Why a queue has several owners, or none: what its consumers allocated from, and why that was not the same, or untrue.

Each consumer owns what follows from its view: the members that one broker listed, and the queues of its route. So a
queue has two owners where two views differ, and none where a view counts a member that is gone or does not know better.
Of each difference one side is behind what is true, and what kept it from hearing is the cause.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, both, by, ruled
from emulator.analysis.attribution.members import Members
from emulator.analysis.attribution.reach import Reach, at, needed
from emulator.analysis.attribution.routes import Routes
from emulator.analysis.inputs.administrators import changes_group
from emulator.analysis.inputs.bounds import LOCK_EXPIRES_MS
from emulator.history.group_views import GroupViews, View
from emulator.history.origins import LifeStage, Origins
from emulator.history.rows.queues import GroupQueue
from nodes.protocol.admin_request import Changed
from nodes.protocol.codes import RequestCode
from nodes.protocol.names import retry_topic
from nodes.units import NS_PER_MS, NS_PER_S

_RECENT_NS = 60 * NS_PER_S
"""A change of views that is older does not explain what differs now."""
_LOCKED_NS = LOCK_EXPIRES_MS * NS_PER_MS
_UNLOCKS_NS = 2 * NS_PER_S
"""A queue is unlocked at once, or when its listener has ended the batch that it has."""


class OwnerCauses:
    """Answers why queues have several owners, or none.

    Args:
        origins, views: have read all rows.
        reach, members, routes: of the run.
    """

    def __init__(self, origins: Origins, views: GroupViews, reach: Reach, members: Members, routes: Routes) -> None:
        self._origins = origins
        self._views = views
        self._reach = reach
        self._members = members
        self._routes = routes
        self._not_counting: dict[tuple[str, str, str, str, int], CauseChain] = {}
        self._asked: dict[tuple[str, str, str, int], int] = {}
        self._of_views: dict[tuple[str, str, str, str, int], CauseChain] = {}
        self._of_two: dict[tuple[str, str, tuple[str, ...], int], CauseChain] = {}
        self._of_none: dict[tuple[str, str, tuple[str, ...], int, CauseChain], CauseChain] = {}

    def two(self, queue: GroupQueue, owners: Sequence[str], t_ns: int) -> CauseChain:
        """Why several consumers own a queue at an instant.

        Args:
            queue: the queue.
            owners: nodes, the oldest owner first.
            t_ns: the instant.
        """
        key = queue.group, queue.topic, tuple(owners), t_ns
        found = self._of_two.get(key)
        if found is None:
            pairs = combinations(owners, 2)
            found = self._of_two[key] = both(self._pair(queue, *pair, t_ns) for pair in pairs)
        return found

    def none(self, queue: GroupQueue, members: Sequence[str], t_ns: int) -> CauseChain:
        """Why no consumer owns a queue at an instant.

        Args:
            queue: the queue.
            members: nodes whose processes live.
            t_ns: the instant.
        """
        awake = [node for node in members if not self._origins.is_away(node, t_ns)]
        if self._is_unknown(queue, awake, t_ns):
            return self._routes.unknown(queue.topic, queue.broker_name, awake, t_ns) or self._not_listed(queue, t_ns)
        locked = both(self._locked(queue, t_ns))
        key = queue.group, queue.topic, tuple(members), t_ns, locked  # all else is the same for the queues of a topic
        found = self._of_none.get(key)
        if found is None:
            found = self._of_none[key] = self._none(queue, locked, members, awake, t_ns)
        return found

    # --- two owners -------------------------------------------------------------------

    def _pair(self, queue: GroupQueue, node: str, other: str, t_ns: int) -> CauseChain:
        asleep = [item for away in (node, other) for item in at(self._origins.absences(away, t_ns, t_ns + 1), t_ns)]
        differences = self.differing(queue, node, other, t_ns)
        if differences or asleep:
            return differences.also(needed(asleep) if asleep else CauseChain())
        return self._changed_last(queue, (node, other), t_ns)

    def differing(self, queue: GroupQueue, node: str, other: str, t_ns: int) -> CauseChain:
        """Why the views of two consumers differ at an instant; no explanation if they do not."""
        first, second = self._view(queue, node, t_ns), self._view(queue, other, t_ns)
        if first is None or second is None or (first.ids == second.ids and first.queues == second.queues):
            return CauseChain()
        key = queue.group, queue.topic, node, other, t_ns
        if key not in self._of_views:
            self._of_views[key] = self._difference(queue, (node, first), (other, second), t_ns)
        return self._of_views[key]

    def _difference(
        self, queue: GroupQueue, first: tuple[str, View], second: tuple[str, View], t_ns: int
    ) -> CauseChain:
        """Why the view of a consumer has what that of another one lacks, and the other way round."""
        found = CauseChain()
        for (node_has, has), (node_lacks, lacks) in ((first, second), (second, first)):
            lacking = lacks.times()
            twice = [client_id for client_id, times in has.times().items() if 0 < lacking.get(client_id, 0) < times]
            found = found.also(self._doubled(queue, twice, node_has, has, t_ns))
            for client_id in has.times():
                if client_id not in lacking:
                    found = found.also(self._member(queue, client_id, node_has, has, node_lacks, lacks, t_ns))
            for broker_name, count in has.queues.items():
                if lacks.queues.get(broker_name, 0) < count:
                    found = found.also(self._routes.differing(queue.topic, broker_name, node_has, node_lacks, t_ns))
        return found

    def _view(self, queue: GroupQueue, node: str, t_ns: int) -> View | None:
        """What a consumer allocated from, or what the broker did that allocated for it."""
        view = self._views.view(node, queue.group, queue.topic, t_ns)
        if view is not None:
            return view
        rounds = [item for item in self._views.rounds(node, queue.group, queue.topic) if item.t_ns <= t_ns]
        last = next((item for item in reversed(rounds) if item.allocated and item.source), None)
        if last is None:
            return None
        server = self._members.node_of(last.source)
        return View(self._members.listed(server, queue.group, last.began_ns), {}, last.source)

    def _asked_ns(self, queue: GroupQueue, node: str, t_ns: int) -> int:
        """When a consumer began the round from whose view it works."""
        key = node, queue.group, queue.topic, t_ns
        if key not in self._asked:
            rounds = self._views.rounds(node, queue.group, queue.topic)
            began_ns = (item.began_ns for item in rounds if item.allocated and item.t_ns <= t_ns)
            self._asked[key] = max(began_ns, default=t_ns)
        return self._asked[key]

    def _member(
        self, queue: GroupQueue, client_id: str, has: str, view: View, lacks: str, other: View, t_ns: int
    ) -> CauseChain:
        """Why one consumer counts a member that another one does not."""
        end = self._members.end_of(client_id, t_ns)
        if end is not None:
            return self._counting_ended(queue, has, view, client_id, end, t_ns)
        key = queue.group, queue.topic, client_id, lacks, t_ns  # whoever counts it
        if key not in self._not_counting:
            self._not_counting[key] = self._why_not_counting(queue, client_id, lacks, other, t_ns)
        return self._not_counting[key]

    def _why_not_counting(self, queue: GroupQueue, client_id: str, node: str, view: View, t_ns: int) -> CauseChain:
        """Why a consumer does not count a member whose process lives."""
        group, server, asked_ns = queue.group, self._members.node_of(view.source), self._asked_ns(queue, node, t_ns)
        began = self._origins.began(self._members.node_of(client_id), t_ns)
        if began is not None and began.t_ns > asked_ns:  # it did not live then
            stale = self._members.stale(node, group, queue.topic, began.t_ns, t_ns)
            return by(began.origin).also(stale) or ruled(RuleOfRocketMQ.START)
        lacking = self._members.lacking(server, group, client_id, asked_ns)
        return lacking.also(self._behind(queue, node, server, client_id, asked_ns, t_ns, listed=True))

    def _doubled(self, queue: GroupQueue, client_ids: Sequence[str], node: str, view: View, t_ns: int) -> CauseChain:
        """Why a consumer counts members more often than once."""
        if not client_ids:
            return CauseChain()
        server, asked_ns = self._members.node_of(view.source), self._asked_ns(queue, node, t_ns)
        every = (self._members.doubled(server, queue.group, client_id, asked_ns) for client_id in client_ids)
        return both(dict.fromkeys(every))

    def _counting_ended(
        self, queue: GroupQueue, node: str, view: View, client_id: str, end: LifeStage, t_ns: int
    ) -> CauseChain:
        """Why a consumer counts a member whose process has ended: its server does, or it does not know yet."""
        server = self._members.node_of(view.source)
        if client_id in self._members.listed(server, queue.group, t_ns):
            return self._members.retaining(server, client_id, t_ns)
        asked_ns = self._asked_ns(queue, node, t_ns)
        return by(end.origin).also(self._behind(queue, node, server, client_id, asked_ns, t_ns, listed=False))

    def _behind(
        self, queue: GroupQueue, node: str, server: str, client_id: str, asked_ns: int, t_ns: int, *, listed: bool
    ) -> CauseChain:
        """Why a consumer does not know yet that the server that it asked has changed its list."""
        for instant in self._views.list_changes(server, queue.group):
            if asked_ns < instant <= t_ns and (client_id in self._views.listed(server, queue.group, instant)) is listed:
                return self._members.stale(node, queue.group, queue.topic, instant, t_ns)
        return CauseChain()

    # --- what changed last ------------------------------------------------------------

    def _changed_last(self, queue: GroupQueue, nodes: Sequence[str], t_ns: int) -> CauseChain:
        """Why views changed last, where they are equal now and owners are not yet."""
        changes = [
            (instant, node)
            for node in nodes
            for instant in self._views.view_changes(node, queue.group, queue.topic)
            if t_ns - _RECENT_NS <= instant <= t_ns
        ]
        if not changes:
            return self._started_last(nodes, t_ns)
        changed_ns, node = max(changes)
        behind = [
            self._members.stale(other, queue.group, queue.topic, changed_ns, t_ns) for other in nodes if other != node
        ]
        return self.changed(queue, node, changed_ns).also(both(item for item in behind if item.needed))

    def _started_last(self, nodes: Iterable[str], t_ns: int) -> CauseChain:
        """Consumers that have no view yet have just started."""
        began = [stage for node in nodes if (stage := self._origins.began(node, t_ns)) is not None]
        recent = [stage for stage in began if t_ns - stage.t_ns <= _RECENT_NS]
        if not recent:
            return ruled(RuleOfRocketMQ.ALLOCATION)
        return by(*(stage.origin for stage in recent)) or ruled(RuleOfRocketMQ.START)

    def taken(self, queue: GroupQueue, node: str, t_ns: int) -> CauseChain:
        """Why a consumer took a queue at an instant: why its view had changed."""
        changes = [at_ns for at_ns in self._views.view_changes(node, queue.group, queue.topic) if at_ns <= t_ns]
        return self.changed(queue, node, changes[-1]) if changes else CauseChain()

    def changed(self, queue: GroupQueue, node: str, changed_ns: int) -> CauseChain:
        """Why the view of a consumer changed at an instant."""
        before = self._views.view(node, queue.group, queue.topic, changed_ns - 1)
        after = self._views.view(node, queue.group, queue.topic, changed_ns)
        if after is None:
            return ruled(RuleOfRocketMQ.START)
        if before is None:
            began = self._origins.began(node, changed_ns)
            return by(None if began is None else began.origin) or ruled(RuleOfRocketMQ.START)
        return both(self._reasons(queue, node, before, after, changed_ns)) or ruled(RuleOfRocketMQ.ROUND)

    def _reasons(
        self, queue: GroupQueue, node: str, before: View, after: View, changed_ns: int
    ) -> Iterator[CauseChain]:
        server, server_before = (self._members.node_of(view.source) for view in (after, before))
        for client_id in before.ids:
            if client_id not in after.ids:
                end = self._members.end_of(client_id, changed_ns)
                yield (
                    self._members.lacking(server, queue.group, client_id, changed_ns) if end is None else by(end.origin)
                )
        for client_id, times in after.times().items():
            times_before = before.times().get(client_id, 0)
            if times_before and times_before != times:
                view, at_ns = (before, changed_ns - 1) if times_before > times else (after, changed_ns)
                yield self._doubled(queue, (client_id,), node, view, at_ns)
            if not times_before and self._members.end_of(client_id, changed_ns) is None:
                asked_ns = self._asked_ns(queue, node, changed_ns - 1)
                yield self._members.lacking(server_before, queue.group, client_id, asked_ns)
        for broker_name in dict.fromkeys((*before.queues, *after.queues)):
            if before.queues.get(broker_name, 0) != after.queues.get(broker_name, 0):
                yield self._routes.changed(queue.topic, broker_name, changed_ns)

    # --- no owner ---------------------------------------------------------------------

    def _none(
        self, queue: GroupQueue, locked: CauseChain, members: Sequence[str], awake: Sequence[str], t_ns: int
    ) -> CauseChain:
        asleep = [item for node in members for item in at(self._origins.absences(node, t_ns, t_ns + 1), t_ns)]
        found = both((*self._untrue(queue, awake, t_ns), locked))
        for other in awake[1:]:  # of two that differ, one differs from the first
            found = found.also(self.differing(queue, awake[0], other, t_ns))
        if found:
            return found
        if asleep and not awake:
            return needed(asleep)
        return self._changed_last(queue, tuple(members), t_ns)

    def _locked(self, queue: GroupQueue, t_ns: int) -> Iterator[CauseChain]:
        """Why a broker has locked the queue of an ordered group for a member that does not consume it."""
        for broker in self._routes.nodes_of(queue.broker_name):
            began = self._origins.began(broker, t_ns)
            client_id = self._views.locked_by(broker, queue, 0 if began is None else began.t_ns, t_ns)
            if client_id:
                yield self._not_unlocked(queue, broker, client_id, t_ns)

    def _not_unlocked(self, queue: GroupQueue, broker: str, client_id: str, t_ns: int) -> CauseChain:
        end = self._members.end_of(client_id, t_ns)
        if end is not None:
            return by(end.origin) if t_ns < end.t_ns + _LOCKED_NS else CauseChain()
        node = self._members.node_of(client_id)
        away = at(self._origins.absences(node, t_ns, t_ns + 1), t_ns)
        changes = [item for item in self._views.view_changes(node, queue.group, queue.topic) if item <= t_ns]
        if away or not changes or t_ns >= changes[-1] + _LOCKED_NS:
            return needed(away)
        lost = self._reach.on_link(node, broker, changes[-1], changes[-1] + _UNLOCKS_NS, RequestCode.UNLOCK_BATCH_MQ)
        return needed(lost).also(self.changed(queue, node, changes[-1])) if lost else CauseChain()

    def _not_listed(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        """Why consumers do not know a queue although nothing has changed: none lists it, or they have not polled yet.

        Brokers choose among the retry queues that their group has, also where its retry topic has fewer.
        """
        if self._routes.lists(queue, t_ns):
            return ruled(RuleOfRocketMQ.POLL)
        is_retry = queue.topic == retry_topic(queue.group)
        changed = self._origins.acts_until(
            t_ns, lambda row: is_retry and changes_group(row, queue.group, Changed.GROUP)
        )
        return by(*changed[-1:]) or ruled(RuleOfRocketMQ.READ_QUEUES)

    def _is_unknown(self, queue: GroupQueue, awake: Sequence[str], t_ns: int) -> bool:
        """Whether no consumer has the queue in its view."""
        views = [self._views.view(node, queue.group, queue.topic, t_ns) for node in awake]
        counts = [view.queues.get(queue.broker_name, 0) for view in views if view is not None]
        return bool(counts) and max(counts) <= queue.queue_id

    def _untrue(self, queue: GroupQueue, awake: Iterable[str], t_ns: int) -> Iterator[CauseChain]:
        """Why consumers count members that are gone, or that do not act."""
        for node in awake:
            view = self._view(queue, node, t_ns)
            if view is None:
                continue
            twice = [client_id for client_id, times in view.times().items() if times > 1]
            yield self._doubled(queue, twice, node, view, t_ns)
            for client_id in view.times():
                end = self._members.end_of(client_id, t_ns)
                if end is not None:
                    found = self._counting_ended(queue, node, view, client_id, end, t_ns)
                    # It may know that something changed, and reach none that it asks what.
                    yield found.also(self._members.stale(node, queue.group, queue.topic, end.t_ns, t_ns))
