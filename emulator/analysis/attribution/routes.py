"""Why nameservers list the queues of a broker group as they do, and why clients hold other routes than they give.

A nameserver lists a broker as long as it registers, and as it registers its topics; a client polls its nameserver.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, both, by, ruled
from emulator.analysis.attribution.reach import Reach, at, needed
from emulator.analysis.inputs.administrators import changes_of
from emulator.analysis.inputs.bounds import NAMESERVER_SCAN_MS, Bounds
from emulator.history.group_views import GroupViews
from emulator.history.origins import FaultLife, Hindrance, Origins, TracedDisturbance
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import AdminRow
from emulator.spec.model.scenario import NAMESERVER
from faults.permission import PermissionFault
from nodes.protocol.admin_request import Changed
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_MS, NS_PER_S

_POLL_S = 31
"""A client polls its routes so often, and a call takes a moment."""
_REGISTERED_S = 35
"""A broker that runs and reaches a nameserver has registered within this time."""
_CLOSED_S = 10
"""A nameserver removes a broker so soon after its connection was closed."""
_MASTER_ID = "0"
_ON_ROUTES = (Changed.TOPIC, Changed.QUEUES, Changed.PERMISSION, Changed.CONFIG, Changed.MEMBERSHIP, Changed.MASTER)


class Routes:
    """Answers why routes are as they are.

    Args:
        origins, views: have read all rows.
        reach: of the run.
        bounds: of the run.
        broker_names: mapping node of a broker -> brokerName.
        node_of: the node of an address.
    """

    def __init__(
        self,
        origins: Origins,
        views: GroupViews,
        reach: Reach,
        bounds: Bounds,
        broker_names: Mapping[str, str],
        node_of: Callable[[str], str],
    ) -> None:
        self._node_of = node_of
        self._origins = origins
        self._views = views
        self._reach = reach
        self._silent_ns = (bounds.broker_silent_ms + NAMESERVER_SCAN_MS) * NS_PER_MS
        self._changed: dict[tuple[str, str, int], CauseChain] = {}
        self._nodes: dict[str, list[str]] = {}
        for node, broker_name in broker_names.items():
            self._nodes.setdefault(broker_name, []).append(node)

    # --- the cluster ------------------------------------------------------------------

    def nodes_of(self, broker_name: str) -> Sequence[str]:
        """The brokers of a broker group."""
        return self._nodes.get(broker_name, [broker_name])

    @property
    def every_broker_name(self) -> Sequence[str]:
        """All broker groups."""
        return tuple(self._nodes)

    @property
    def nameservers(self) -> list[str]:
        """All nameservers that have started."""
        return self._origins.of_role(NAMESERVER)

    def broker_names(self, topic: str) -> Sequence[str]:
        """The broker groups that any nameserver has ever listed for a topic."""
        names: dict[str, None] = {}
        for nameserver in self.nameservers:
            for instant in self._views.route_changes(nameserver, topic):
                names |= dict.fromkeys(self._views.route(nameserver, topic, instant))
        return tuple(names)

    # --- what nameservers list --------------------------------------------------------

    def entry(self, topic: str, broker_name: str, t_ns: int) -> CauseChain:
        """Why nameservers do not list a broker group at an instant as they did, or do again: what hits it at each."""
        found = CauseChain()
        for nameserver in self.nameservers:
            found = found.also(self._entry_at(nameserver, topic, broker_name, t_ns))
        return found

    def _entry_at(self, nameserver: str, topic: str, broker_name: str, t_ns: int) -> CauseChain:
        asleep = at(self._origins.absences(nameserver, t_ns, t_ns + 1), t_ns)
        if asleep:
            return CauseChain()  # it gives no route
        changes = [item for item in self._views.route_changes(nameserver, topic) if item <= t_ns]
        found = CauseChain()
        for broker in self.nodes_of(broker_name):
            if not self._lists(nameserver, topic, broker_name, broker, t_ns):
                removed = [
                    instant
                    for instant in changes
                    if self._lists(nameserver, topic, broker_name, broker, instant - 1)
                    and not self._lists(nameserver, topic, broker_name, broker, instant)
                ]
                found = found.also(self._gone(nameserver, broker, removed[-1] if removed else 0, t_ns))
        return found.also(self._changed_by(topic, broker_name, t_ns))

    def lists(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether a nameserver lists a queue among the read queues of its topic at an instant."""
        routes = (self._views.route(nameserver, queue.topic, t_ns) for nameserver in self.nameservers)
        return any(
            queue.broker_name in route and route[queue.broker_name]["queues"][0] > queue.queue_id for route in routes
        )

    def _lists(self, nameserver: str, topic: str, broker_name: str, broker: str, t_ns: int) -> bool:
        """Whether the route that a nameserver gives has a broker."""
        entry = self._views.route(nameserver, topic, t_ns).get(broker_name)
        return entry is not None and any(self._node_of(address) == broker for address in entry["addrs"].values())

    def _gone(self, nameserver: str, broker: str, removed_ns: int, t_ns: int) -> CauseChain:
        """Why a nameserver has removed a broker, and why it is not back."""
        silent = self._reach.hindrances(broker, nameserver, max(0, removed_ns - self._silent_ns), removed_ns + 1)
        ended = [item for item in silent if item.end_ns > removed_ns - _CLOSED_S * NS_PER_S]
        later = self._reach.hindrances(broker, nameserver, removed_ns, t_ns + 1)
        still = [item for item in later if item.end_ns > t_ns - _REGISTERED_S * NS_PER_S]
        return needed(ended or silent).also(needed(still))

    def _changed_by(self, topic: str, broker_name: str, t_ns: int) -> CauseChain:
        """What gave the queues of a broker group another permission or number that it has at an instant."""
        for life in self.permissions(topic, broker_name, t_ns):
            return by(life.origin)
        return by(*self._origins.acts_until(t_ns, lambda row: self._is_about(row, topic, broker_name))[-1:])

    def permissions(self, topic: str, broker_name: str, t_ns: int) -> Iterator[FaultLife]:
        """The faults that give a broker group another permission for a topic at an instant."""
        for life in self._origins.overlapping(t_ns, t_ns):
            is_of_topic = life.parameters.get("topic") in (None, topic)
            if life.fault is PermissionFault and is_of_topic and life.hits_any(self.nodes_of(broker_name)):
                yield life

    @staticmethod
    def _is_about(row: AdminRow, topic: str, broker_name: str) -> bool:
        if not any(item in changes_of(row) for item in _ON_ROUTES):
            return False
        return row.topic == topic or (not row.topic and not row.group and row.broker_name in ("", broker_name))

    def unwritable(self, topic: str, broker_names: Sequence[str], t_ns: int) -> CauseChain:
        """Why no nameserver lists a queue that takes messages of a topic: what hits each broker group."""
        return both(self.entry(topic, broker_name, t_ns) for broker_name in broker_names)

    # --- what clients hold ------------------------------------------------------------

    def differing(self, topic: str, broker_name: str, has: str, lacks: str, t_ns: int) -> CauseChain:
        """Why one client counts queues of a broker group that another one does not."""
        behind = both(self.behind(node, t_ns) for node in (has, lacks))
        return self.changed(topic, broker_name, t_ns).also(behind) or ruled(RuleOfRocketMQ.POLL)

    def changed(self, topic: str, broker_name: str, t_ns: int) -> CauseChain:
        """Why the queues of a broker group are not at an instant as they were at the last change that clients saw."""
        key = topic, broker_name, t_ns
        if key not in self._changed:
            self._changed[key] = self._last_change(topic, broker_name, t_ns)
        return self._changed[key]

    def _last_change(self, topic: str, broker_name: str, t_ns: int) -> CauseChain:
        now = self.entry(topic, broker_name, t_ns)
        if now:
            return now
        instants = [
            instant
            for nameserver in self.nameservers
            for instant in self._views.route_changes(nameserver, topic)
            if instant <= t_ns and self._differs(nameserver, topic, broker_name, instant)
        ]
        # It is back: what had taken it away is why it came again.
        return self.entry(topic, broker_name, max(instants) - 1) if instants else CauseChain()

    def _differs(self, nameserver: str, topic: str, broker_name: str, instant: int) -> bool:
        before, after = (self._views.route(nameserver, topic, item) for item in (instant - 1, instant))
        return bool(before) and before.get(broker_name) != after.get(broker_name)

    def unknown(self, topic: str, broker_name: str, nodes: Iterable[str], t_ns: int) -> CauseChain:
        """Why no consumer knows a queue that nameservers list: it is new to them, or they have not polled."""
        return self.changed(topic, broker_name, t_ns).also(both(self.behind(node, t_ns) for node in nodes))

    def master_of(self, client: str, topic: str, broker_name: str, t_ns: int) -> str:
        """The node that a client takes for the master of a broker group at an instant; empty: its route has none."""
        entry = self._views.route(client, topic, t_ns).get(broker_name)
        address = "" if entry is None else entry["addrs"].get(_MASTER_ID, "")
        return self._node_of(address) if address else ""

    def behind(self, client: str, t_ns: int) -> CauseChain:
        """What kept a client from polling its routes in the time before an instant."""
        since_ns = max(0, t_ns - _POLL_S * NS_PER_S)
        away = self._origins.absences(client, since_ns, t_ns + 1)
        if away:
            return needed(away)
        code = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
        lost: list[Hindrance] = []
        for nameserver in self.nameservers:
            taken = self._reach.hindrances(client, nameserver, since_ns, t_ns + 1, code)
            if not taken:
                return CauseChain()  # it asks this one in place of another
            lost += taken
        return needed(lost)

    def stale(self, client: str, topic: str, start_ns: int, t_ns: int) -> CauseChain:
        """Why a client uses a route since some instant that no nameserver gives: what changed it, and its polls."""
        origins: list[TracedDisturbance] = []
        for nameserver in self.nameservers:
            before, after = (self._views.route(nameserver, topic, item) for item in (start_ns - 1, start_ns))
            for broker_name in dict.fromkeys((*before, *after)):
                if before.get(broker_name) != after.get(broker_name):
                    origins += self.changed(topic, broker_name, start_ns).origins()
        return by(*origins).also(self.behind(client, t_ns)) or ruled(RuleOfRocketMQ.POLL)
