"""The attribution of a run: the causes of each kind of finding, with their shares."""

from collections.abc import Iterable, Mapping, Sequence

from emulator.analysis.attribution.calls import Calls
from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, Shares, both, by, of_chains, ruled
from emulator.analysis.attribution.fates import Fates
from emulator.analysis.attribution.masters import Masters
from emulator.analysis.attribution.members import Members
from emulator.analysis.attribution.owners import OwnerCauses
from emulator.analysis.attribution.reach import Reach, needed
from emulator.analysis.attribution.routes import Routes
from emulator.analysis.attribution.sampling import samples
from emulator.analysis.attribution.waiting import Counts, Waiting
from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.inputs.administrators import changes_group
from emulator.analysis.inputs.offsets import OffsetFault
from emulator.analysis.inputs.shared import SharedInputs
from emulator.history.elected_masters import ElectedMasters
from emulator.history.group_views import GroupViews
from emulator.history.lost_frames import LostFrames
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import Process, Span
from emulator.spec.model.scenario import BROKER, NAMESERVER, PROXY
from faults.machine import LostWrites
from nodes.protocol.admin_request import Changed
from nodes.protocol.codes import RequestCode
from nodes.protocol.names import is_system_topic
from nodes.units import NS_PER_S

Causes = tuple[CauseShare, ...]
_TAKEN_OVER_NS = 60 * NS_PER_S
"""Messages that an owner consumes again so long after it began follow from how it came to own its queue."""
_AFTER_TWO_NS = 40 * NS_PER_S
"""Messages may be consumed again so long after a queue had two owners."""
_COMMIT_NS = 10 * NS_PER_S
_COPY_NS = 65 * NS_PER_S
"""Time in which a slave copies the tables of its master at least once."""


class Attribution:
    """Finds causes, once all rows of a run have been read.

    Args:
        inputs: of the run; they read the same rows.
    """

    def __init__(self, inputs: SharedInputs) -> None:
        self._inputs = inputs
        self.origins = inputs.origins
        self.lost = LostFrames(inputs.facts.node_of)
        self.views = GroupViews(inputs.facts.node_of)
        self.elected = ElectedMasters()
        self.reach = Reach(self.origins, self.lost)
        bounds, broker_names = inputs.facts.bounds, dict(inputs.facts.broker_names)
        self.members = Members(self.origins, self.views, self.reach, bounds)
        self.routes = Routes(self.origins, self.views, self.reach, bounds, broker_names, inputs.facts.node_of)
        self.owners = OwnerCauses(self.origins, self.views, self.reach, self.members, self.routes)
        self.masters = Masters(self.origins, self.elected, self.reach, self.routes)
        self.fates = Fates(
            *(self.origins, self.reach, self.lost, self.routes, self.masters),
            *(broker_names.values(), inputs.facts.end_ns),
        )
        self.waiting = Waiting(
            *(inputs, self.views, self.elected, self.reach, self.members, self.masters),
            *(self.owners, self.routes, self.fates),
        )
        replicas = {node: self.routes.nodes_of(name) for node, name in broker_names.items()}
        self._of_views: dict[tuple[str, str, int], CauseChain] = {}
        self.calls = Calls(self.origins, inputs.unreachable, self.reach, self.masters, replicas, broker_names, bounds)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """Those that read rows."""
        return (self.lost, self.views, self.elected)

    # --- owners -----------------------------------------------------------------------

    def of_overlap(self, queue: GroupQueue, spans: Iterable[Span]) -> Causes:
        """Why a queue had several owners.

        Args:
            queue: the queue.
            spans: when it had, and at least two of them were awake.
        """
        return of_chains((self._two(queue, t_ns), weight) for span in spans for t_ns, weight in samples(span))

    def _two(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        owners = self._nodes(self._inputs.owners.at(queue, t_ns))
        return self.owners.two(queue, owners, t_ns) if len(owners) > 1 else CauseChain()

    def of_orphan(self, queue: GroupQueue, span: Span) -> Causes:
        """Why a queue had no owner in a time."""
        shares = Shares()
        for t_ns, weight in samples(span):
            members = self._nodes(self._inputs.presence.members(queue.group, queue.topic, t_ns))
            found = self.waiting.without_owner(queue, members, t_ns)
            shares.add(found or self._reset(queue.group, t_ns) or found, weight)
        return shares.causes()

    def of_views(self, group: str, topic: str, spans: Iterable[Span]) -> Causes:
        """Why members of a group allocated from different views."""
        queue = GroupQueue(group, topic, "", 0)
        return of_chains((self._views(queue, t_ns), weight) for span in spans for t_ns, weight in samples(span))

    def _views(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        key = queue.group, queue.topic, t_ns  # whole views and their parts differ at the same instants
        if key not in self._of_views:
            members = self._nodes(self._inputs.presence.members(queue.group, queue.topic, t_ns))
            self._of_views[key] = both(self.owners.differing(queue, members[0], other, t_ns) for other in members[1:])
        return self._of_views[key]

    def of_acquisition(self, queue: GroupQueue, node: str, t_ns: int) -> Causes:
        """Why a consumer took a queue at an instant."""
        return of_chains(((self._taken(queue, node, t_ns), 1),))

    def _taken(self, queue: GroupQueue, node: str, t_ns: int) -> CauseChain:
        reset = self._reset(queue.group, t_ns)
        if reset:
            return reset
        return self.owners.taken(queue, node, t_ns)

    # --- messages ---------------------------------------------------------------------

    def of_stall(self, queue: GroupQueue, node: str, span: Span) -> Causes:
        """Why a queue stood still; in a group that broadcasts, for one consumer."""
        shares = Shares()
        self.waiting.during(queue, node, span, shares)
        return shares.causes()

    def of_waiting(self, queue: GroupQueue, node: str, per_s: Counts) -> Causes:
        """Why messages of a queue waited, so many in each second; in a group that broadcasts, for one consumer."""
        shares = Shares()
        self.waiting.counted(queue, node, per_s, shares)
        return shares.causes()

    def of_repeats(self, queue: GroupQueue, repeats: Iterable[tuple[int, str]]) -> Causes:
        """Why messages of a queue were consumed again: (when, consumer)."""
        return of_chains((self._repeat(queue, t_ns, node), 1) for t_ns, node in repeats)

    def _repeat(self, queue: GroupQueue, t_ns: int, node: str) -> CauseChain:
        reset = self._set_back(queue, t_ns)
        if reset:
            return reset
        two = self._two(queue, t_ns)
        if two:
            return two
        if self._inputs.failing.comes_again(queue, t_ns):
            return ruled(RuleOfRocketMQ.FAILING)
        began_ns = max(
            (
                hold.start_ns
                for hold in self._inputs.owners.holds_of(queue)
                if hold.node == node and hold.start_ns <= t_ns
            ),
            default=-1,
        )
        if began_ns < 0 or t_ns - began_ns > _TAKEN_OVER_NS:
            return self._after_two(queue, t_ns)
        broker = queue.broker_name
        found = self._taken(queue, node, began_ns)
        before = [hold for hold in self._inputs.owners.holds_of(queue) if hold.end_ns <= began_ns and hold.node != node]
        if before:
            last = max(before, key=lambda hold: hold.end_ns)
            ended = self.origins.ended(last.node, began_ns)
            if ended is not None and abs(ended.t_ns - last.end_ns) < NS_PER_S:
                found = found.also(by(ended.origin))
            code = int(RequestCode.UPDATE_CONSUMER_OFFSET)
            lost = self.reach.on_link(last.node, broker, last.end_ns - _COMMIT_NS, last.end_ns + NS_PER_S, code)
            found = found.also(needed(lost))
        return found or self._after_two(queue, t_ns)

    def _after_two(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        overlaps = [
            item
            for item in self._inputs.owners.overlaps_of(queue)
            if item.start_ns <= t_ns <= item.end_ns + _AFTER_TWO_NS
        ]
        if overlaps:
            return self._two(queue, max(overlaps[-1].start_ns, overlaps[-1].end_ns - 1))
        return self._other_broker(queue.broker_name, t_ns)

    def _reset(self, group: str, t_ns: int) -> CauseChain:
        """The act that reset the offsets of a group shortly before: its members drop and take their queues again."""
        acts = self.origins.acts_until(t_ns, lambda row: changes_group(row, group, Changed.OFFSETS))
        return by(*[act for act in acts if t_ns <= act.t_ns + _TAKEN_OVER_NS][-1:])

    def _set_back(self, queue: GroupQueue, t_ns: int) -> CauseChain:
        """The act that set the offset of a group back in a queue."""
        falls = [
            item.t_ns
            for item in self._inputs.offsets.found
            if item.queue == queue and item.what is OffsetFault.RESET and item.t_ns <= t_ns
        ]
        return self._reset(queue.group, falls[-1]) if falls and t_ns - falls[-1] <= _TAKEN_OVER_NS else CauseChain()

    def of_fall(self, queue: GroupQueue, broker: str, t_ns: int) -> Causes:
        """Why the offset of a group fell: a broker had an older table; or, if none is named, a client committed it."""
        if broker:
            return of_chains(((self._older_table(broker, t_ns), 1),))
        owners = self._nodes(self._inputs.owners.at(queue, t_ns))
        found = self._repeat(queue, t_ns, owners[-1] if owners else "")
        # What a slave does in place of its master it writes to brokers of other groups, too.
        everywhere = self.routes.every_broker_name if is_system_topic(queue.topic) else (queue.broker_name,)
        return of_chains(((found or both(self._other_broker(name, t_ns) for name in everywhere), 1),))

    def _other_broker(self, broker_name: str, t_ns: int) -> CauseChain:
        """Why clients work with what another broker, or another process of it, knows."""
        return self.masters.restarted(broker_name, t_ns).also(self.masters.replaced(broker_name, t_ns))

    def _older_table(self, broker: str, t_ns: int) -> CauseChain:
        """What took the newer table: the end of the process of a broker, or what kept a copy of it."""
        ended = self.origins.ended(broker, t_ns)
        replaced = self.masters.replaced(self._broker_name(broker), t_ns)
        found = by(None if ended is None else ended.origin).also(replaced)
        for life in self.origins.overlapping(0 if ended is None else ended.t_ns - 1, t_ns):
            if life.fault is LostWrites and life.hits_node(broker):
                found = found.also(by(life.origin))
        others = [node for node in self.routes.nodes_of(self._broker_name(broker)) if node != broker]
        since_ns = max(0, t_ns - _COPY_NS)
        kept = [item for node in others for item in self.reach.hindrances(broker, node, since_ns, t_ns + 1)]
        return found.also(needed([item for item in kept if item.origin not in found.origins()]))

    def _broker_name(self, broker: str) -> str:
        return self._inputs.facts.broker_names.get(broker, broker)

    def of_start(self, queue: GroupQueue, node: str, t_ns: int) -> Causes:
        """Why an owner began elsewhere than at the last commit."""
        return of_chains(((self._repeat(queue, t_ns, node), 1),))

    # --- calls ------------------------------------------------------------------------

    def of_failed_sends(self, producer: str, server: str, second: int, code: int, status: int) -> Causes:
        """Why attempts of a producer to send failed in a second, at one server and in one way.

        Args:
            producer: who sent.
            server: its node or its address.
            second: in which they failed.
            code: of the requests.
            status: response code; -1: they were not answered.
        """
        node = self._inputs.facts.node_of(server)
        end_ns = (second + 1) * NS_PER_S
        if status < 0:
            found = self.calls.unanswered(producer, node, max(0, second - 3) * NS_PER_S, end_ns, code)
        else:
            found = self.calls.refused(producer, node, status, code, second * NS_PER_S, end_ns)
        return of_chains(((found, 1),))

    def of_storm(self, client: str, server: str, span: Span) -> Causes:
        """Why a client asked a server again and again."""
        return of_chains((self.calls.storm(client, server, t_ns), weight) for t_ns, weight in samples(span))

    def of_unwritable(self, topic: str, span: Span) -> Causes:
        """Why no nameserver listed a queue of a topic that takes messages."""
        names = self.routes.broker_names(topic)
        return of_chains((self.routes.unwritable(topic, names, t_ns), weight) for t_ns, weight in samples(span))

    def of_stale_route(self, node: str, topic: str, span: Span) -> Causes:
        """Why a client used a route that no nameserver gave any more."""
        return of_chains((self._stale_route(node, topic, span[0], t_ns), weight) for t_ns, weight in samples(span))

    def _stale_route(self, node: str, topic: str, start_ns: int, t_ns: int) -> CauseChain:
        found = self.routes.stale(node, topic, start_ns, t_ns)
        if found:
            return found
        names = self.routes.broker_names(topic)
        return both(self.masters.replaced(name, start_ns, self.elected.at(name, start_ns)) for name in names) or found

    def of_unreached(self, client: str, servers: Sequence[str], span: Span) -> Causes:
        """Why a client reached none of some servers, which are nodes or addresses."""
        nodes = [self._inputs.facts.node_of(item) for item in servers]
        return of_chains((self.calls.of_any(client, nodes, t_ns), weight) for t_ns, weight in samples(span))

    def of_failed_start(self, node: str, span: Span) -> Causes:
        """Why a node could not start: it reached no nameserver, or no broker or proxy; and why it had to start."""
        if self._inputs.unreachable.holds(node, span[0]):
            return of_chains(((ruled(RuleOfRocketMQ.UNREACHABLE), 1),))
        shares = Shares()
        for t_ns, weight in samples(span):
            began = self.origins.began(node, t_ns)
            started = by(began.origin if began is not None else None)
            for role in (NAMESERVER, PROXY, BROKER):
                servers = [name for name in self.origins.of_role(role) if name != node]
                unreached = self.calls.of_none(node, servers, t_ns)
                if unreached:
                    break
            shares.add(started.also(unreached), weight)
        return shares.causes()

    def of_notifications(self, notifications: Mapping[tuple[str, int], int]) -> Causes:
        """Why brokers notified members: the changes of their lists just before.

        Args:
            notifications: mapping broker or proxy, second -> how many members it notified.
        """
        changes: dict[tuple[str, int], CauseChain] = {}
        for group in self._inputs.presence.groups:
            for server in self.views.servers(group):
                for t_ns in self.views.list_changes(server, group):
                    key = server, t_ns // NS_PER_S
                    changes[key] = changes.get(key, CauseChain()).also(self.members.changed(server, group, t_ns))
        shares = Shares()
        for (server, second), notified in sorted(notifications.items()):
            # A notification arrives in the second of the change, or, later in it or over a slow link, in the next one.
            known = (changes[key] for key in ((server, second), (server, second - 1)) if key in changes)
            shares.add(next(known, CauseChain()), notified)
        return shares.causes()

    def of_busy(self, node: str, span: Span) -> Causes:
        """Why threads of a node were busy: what makes it slow, or what made its clients ask at once."""
        shares, before = Shares(), CauseChain()
        for t_ns, weight in samples(span):
            # What has piled up is worked off when the node is fast again.
            before = self.calls.slow(node, t_ns) or before
            shares.add(before, weight)
        return shares.causes()

    def _nodes(self, processes: Iterable[Process]) -> list[str]:
        return list(dict.fromkeys(node for node, _ in processes))
