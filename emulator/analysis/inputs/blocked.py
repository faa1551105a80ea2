"""Faults that last: when they keep nodes from their servers, so that what these nodes hold has no impact.

A queue makes progress if one member reaches its broker, so a fault explains that nothing moves for as long as it lasts
only if it stops every member: a single consumer, each consumer of a group that broadcasts, or all of a group at once. A
fault that only refuses or loses pulls leaves an owner its queue, so there it is enough that it stops the owner.
Members pull from the master of a broker group as long as routes name it, also those that reach only its slave.
An owner that does not reach the broker of its queue consumes nothing of it, and a node that reaches no server cannot
hear that others agreed on another value.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from emulator.analysis.inputs.administrators import Administrators
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.queue_owners import Overlap, QueueOwners
from emulator.history.origins import FaultLife, Origins
from emulator.history.presence import Presence
from emulator.history.proxy_routes import ProxyRoutes
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import Process, Span
from emulator.spec.model.scenario import BROKER, NAMESERVER
from faults.disturbance import Frame
from nodes.protocol.codes import RequestCode

_CONSUMING = (RequestCode.PULL_MESSAGE, RequestCode.POP_MESSAGE)
_SERVERS = {NAMESERVER: (BROKER,), BROKER: (NAMESERVER,)}
"""Mapping role -> roles of the servers of which one has to be reached; of clients, brokers."""


class Blocked:
    """Answers when nodes could not act.

    Args:
        facts: of the run.
        presence, origins, administrators, owners, proxy_routes: have read all rows.
    """

    def __init__(
        self,
        facts: RunFacts,
        presence: Presence,
        origins: Origins,
        administrators: Administrators,
        owners: QueueOwners,
        proxy_routes: ProxyRoutes,
    ) -> None:
        self._presence = presence
        self._origins = origins
        self._administrators = administrators
        self._owners = owners
        self._proxy_routes = proxy_routes
        self._elected = facts.elected
        self._nodes: dict[str, list[str]] = {}
        """Mapping brokerName -> its nodes."""
        for node, broker_name in facts.broker_names.items():
            self._nodes.setdefault(broker_name, []).append(node)

    # --- questions ------------------------------------------------------------------------

    def without_consumer(self, queue: GroupQueue, node: str, start_ns: int, end_ns: int) -> Sequence[Span]:
        """When no member could consume a queue, between two instants.

        Args:
            queue: the queue.
            node: the consumer, in a group that broadcasts; else empty.
            start_ns: from when on.
            end_ns: until when.
        """
        processes = [*self._presence.ever_members(queue.group, queue.topic), *self._masters_of(queue.broker_name)]
        switched = self._administrators.instants(queue.group, queue.broker_name)
        rerouted = self._presence.rerouted_ns(queue.topic)

        def no_member_can(t_ns: int) -> bool:
            if self._administrators.is_off(queue.group, queue.broker_name, t_ns):
                return True
            if self._presence.is_beyond_read_queues(queue, t_ns):
                return True
            there = self._presence.members(queue.group, queue.topic, t_ns)
            able = [process for process in there if node in ("", process[0])]
            consuming = [item for item in able if self._consumes(item, queue, t_ns)]
            if not consuming or len(consuming) == len(able):
                return bool(able) and not consuming
            holding = [item for item in self._owners.at(queue, t_ns) if self.reaches(item, queue.broker_name, t_ns)]
            return bool(holding) and not any(item in consuming for item in holding)

        return self._spans(start_ns, end_ns, processes, no_member_can, (*switched, *rerouted))

    def with_one_owner(self, row: Overlap) -> Sequence[Span]:
        """When at most one owner of a queue could consume it."""
        owners = [(node, number) for node in row.owners for number in self._presence.processes.incarnations(node)]

        def one_can(t_ns: int) -> bool:
            reaching = [owner[0] for owner in owners if self.reaches(owner, row.queue.broker_name, t_ns)]
            return len(dict.fromkeys(reaching)) <= 1

        return self._spans(row.start_ns, row.end_ns, owners, one_can) if self._origins.faults else ()

    def in_agreement(self, row: Divergence) -> Sequence[Span]:
        """When the nodes that reached a server held one value, of those in the longest constellation."""

        def agree(t_ns: int) -> bool:
            values = [
                holder.value_hash
                for holder in row.holders
                if any(self.is_connected(node, t_ns) for node in holder.nodes)
            ]
            return len(values) <= 1

        return self._spans(row.start_ns, row.end_ns, (), agree) if self._origins.faults else ()

    def without(self, nodes: Sequence[str], start_ns: int, end_ns: int) -> Sequence[Span]:
        """When any of some nodes reached no server, between two instants."""

        def lacks_one(t_ns: int) -> bool:
            return not all(self.is_connected(node, t_ns) for node in nodes)

        return self._spans(start_ns, end_ns, (), lacks_one)

    def nodes_of(self, broker_name: str) -> Sequence[str]:
        """The brokers of a broker group."""
        return self._nodes.get(broker_name, [broker_name])

    def is_connected(self, node: str, t_ns: int) -> bool:
        """Whether a node reached any of its servers, after all rows of an instant."""
        roles = self._origins.roles
        wanted = _SERVERS.get(roles.get(node, ""), (BROKER,))
        servers = [name for name, role in roles.items() if role in wanted and name != node]
        active = self._active(t_ns)
        return not active or not servers or any(not _prevents(active, Frame(node, server)) for server in servers)

    def reaches(
        self,
        process: Process,
        broker_name: str,
        t_ns: int,
        code: int | None = None,
        group: str | None = None,
        topic: str | None = None,
    ) -> bool:
        """Whether a process that lives ran, and its requests reached a broker of a group."""
        processes, active = self._presence.processes, self._active(t_ns)
        if not processes.is_awake(process, t_ns) or not processes.has_begun(process, t_ns):
            return False
        servers = self.nodes_of(broker_name)
        proxies = self._proxy_routes.proxies_of(process[0], t_ns)
        if proxies:
            return any(self._leads(proxy, process[0], servers, t_ns) for proxy in proxies)
        requests = (Frame(process[0], server, code, group, topic) for server in servers)
        return not active or any(not _prevents(active, request) for request in requests)

    def _leads(self, proxy: str, client: str, servers: Sequence[str], t_ns: int) -> bool:
        """Whether a client reached a proxy that ran and reached a broker."""
        processes, active = self._presence.processes, self._active(t_ns)
        ran = any(
            processes.has_begun((proxy, number), t_ns) and processes.is_awake((proxy, number), t_ns)
            for number in processes.incarnations(proxy)
        )
        if not ran or _prevents(active, Frame(client, proxy, RequestCode.V2_RECEIVE_MESSAGE)):
            return False
        return any(not _prevents(active, Frame(proxy, server, RequestCode.POP_MESSAGE)) for server in servers)

    # --- instants -------------------------------------------------------------------------

    def _spans(
        self,
        start_ns: int,
        end_ns: int,
        processes: Iterable[Process],
        holds: Callable[[int], bool],
        more_ns: Sequence[int] = (),
    ) -> Sequence[Span]:
        """When something holds that may change with faults, with these processes, and at further instants."""
        instants = [start_ns, end_ns, *more_ns]
        for fault in self._origins.faults.values():
            instants += [fault.row.t_ns, min(end_ns, fault.end_ns)]
        instants += [t_ns for process in processes for t_ns in self._presence.processes.changes_ns(process)]
        inside = sorted(dict.fromkeys(t_ns for t_ns in instants if start_ns <= t_ns <= end_ns))
        return [(low, high) for low, high in pairwise(inside) if holds(low)]

    def _consumes(self, process: Process, queue: GroupQueue, t_ns: int) -> bool:
        """Whether a process could pull and pop from the broker of a queue: from its master while that runs."""
        of_queue = queue.group, queue.topic
        if not all(self.reaches(process, queue.broker_name, t_ns, code, *of_queue) for code in _CONSUMING):
            return False
        active = self._active(t_ns)
        if (
            self._proxy_routes.proxies_of(process[0], t_ns)
            or not active
            or not self._has_master(queue.broker_name, t_ns)
        ):
            return True
        requests = (Frame(process[0], queue.broker_name, code, *of_queue) for code in _CONSUMING)
        return not any(_prevents(active, request) for request in requests)

    def _masters_of(self, broker_name: str) -> Sequence[Process]:
        """The processes of the master, which has the name of its group; none where controllers elect masters."""
        numbers = () if self._elected else self._presence.processes.incarnations(broker_name)
        return [(broker_name, number) for number in numbers]

    def _has_master(self, broker_name: str, t_ns: int) -> bool:
        processes = self._presence.processes
        masters = self._masters_of(broker_name)
        return any(processes.has_begun(master, t_ns) and processes.is_awake(master, t_ns) for master in masters)

    def _active(self, t_ns: int) -> list[FaultLife]:
        return [fault for fault in self._origins.faults.values() if fault.lasts_at(t_ns)]


def _prevents(active: Iterable[FaultLife], request: Frame) -> bool:
    return any(fault.prevents(request) for fault in active)
