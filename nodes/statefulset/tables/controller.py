"""Which pod of a StatefulSet is created or deleted next: OrderedReady, the default of Kubernetes.

Mirrors:
    `k8s.io/kubernetes/pkg/controller/statefulset/stateful_set_control.go`, with `podManagementPolicy: OrderedReady`.
"""

from collections.abc import Mapping

from nodes.statefulset.tables.pod import Pod
from nodes.values import frozen


@frozen
class CreatePod:
    """A pod with this ordinal has to be created."""

    ordinal: int


@frozen
class DeletePod:
    """The pod with this ordinal has to be deleted."""

    ordinal: int


def next_step(pods: Mapping[int, Pod], replicas: int) -> CreatePod | DeletePod | None:
    """The next step towards the desired number of replicas; None: there is nothing to do, or it waits for a pod.

    Pods are created in the order of their ordinals, each when the one before is ready. They are deleted one by one,
    the highest ordinal first, and only while all pods that remain are ready: one broken pod stops every scaling.

    Args:
        pods: ordinal -> pod that exists, terminating ones included.
        replicas: the desired number.
    """
    for ordinal in range(replicas):
        pod = pods.get(ordinal)
        if pod is None:
            return CreatePod(ordinal)
        if not pod.is_ready:
            return None
    condemned = sorted(ordinal for ordinal in pods if ordinal >= replicas)
    if not condemned or pods[condemned[-1]].is_deleted:
        return None
    unhealthy = [ordinal for ordinal in condemned if not pods[ordinal].is_ready]
    # The condemned pod with the lowest ordinal of those that are not ready may go before its successors.
    if unhealthy and condemned[-1] in unhealthy and condemned[-1] != unhealthy[0]:
        return None
    return DeletePod(condemned[-1])
