"""Which pod of a StatefulSet is created, deleted or updated next.

Mirrors:
    `k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_control.go`.
"""

from collections.abc import Mapping

import attrs

from nodes.config.statefulset import PodManagementPolicy, StatefulSetConfig, UpdateStrategy
from nodes.statefulset.tables.pod import Pod
from nodes.values import frozen


@frozen
class CreatePod:
    """A pod with this ordinal has to be created, from this revision of the template."""

    ordinal: int
    revision: int = 1


@frozen
class DeletePod:
    """The pod with this ordinal has to be deleted."""

    ordinal: int


@frozen
class Revisions:
    """The revisions of a StatefulSet's template."""

    current: int = 1
    """Of the last update that was completed."""
    update: int = 1
    """Of the present template."""
    newest: int = 1
    previous: int = 1
    """Of the template before the present one."""

    def rolled(self, *, undo: bool) -> "Revisions":
        """With another template, as `kubectl rollout restart` and `kubectl rollout undo` make it."""
        if undo:
            return attrs.evolve(self, update=self.previous, previous=self.update)
        number = self.newest + 1
        return attrs.evolve(self, update=number, newest=number, previous=self.update)


@frozen
class Wanted:
    """What a StatefulSet is to be."""

    replicas: int
    config: StatefulSetConfig = StatefulSetConfig()
    revisions: Revisions = Revisions()

    @property
    def waits(self) -> bool:
        """Whether each pod waits until the one before is ready, or gone (OrderedReady)."""
        return self.config.pod_management_policy is PodManagementPolicy.ORDERED_READY

    def revision_of(self, ordinal: int) -> int:
        """The revision from which a pod is created."""
        rolls = self.config.update_strategy is UpdateStrategy.ROLLING_UPDATE
        return self.revisions.current if rolls and ordinal < self.config.partition else self.revisions.update


def next_step(pods: Mapping[int, Pod], wanted: Wanted) -> CreatePod | DeletePod | None:
    """The next step; None: there is nothing to do, or it waits for a pod.

    With OrderedReady pods are created in the order of their ordinals, each when the one before is ready, and deleted
    one by one, the highest ordinal first, while all pods that remain are ready: one broken pod stops every scaling and
    every update, also the one that would mend it. With Parallel pods are created and deleted without waiting; updates
    still go from the highest ordinal down, one pod after the other.

    Args:
        pods: ordinal -> pod that exists, terminating ones included.
    """
    for ordinal in range(wanted.replicas):
        pod = pods.get(ordinal)
        if pod is None:
            return CreatePod(ordinal, wanted.revision_of(ordinal))
        if not pod.is_ready and wanted.waits:
            return None
    condemned = [ordinal for ordinal in sorted(pods, reverse=True) if ordinal >= wanted.replicas]
    if condemned:
        return _next_deletion(pods, condemned, wanted)
    return _next_update(pods, wanted)


def _next_deletion(pods: Mapping[int, Pod], condemned: list[int], wanted: Wanted) -> DeletePod | None:
    if not wanted.waits:
        return next((DeletePod(ordinal) for ordinal in condemned if not pods[ordinal].is_deleted), None)
    highest = condemned[0]
    if pods[highest].is_deleted:
        return None
    unhealthy = [ordinal for ordinal in condemned if not pods[ordinal].is_ready]
    # The condemned pod with the lowest ordinal of those that are not ready may go before its successors.
    if highest in unhealthy and highest != unhealthy[-1]:
        return None
    return DeletePod(highest)


def _next_update(pods: Mapping[int, Pod], wanted: Wanted) -> DeletePod | None:
    """Delete the pod with the highest ordinal that is of another revision; those above it must be ready."""
    if wanted.config.update_strategy is UpdateStrategy.ON_DELETE:
        return None
    for ordinal in range(wanted.replicas - 1, wanted.config.partition - 1, -1):
        pod = pods[ordinal]
        if pod.revision != wanted.revisions.update and not pod.is_deleted:
            return DeletePod(ordinal)
        if not pod.is_ready:
            return None
    return None


def is_updated(pods: Mapping[int, Pod], wanted: Wanted) -> bool:
    """Whether a rolling update is complete: all pods are ready, and of the present template's revision."""
    if wanted.config.update_strategy is UpdateStrategy.ON_DELETE:
        return False
    whole = range(wanted.replicas)
    return all(
        ordinal in pods and pods[ordinal].is_ready and pods[ordinal].revision == wanted.revisions.update
        for ordinal in whole
    )
