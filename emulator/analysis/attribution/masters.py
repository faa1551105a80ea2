"""Why another broker serves for a broker group: controllers elected it, or a replica acted for the master.

Controllers elect another master when they do not hear of the one that there is, or an administrator demands it; without
controllers, and after a restart, a group has what the process that serves now had on its disk and in its copies.
"""

from collections.abc import Iterator

from emulator.analysis.attribution.explanation import CauseChain, both, by
from emulator.analysis.attribution.reach import Reach, needed
from emulator.analysis.attribution.routes import Routes
from emulator.analysis.inputs.administrators import changes_of
from emulator.history.elected_masters import ElectedMasters, MasterSwitch
from emulator.history.origins import NEVER_NS, Hindrance, Origins
from emulator.spec.model.scenario import CONTROLLER, NAMESERVER
from nodes.protocol.admin_request import Changed
from nodes.units import NS_PER_S

_SILENT_NS = 15 * NS_PER_S
"""Controllers elect another master for one of which they have heard nothing for 10 s, and look every 5 s."""
_AFTER_NS = 90 * NS_PER_S
"""So long after a process of a group ended, or began again, its tables and clients may not be what they were."""


class Masters:
    """Answers why broker groups are served by others than before.

    Args:
        origins, elected: have read all rows.
        reach, routes: of the run.
    """

    def __init__(self, origins: Origins, elected: ElectedMasters, reach: Reach, routes: Routes) -> None:
        self._origins = origins
        self._elected = elected
        self._reach = reach
        self._routes = routes

    def replaced(self, broker_name: str, t_ns: int = NEVER_NS, server: str = "") -> CauseChain:
        """Why a broker group had got the master that it had at an instant.

        Args:
            broker_name: of the group.
            t_ns: the instant.
            server: only if this node is no longer the master, or has been it for a short time; empty: in any case.
        """
        switches = [item for item in self._elected.switches(broker_name) if item.t_ns <= t_ns]
        if not switches:
            return CauseChain()
        last = switches[-1]
        if server == last.master and last.t_ns + _AFTER_NS < t_ns:
            return CauseChain()
        return self._why(last)

    def ever_replaced(self, broker_name: str) -> CauseChain:
        """Why a broker group got other masters in a run."""
        return both(self._why(item) for item in self._elected.switches(broker_name))

    def restarted(self, broker_name: str, t_ns: int) -> CauseChain:
        """Why a process of a broker group was away shortly before an instant."""
        nodes = self._routes.nodes_of(broker_name)
        away = [item for node in nodes for item in self._origins.absences(node, max(0, t_ns - _AFTER_NS), t_ns + 1)]
        return by(*(item.origin for item in away))

    def _why(self, switch: MasterSwitch) -> CauseChain:
        since_ns = max(0, switch.t_ns - _SILENT_NS)
        acts = self._origins.acts_until(switch.t_ns, lambda row: Changed.MASTER in changes_of(row))
        demanded = [act for act in acts if act.t_ns >= since_ns]
        if demanded:
            return by(*demanded[-1:])
        away = self._origins.absences(switch.before, since_ns, switch.t_ns)
        return needed(away or list(self._unheard(switch, since_ns)))

    def _unheard(self, switch: MasterSwitch, since_ns: int) -> Iterator[Hindrance]:
        """What kept controllers from hearing of the master that there was."""
        for controller in self._origins.of_role(CONTROLLER) or self._origins.of_role(NAMESERVER):
            yield from self._reach.hindrances(switch.before, controller, since_ns, switch.t_ns)
