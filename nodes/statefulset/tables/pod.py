"""One pod, as the kubelet sees it: starts with back-off, probes, termination with a grace period."""

from enum import StrEnum

import attrs

from nodes.config import StatefulSetConfig
from nodes.units import MS_PER_S

_BACK_OFF_FIRST_MS = 10_000
_BACK_OFF_MAX_MS = 300_000
_BACK_OFF_FORGOTTEN_MS = 600_000
"""A container that ran for this long is restarted at once."""


class PodPhase(StrEnum):
    """The state of a pod, as `kubectl get pods` shows it."""

    PENDING = "pending"
    """No process runs: it was not started yet, or it ended and will be started again."""
    RUNNING = "running"
    """A process runs, and the pod is not ready."""
    READY = "ready"
    TERMINATING = "terminating"
    """The pod was deleted, and its process may still run."""


class ProbeKind(StrEnum):
    """What a probe decides."""

    LIVENESS = "liveness"
    READINESS = "readiness"


class PodAction(StrEnum):
    """What the kubelet has the container runtime do."""

    START = "start"
    TERMINATE = "terminate"
    """SIGTERM."""
    KILL = "kill"
    """SIGKILL."""
    REMOVE = "remove"
    """The process of a deleted pod has ended: its name is free."""


@attrs.define(eq=False)
class Pod:
    """A pod from its creation until it is removed; its process may be started again and again."""

    name: str
    config: StatefulSetConfig
    revision: int = 1
    """Of the template from which it was created."""
    is_up: bool = False
    """Whether its process runs."""
    is_ready: bool = False
    is_deleted: bool = False
    starts: int = 0
    """Processes so far."""
    _failures: dict[ProbeKind, int] = attrs.Factory(dict)
    _started_ms: int = 0
    _start_at_ms: int = 0
    _back_off_ms: int = 0
    _terminated_ms: int | None = None
    """When SIGTERM was sent; None: it was not."""
    _must_end: bool = False

    @property
    def phase(self) -> PodPhase:
        """The state of the pod."""
        if self.is_deleted:
            return PodPhase.TERMINATING
        if not self.is_up:
            return PodPhase.PENDING
        return PodPhase.READY if self.is_ready else PodPhase.RUNNING

    def delete(self) -> None:
        """Terminate the pod for good."""
        self.is_deleted = self._must_end = True
        self.is_ready = False

    def started(self, now_ms: int) -> None:
        """A process of the pod was started; it is not ready before a probe succeeds."""
        self.is_up, self.is_ready, self._must_end = True, False, self.is_deleted
        self.starts += 1
        self._terminated_ms = None
        self._started_ms = now_ms
        self._failures.clear()

    def ended(self, now_ms: int) -> None:
        """The process of the pod has ended: it is started again at once, the next times after longer and longer."""
        self.is_up = self.is_ready = False
        if now_ms - self._started_ms >= _BACK_OFF_FORGOTTEN_MS:
            self._back_off_ms = 0
        self._start_at_ms = now_ms + self._back_off_ms
        self._back_off_ms = min(_BACK_OFF_MAX_MS, 2 * self._back_off_ms or _BACK_OFF_FIRST_MS)

    def probed(self, kind: ProbeKind, *, succeeded: bool) -> None:
        """A probe was answered, or was not."""
        if not self.is_up or self._must_end:
            return
        failures = self._failures[kind] = 0 if succeeded else self._failures.get(kind, 0) + 1
        if kind is ProbeKind.READINESS:
            if succeeded:
                self.is_ready = True
            elif failures >= self.config.readiness_probe_failure_threshold:
                self.is_ready = False
        elif failures >= self.config.liveness_probe_failure_threshold:
            self._must_end, self.is_ready = True, False

    def next_action(self, now_ms: int) -> PodAction | None:
        """What has to happen to the pod now; the caller asks again after each action, until there is none."""
        if not self.is_up:
            if self.is_deleted:
                return PodAction.REMOVE
            return PodAction.START if now_ms >= self._start_at_ms else None
        if not self._must_end:
            return None
        if self._terminated_ms is None:
            self._terminated_ms = now_ms
            return PodAction.TERMINATE
        is_over = now_ms - self._terminated_ms >= self.config.termination_grace_period_seconds * MS_PER_S
        return PodAction.KILL if is_over else None
