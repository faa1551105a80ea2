"""Why messages of a queue wait: what keeps its consumers from its broker, or why no consumer owns it."""

from collections.abc import Iterator, Sequence

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, Shares, both, by, either, ruled
from emulator.analysis.attribution.fates import Fates
from emulator.analysis.attribution.masters import Masters
from emulator.analysis.attribution.members import Members
from emulator.analysis.attribution.owners import OwnerCauses
from emulator.analysis.attribution.reach import Reach, at, needed
from emulator.analysis.attribution.routes import Routes
from emulator.analysis.attribution.sampling import samples
from emulator.analysis.inputs.administrators import changes_group
from emulator.analysis.inputs.shared import SharedInputs
from emulator.history.elected_masters import ElectedMasters
from emulator.history.group_views import GroupViews
from emulator.history.origins import Hindrance
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import Span
from faults.refuse import Refuse
from nodes.protocol.admin_request import Changed
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.units import NS_PER_S

_READS = 4
_PULLS = (int(RequestCode.PULL_MESSAGE), int(RequestCode.POP_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE))
_HIDDEN_NS = 90 * NS_PER_S
"""What a consumer had popped when it ended is hidden for the invisible time, 60 s, and then revived."""
_ASKS_AGAIN_NS = 35 * NS_PER_S
"""A pull that is not answered is given up after 30 s, and repeated."""
Counts = Sequence[tuple[int, int]]
"""(second, messages that waited in it), in order."""


class Waiting:
    """Answers why messages wait.

    Args:
        inputs: of the run; they have read all rows.
        views, elected: have read all rows.
        reach, members, masters, owners, routes, fates: of the run.
    """

    def __init__(
        self,
        inputs: SharedInputs,
        views: GroupViews,
        elected: ElectedMasters,
        reach: Reach,
        members: Members,
        masters: Masters,
        owners: OwnerCauses,
        routes: Routes,
        fates: Fates,
    ) -> None:
        self._origins = inputs.origins
        self._presence = inputs.presence
        self._owners_of = inputs.owners
        self._proxy_routes = inputs.proxy_routes
        self._failing = inputs.failing
        self._refused_consumers = inputs.refused
        self._unreachable = inputs.unreachable
        self._administrators = inputs.administrators
        self._busy = inputs.busy_listeners
        self._bounds = inputs.facts.bounds
        self._views = views
        self._elected = elected
        self._reach = reach
        self._members = members
        self._masters = masters
        self._owners = owners
        self._routes = routes
        self._fates = fates
        self._known: dict[tuple[GroupQueue, str, int], CauseChain] = {}

    # --- times ------------------------------------------------------------------------

    def during(self, queue: GroupQueue, node: str, span: Span, shares: Shares) -> None:
        """Add why a queue stood still in a time.

        Args:
            queue: the queue.
            node: the consumer, in a group that broadcasts; else empty.
            span: from when to when.
            shares: to which it is added.
        """
        for found, _, length_ns in self._explained(queue, node, span):
            shares.add(found, length_ns)

    def counted(self, queue: GroupQueue, node: str, per_s: Counts, shares: Shares) -> None:
        """Add why messages of a queue waited, so many in each second."""
        for counts in _without_gaps(per_s):
            first, last = counts[0][0], counts[-1][0] + 1
            sums = [0]
            for _, waiting in counts:
                sums.append(sums[-1] + waiting)
            for found, (low_ns, high_ns), _ in self._explained(queue, node, (first * NS_PER_S, last * NS_PER_S)):
                low, high = low_ns // NS_PER_S - first, -(-high_ns // NS_PER_S) - first
                shares.add(found, sums[max(high, low + 1)] - sums[low])

    def _explained(self, queue: GroupQueue, node: str, span: Span) -> Iterator[tuple[CauseChain, Span, int]]:
        """(why, part of the time, its length); what piles up waits on when the way is free again."""
        before = CauseChain()
        start_ns = span[0]
        for t_ns, length_ns in samples(span):
            found = self.at(queue, node, t_ns)
            # What waits for a listener that fails would wait as long if nothing had piled up.
            before = found if found or found.rule is RuleOfRocketMQ.FAILING else before
            yield before or found, (start_ns, start_ns + length_ns), length_ns
            start_ns += length_ns

    # --- an instant -------------------------------------------------------------------

    def at(self, queue: GroupQueue, node: str, t_ns: int) -> CauseChain:
        """Why messages of a queue wait at an instant: what hits its broker, or its consumers; each of both suffices."""
        key = queue, node, t_ns
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._at(queue, node, t_ns)
        return found

    def _at(self, queue: GroupQueue, node: str, t_ns: int) -> CauseChain:
        switched = self._switched_off(queue, t_ns)
        if switched:
            return switched
        broker = self._asked(queue, node, t_ns)
        away = needed(at(self._origins.absences(broker, t_ns, t_ns + 1), t_ns))
        of_consumers = self._of_consumers(queue, node, broker, t_ns)
        if away and of_consumers:
            return either((*away.origins(), *of_consumers.origins()))
        return away or of_consumers or self._shortly_before(queue, node, broker, t_ns) or of_consumers

    def _shortly_before(self, queue: GroupQueue, node: str, broker: str, t_ns: int) -> CauseChain:
        """What kept consumers from the broker until shortly before: they have not asked it again yet."""
        found: list[Hindrance] = []
        since_ns = max(0, t_ns - _ASKS_AGAIN_NS)
        for consumer in self._consumers(queue, node, t_ns):
            for code in _PULLS:
                found += self._reach.hindrances(consumer, broker, since_ns, t_ns + 1, code)
        if found or self._asked(queue, node, since_ns) == broker:
            return needed(found)
        return self._masters.replaced(queue.broker_name, t_ns)

    def _of_consumers(self, queue: GroupQueue, node: str, broker: str, t_ns: int) -> CauseChain:
        found = self._of_each(queue, node, broker, t_ns)
        return found if found or not self._is_failed_with(queue, t_ns) else ruled(RuleOfRocketMQ.FAILING)

    def _is_failed_with(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether a listener has failed: a queue waits for it in order, or is where its messages come from again."""
        comes_again = queue.topic.startswith(RETRY_TOPIC_PREFIX) and self._is_unknown(queue.group, queue.topic)
        return self._failing.keeps_waiting(queue, t_ns) or (comes_again and self._failing.has_failed(queue.group, t_ns))

    def _of_each(self, queue: GroupQueue, node: str, broker: str, t_ns: int) -> CauseChain:
        if not node and (gone := self._all_gone(queue, t_ns)):
            return gone
        if queue.topic.startswith(RETRY_TOPIC_PREFIX) or self._is_unknown(queue.group, queue.topic):
            hidden = self._hidden(queue, t_ns)
            if hidden:
                return hidden
        consumers = self._consumers(queue, node, t_ns)
        if not consumers and self._is_revived(queue, t_ns):
            # A slave that acts for its master writes them to brokers of other groups.
            return both(self._fates.unacknowledged(name) for name in self._routes.every_broker_name)
        if not consumers:
            members = [process[0] for process in self._presence.members(queue.group, queue.topic, t_ns)]
            return self.without_owner(queue, members, t_ns) if members else self._without_members(queue, t_ns)
        found = [self._kept(consumer, queue.group, broker, t_ns) for consumer in consumers]
        if not all(found):
            unreplicated = needed(self._unreplicated(broker, queue.broker_name, t_ns))
            return unreplicated or self._not_served(queue, consumers, t_ns)
        return both(found).also(both(self._why_owned(queue, t_ns)))

    def _not_served(self, queue: GroupQueue, consumers: Sequence[str], t_ns: int) -> CauseChain:
        """Servers that answer with refusals or errors, since they have ended before; else the listener is slow."""
        brokers = self._routes.nodes_of(queue.broker_name)
        if any(self._unreachable.holds(node, t_ns, broker) for node in consumers for broker in brokers):
            return ruled(RuleOfRocketMQ.UNREACHABLE)
        servers = [name for node in consumers for name in self._refused_consumers.not_serving(node, brokers, t_ns)]
        if not servers:
            return ruled(RuleOfRocketMQ.TURNS if self._takes_turns(queue, consumers, t_ns) else RuleOfRocketMQ.LISTENER)
        ended = [self._origins.ended(server, t_ns) for server in dict.fromkeys(servers)]
        found = by(*(stage.origin for stage in ended if stage is not None))
        return found or ruled(RuleOfRocketMQ.REFUSED)

    def _takes_turns(self, queue: GroupQueue, consumers: Sequence[str], t_ns: int) -> bool:
        """Whether simple consumers do not work on any message, and so wait for those of a broker."""
        if not self._bounds.receive_turns_ms or not self._presence.is_of_proxies(queue.group):
            return False
        return not any(self._busy.all_busy(queue.group, node, t_ns, t_ns + 1) for node in consumers)

    def _is_revived(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether a queue is one to which brokers move messages that were popped and not acknowledged."""
        return queue.topic.startswith(RETRY_TOPIC_PREFIX) and self._views.pops(queue.group, t_ns)

    def without_owner(self, queue: GroupQueue, members: Sequence[str], t_ns: int) -> CauseChain:
        """Why no member of a group owns a queue at an instant."""
        found = self._owners.none(queue, members, t_ns)
        if not found and self._refused_consumers.hide_from_members(queue, t_ns):
            return ruled(RuleOfRocketMQ.UNREACHABLE)
        brokers = self._routes.nodes_of(queue.broker_name)
        is_refused = not found and self._refused_consumers.refuse_members(queue, brokers, t_ns)
        return ruled(RuleOfRocketMQ.REFUSED) if is_refused else found

    def _without_members(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        """Why no process subscribes to a topic for a group."""
        return both(self._absences(queue, t_ns)) or ruled(RuleOfRocketMQ.START)

    def _all_gone(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        """Why no member of a group is there, if none is: all that ended or froze them is needed."""
        found: list[CauseChain] = []
        for away in self._absences(queue, t_ns):
            if not away:  # most groups have a member: the others are not looked at
                return away
            found.append(away)
        return both(found)

    def _absences(self, queue: GroupQueue, t_ns: int) -> Iterator[CauseChain]:
        """For each node that was ever a member, why it is not there; an empty chain if it is."""
        ever = dict.fromkeys(process[0] for process in self._presence.ever_members(queue.group, queue.topic))
        return (needed(at(self._origins.absences(node, t_ns, t_ns + 1), t_ns)) for node in ever)

    def _unreplicated(self, broker: str, broker_name: str, t_ns: int) -> list[Hindrance]:
        """What keeps replicas from an elected master: consumers get what all that are in sync have."""
        if not self._elected.at(broker_name, t_ns):
            return []
        others = [node for node in self._routes.nodes_of(broker_name) if node != broker]
        return [item for node in others for item in at(self._reach.hindrances(node, broker, t_ns, t_ns + 1), t_ns)]

    def _why_owned(self, queue: GroupQueue, t_ns: int) -> Iterator[CauseChain]:
        """Why the consumers that are kept from their work own the queue, if others did before."""
        for hold in self._owners_of.holds_of(queue):
            if hold.start_ns <= t_ns < hold.end_ns:
                found = self._owners.taken(queue, hold.node, hold.start_ns)
                before_ns = min((origin.t_ns for origin in found.origins()), default=0) - 1
                if hold.node not in [process[0] for process in self._owners_of.at(queue, before_ns)]:
                    yield found

    def _is_unknown(self, group: str, topic: str) -> bool:
        """Whether the consumers of a group record no owners: brokers or proxies hand them messages of all queues."""
        return not self._owners_of.has_owned(group, topic)

    def _hidden(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        """Consumers that ended or slept with messages that they had popped."""
        members = dict.fromkeys(process[0] for process in self._presence.ever_members(queue.group, queue.topic))
        found: list[Hindrance] = []
        for node in members:
            found += self._origins.absences(node, max(0, t_ns - _HIDDEN_NS), t_ns + 1)
        return needed(found)

    def _kept(self, consumer: str, group: str, broker: str, t_ns: int) -> CauseChain:
        """What keeps a consumer from the broker of its queue, which answers pulls of members alone."""
        proxies = self._proxy_routes.proxies_of(consumer, t_ns)
        if proxies:
            return self._kept_by_proxies(consumer, proxies, broker, t_ns)
        hindrances: list[Hindrance] = []
        for code in _PULLS:
            hindrances += at(self._reach.hindrances(consumer, broker, t_ns, t_ns + 1, code), t_ns)
        hindrances += [item for item in self._refused(consumer, broker, t_ns) if item not in hindrances]
        return needed(hindrances) or self._members.unknown(broker, group, consumer, t_ns)

    def _kept_by_proxies(self, consumer: str, proxies: Sequence[str], broker: str, t_ns: int) -> CauseChain:
        """What keeps a consumer from all proxies that it calls, or these from the broker."""
        found: list[Hindrance] = []
        for proxy in proxies:
            called = self._reach.hindrances(consumer, proxy, t_ns, t_ns + 1, RequestCode.V2_RECEIVE_MESSAGE)
            popped = self._reach.hindrances(proxy, broker, t_ns, t_ns + 1, RequestCode.POP_MESSAGE)
            of_proxy = at((*called, *popped), t_ns)
            if not of_proxy:
                return CauseChain()
            found += of_proxy
        return needed(found)

    def _refused(self, consumer: str, broker: str, t_ns: int) -> Iterator[Hindrance]:
        for life in self._origins.overlapping(t_ns, t_ns):
            refuses = life.fault is Refuse and life.parameters.get("code") in _PULLS
            if refuses and life.hits_link(consumer, broker) and life.hits != 0:
                yield Hindrance(life.origin, t_ns, t_ns + 1)

    def _consumers(self, queue: GroupQueue, node: str, t_ns: int) -> Sequence[str]:
        if node:
            return (node,)
        owners = [process[0] for process in self._owners_of.at(queue, t_ns)]
        return owners or self._views.poppers(queue, t_ns)

    def _asked(self, queue: GroupQueue, node: str, t_ns: int) -> str:
        """The broker that consumers ask for messages of a queue: by their routes, else the master."""
        for consumer in self._consumers(queue, node, t_ns):
            master = self._routes.master_of(consumer, queue.topic, queue.broker_name, t_ns)
            if master:
                return master
        nodes = self._routes.nodes_of(queue.broker_name)
        first = queue.broker_name if queue.broker_name in nodes else nodes[0]
        return self._elected.at(queue.broker_name, t_ns) or first

    def _switched_off(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        if self._administrators.is_off(queue.group, queue.broker_name, t_ns):
            acts = self._origins.acts_until(t_ns, lambda row: changes_group(row, queue.group, Changed.GROUP))
            return by(*acts[-1:])
        for life in self._routes.permissions(queue.topic, queue.broker_name, t_ns):
            if not int(life.parameters.get("perm", _READS)) & _READS:
                return by(life.origin)
        return CauseChain()


def _without_gaps(per_s: Counts) -> Iterator[Counts]:
    """The seconds in runs that follow each other."""
    begin = 0
    for place in range(1, len(per_s) + 1):
        if place == len(per_s) or per_s[place][0] != per_s[place - 1][0] + 1:
            yield per_s[begin:place]
            begin = place
