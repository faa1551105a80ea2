"""The interface between the kubelet and the machines of the pods; the emulator implements it."""

from typing import Protocol


class ContainerRuntime(Protocol):
    """Starts and ends the processes of pods, by name; no call waits."""

    def running(self) -> tuple[str, ...]:
        """Pods whose process lives, suspended ones included."""

    def address(self, pod: str) -> str:
        """IP address of a pod that was started."""

    def revision(self, pod: str) -> int:
        """The revision of the template from which a pod was started last."""

    def start(self, pod: str, revision: int) -> bool:
        """Start the process of a pod on its machine; returns whether there is a machine that can run it now."""

    def terminate(self, pod: str) -> None:
        """SIGTERM; a suspended process receives it when it runs again."""

    def kill(self, pod: str) -> None:
        """SIGKILL."""

    def remove(self, pod: str) -> None:
        """The pod does not exist any more; its process has ended."""
