"""Why calls fail: sends, dials, storms of requests, starts that find no server."""

from collections.abc import Iterable, Mapping, Sequence

from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, both, by, ruled
from emulator.analysis.attribution.masters import Masters
from emulator.analysis.attribution.reach import Reach, at, needed
from emulator.analysis.inputs.bounds import Bounds
from emulator.history.origins import FaultLife, Hindrance, Origins, TracedDisturbance, may_refuse
from emulator.history.unreachable import UnreachableAddresses
from emulator.spec.model.scenario import BROKER, NAMESERVER, PROXY
from faults.machine import SlowDisk
from faults.permission import PermissionFault
from faults.process import SlowCpu
from faults.refuse import Refuse
from nodes.protocol.codes import ResponseCode
from nodes.protocol.exchange import Movement
from nodes.protocol.registry import codes_where
from nodes.units import NS_PER_S

_CALL_NS = 5 * NS_PER_S
"""A call that fails has failed within this time."""
_SLOW = (SlowDisk, SlowCpu)
_SENDS = codes_where(lambda exchange: exchange.movement is Movement.SEND)
_OF_REPLICAS = (ResponseCode.SLAVE_NOT_AVAILABLE, ResponseCode.FLUSH_SLAVE_TIMEOUT)
_OF_PERMISSIONS = (ResponseCode.NO_PERMISSION, ResponseCode.TOPIC_NOT_EXIST)


class Calls:
    """Answers why calls fail.

    Args:
        origins, unreachable: have read all rows.
        reach, masters: of the run.
        replicas: mapping node of a broker -> all nodes of its group.
        broker_names: mapping node of a broker -> brokerName.
        bounds: of the run.
    """

    def __init__(
        self,
        origins: Origins,
        unreachable: UnreachableAddresses,
        reach: Reach,
        masters: Masters,
        replicas: Mapping[str, Sequence[str]],
        broker_names: Mapping[str, str],
        bounds: Bounds,
    ) -> None:
        self._origins = origins
        self._unreachable = unreachable
        self._reach = reach
        self._masters = masters
        self._replicas = replicas
        self._broker_names = broker_names
        self._waits_for_replicas = bounds.replica_wait_ms > 0

    def unanswered(self, client: str, server: str, since_ns: int, t_ns: int, code: int | None = None) -> CauseChain:
        """Why a call was not answered in time.

        Args:
            client: who asked.
            server: who was asked.
            since_ns: when it was sent, at the earliest.
            t_ns: when it was given up.
            code: of the request.
        """
        if self._unreachable.holds(client, t_ns, server):
            return ruled(RuleOfRocketMQ.UNREACHABLE)
        found = self._reach.hindrances(client, server, since_ns, t_ns + 1, code)
        slow = both(by(life.origin) for life in self._slow(server, since_ns, t_ns))
        return needed(found) or slow or self._without_replicas(server, since_ns, t_ns, code)

    def _without_replicas(self, server: str, since_ns: int, t_ns: int, code: int | None) -> CauseChain:
        """Why a SYNC_MASTER has too few slaves that could have a message in time: they are away, or there are none."""
        if code not in _SENDS or not self._waits_for_replicas or server not in self._broker_names:
            return CauseChain()
        return needed(self._of_replicas(server, since_ns, t_ns)) or ruled(RuleOfRocketMQ.REPLICAS)

    def _of_replicas(self, server: str, since_ns: int, t_ns: int) -> list[Hindrance]:
        """What keeps the other brokers of a group from one of them."""
        others = [node for node in self._replicas.get(server, ()) if node != server]
        return [item for node in others for item in self._reach.hindrances(node, server, since_ns, t_ns + 1)]

    def refused(self, client: str, server: str, status: int, code: int, since_ns: int, t_ns: int) -> CauseChain:
        """Why a call was refused."""
        for life in self._origins.overlapping(since_ns, t_ns):
            is_it = life.parameters.get("code") == code and life.parameters.get("response") == status
            if life.fault is Refuse and is_it and life.hits_link(client, server):
                return by(life.origin)
        if status in _OF_PERMISSIONS:
            return both(self._permissions(server, t_ns)) or ruled(RuleOfRocketMQ.REFUSED)
        if status in _OF_REPLICAS:
            hindrances = self._of_replicas(server, since_ns, t_ns)
            if hindrances:
                return needed(hindrances)
        slow = both(by(life.origin) for life in self._slow(server, since_ns, t_ns))
        found = slow or self._behind_proxy(server, since_ns, t_ns) or self._not_master(server, t_ns)
        return found or ruled(RuleOfRocketMQ.REFUSED)

    def _not_master(self, server: str, t_ns: int) -> CauseChain:
        """Why a broker does not serve as master, or has begun to do so a moment ago."""
        broker_name = self._broker_names.get(server)
        if broker_name is None:
            return CauseChain()
        replaced = self._masters.replaced(broker_name, t_ns, server)
        return replaced or self._masters.restarted(broker_name, t_ns)

    def _behind_proxy(self, server: str, since_ns: int, t_ns: int) -> CauseChain:
        """Why a proxy refuses calls: it ends or begins, or it does not reach the brokers that it calls for them."""
        if self._origins.roles.get(server) != PROXY:
            return CauseChain()
        away = needed(self._origins.absences(server, since_ns, t_ns + 1))
        return away or self.of_any(server, self._origins.of_role(BROKER), t_ns)

    def _permissions(self, server: str, t_ns: int) -> Iterable[CauseChain]:
        for life in self._origins.overlapping(t_ns, t_ns):
            if life.fault is PermissionFault and life.hits_node(server):
                yield by(life.origin)
        yield by(*self._origins.acts_until(t_ns, may_refuse)[-1:])

    def _last_act(self, t_ns: int) -> list[TracedDisturbance]:
        """The last act that sent any request."""
        return self._origins.acts_until(t_ns, lambda _: True)[-1:]

    def _slow(self, server: str, since_ns: int, t_ns: int) -> Iterable[FaultLife]:
        """Faults by which a server, or a replica for which it waits, is slow."""
        nodes = self._replicas.get(server, (server,))
        for life in self._origins.overlapping(since_ns, t_ns):
            if life.fault in _SLOW and life.hits_any(nodes):
                yield life

    def of_none(self, client: str, servers: Sequence[str], t_ns: int) -> CauseChain:
        """Why a client reaches none of some servers at an instant: what hits each is needed."""
        found = [needed(self._between(client, server, t_ns)) for server in servers]
        return both(found) if all(found) else CauseChain()

    def of_any(self, client: str, servers: Sequence[str], t_ns: int) -> CauseChain:
        """What keeps a client from those of some servers that it does not reach at an instant."""
        if any(self._unreachable.holds(client, t_ns, server) for server in servers):
            return ruled(RuleOfRocketMQ.UNREACHABLE)
        return both(needed(self._between(client, server, t_ns)) for server in servers)

    def _between(self, client: str, server: str, t_ns: int) -> list[Hindrance]:
        """What is wrong with the link to a server, or with the server, at an instant."""
        since_ns = max(0, t_ns - _CALL_NS)
        away = self._origins.absences(server, t_ns, t_ns + 1)
        return at([*away, *self._reach.on_link(client, server, since_ns, t_ns + 1)], t_ns)

    def slow(self, node: str, t_ns: int) -> CauseChain:
        """Why threads of a node are busy at an instant: it is slow, or they wait for servers that it does not reach."""
        found = both(by(life.origin) for life in self._slow(node, t_ns, t_ns))
        servers = [name for name in self._origins.of_role(NAMESERVER) if name != node]
        return found or needed([item for server in servers for item in self._between(node, server, t_ns)])

    def storm(self, client: str, server: str, t_ns: int) -> CauseChain:
        """Why a client asks a server again and again at an instant: it, or another of its group, is away or cut off."""
        nodes = self._replicas.get(server, (server,))
        since_ns = max(0, t_ns - _CALL_NS)
        found = [item for node in nodes for item in self._reach.hindrances(client, node, since_ns, t_ns + 1)]
        if found:
            return needed(found)
        return by(*self._last_act(t_ns)) or self._not_master(server, t_ns)
