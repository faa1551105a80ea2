"""Headers of the requests that RocketMQ does not have: those of the StatefulSet design.

The rules of `nodes.protocol.headers` hold.
"""

from enum import StrEnum

from nodes.protocol.widths import Int32
from nodes.values import frozen


class ProbePath(StrEnum):
    """The health endpoint of a pod that a probe asks."""

    LIVENESS = "/health/liveness"
    """Succeeds if the process answers."""
    READINESS = "/health/readiness"
    """Succeeds if the consumer has started."""


@frozen
class StatefulSetHeader:
    """Header of GET_SCALE (900001)."""

    statefulset: str


@frozen
class ScaleHeader:
    """The scale of a StatefulSet: an answer to GET_SCALE, and the header of REPLICAS_CHANGED (900004)."""

    spec_replicas: Int32
    """Desired pods."""
    status_replicas: Int32
    """Pods that exist, whatever their state; from a scaler, which does not know them, the desired ones."""


@frozen
class PutScaleRequestHeader:
    """Header of PUT_SCALE (900002)."""

    statefulset: str
    spec_replicas: Int32


@frozen
class RolloutRequestHeader:
    """Header of ROLLOUT (900005): the template of the pods has another revision."""

    statefulset: str
    undo: bool = False
    """Whether it is the one before; else a new one."""


@frozen
class CancelConsumerRequestHeader:
    """Header of CANCEL_CONSUMER (900011): the sender has finished with a queue."""

    consumer_group: str
    topic: str
    queue_id: Int32


@frozen
class ProbeRequestHeader:
    """Header of PROBE (900003)."""

    path: str
    """A `ProbePath`."""
