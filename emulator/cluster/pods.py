"""The machines of the pods of StatefulSets: each pod has one, with an address and a disk that survive its processes."""

from collections.abc import Callable, Mapping

from emulator.machine.host import EmulatedHost
from emulator.machine.power import PowerState
from nodes.allocation.ordinal import ordinal_of

_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)


class Pods:
    """Starts and ends pods by name; implements `nodes.statefulset.kubernetes.ContainerRuntime`.

    Args:
        hosts: of the cluster, by name.
        add: makes the machine of a pod that scaling has added.
        stays_down: whether a fault keeps a node down.
    """

    def __init__(
        self,
        hosts: Mapping[str, EmulatedHost],
        add: Callable[[str], EmulatedHost],
        stays_down: Callable[[str], bool],
    ) -> None:
        self._hosts = hosts
        self._add = add
        self._is_kept_down = stays_down
        self.existing: dict[str, None] = {}
        """Pods that were started and not removed, in the order of their creation."""
        self._revisions: dict[str, int] = {}
        self._asked_to_end: dict[str, int] = {}
        """Pod -> incarnation that was sent a SIGTERM."""

    def of(self, statefulset: str) -> tuple[str, ...]:
        """The pods of a StatefulSet, by ordinal."""
        pods = (name for name in self.existing if name.rpartition("-")[0] == statefulset)
        return tuple(sorted(pods, key=ordinal_of))

    def running(self) -> tuple[str, ...]:
        """Pods whose process lives, suspended ones included."""
        return tuple(name for name in self.existing if self._hosts[name].power_state in _LIVES)

    def address(self, pod: str) -> str:
        """IP address of a pod that was started."""
        return self._hosts[pod].ip

    def revision(self, pod: str) -> int:
        """The revision of the template from which a pod was started last."""
        return self._revisions.get(pod, 1)

    def start(self, pod: str, revision: int) -> bool:
        """Start the process of a pod; False while a fault keeps its machine down."""
        host = self._hosts.get(pod) or self._add(pod)
        self._revisions[pod] = revision
        self.existing[pod] = None
        if host.power_state in _LIVES:
            return True
        if self._is_kept_down(pod):
            return False
        host.start()
        return True

    def terminate(self, pod: str) -> None:
        """SIGTERM; a suspended process receives it when it runs again."""
        host = self._hosts[pod]
        process = host.process
        if process is not None and process.alive and self._asked_to_end.get(pod) != process.incarnation:
            self._asked_to_end[pod] = process.incarnation
            host.world.nursery.start_soon(host.terminate)

    def kill(self, pod: str) -> None:
        """SIGKILL."""
        host = self._hosts[pod]
        if host.power_state in _LIVES:
            host.world.nursery.start_soon(_kill, host)

    def remove(self, pod: str) -> None:
        """The pod does not exist any more."""
        self.existing.pop(pod, None)


async def _kill(host: EmulatedHost) -> None:
    if host.power_state in _LIVES:
        await host.kill()
