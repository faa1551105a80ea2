"""The options of a StatefulSet, under Kubernetes' names and with its defaults."""

from enum import StrEnum

import attrs

from nodes.config.options import DELAY_S, Config, count, name_options, seconds
from nodes.fields import choice
from nodes.protocol.headers_statefulset import ProbePath


class PodManagementPolicy(StrEnum):
    """How pods are created and deleted when the StatefulSet is scaled."""

    ORDERED_READY = "OrderedReady"
    """One after the other: each waits until the one before is ready, or gone."""
    PARALLEL = "Parallel"
    """All at the same time. Updates are not affected."""


class UpdateStrategy(StrEnum):
    """How pods come to another revision of their template."""

    ROLLING_UPDATE = "RollingUpdate"
    """From the highest ordinal down, one after the other."""
    ON_DELETE = "OnDelete"
    """When something else has deleted them."""


API_PORT = 6_443
"""Of the API server."""
POD_PORT = 80
"""Where pods answer probes."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class StatefulSetConfig(Config):
    """Options of a StatefulSet and of the probes of its pods.

    The manifest of the design swaps the two paths, and these defaults keep that: liveness asks whether the consumer is
    ready, so one that is slow to start is restarted, and readiness asks only whether the process answers.
    """

    pod_management_policy: PodManagementPolicy = choice(PodManagementPolicy, PodManagementPolicy.ORDERED_READY)
    """How pods are created and deleted when the StatefulSet is scaled."""
    update_strategy: UpdateStrategy = choice(UpdateStrategy, UpdateStrategy.ROLLING_UPDATE)
    """How pods come to another revision of their template: `rollout`."""
    partition: int = count(0, minimum=0)
    """RollingUpdate: pods with smaller ordinals keep their revision, also when they are created again."""
    termination_grace_period_seconds: int = seconds(30, minimum=0, usual=DELAY_S)
    """From SIGTERM to SIGKILL."""
    scaler_period_seconds: int = seconds(15)
    """Time between two questions of a scaler to the API server: that of Kubernetes' own autoscaler."""
    liveness_probe_path: ProbePath = choice(ProbePath, ProbePath.READINESS)
    """The endpoint that says whether a pod is alive."""
    liveness_probe_initial_delay_seconds: int = seconds(0, minimum=0, usual=DELAY_S)
    """From the start of a pod to its first probe."""
    liveness_probe_period_seconds: int = seconds(10)
    """Time between two probes."""
    liveness_probe_timeout_seconds: int = seconds(1)
    """How long a probe waits for the answer."""
    liveness_probe_failure_threshold: int = count(3, minimum=1)
    """Consecutive failures that restart the pod."""
    readiness_probe_path: ProbePath = choice(ProbePath, ProbePath.LIVENESS)
    """The endpoint that says whether a pod is ready."""
    readiness_probe_initial_delay_seconds: int = seconds(0, minimum=0, usual=DELAY_S)
    """From the start of a pod to its first probe."""
    readiness_probe_period_seconds: int = seconds(10)
    """Time between two probes."""
    readiness_probe_timeout_seconds: int = seconds(1)
    """How long a probe waits for the answer."""
    readiness_probe_failure_threshold: int = count(3, minimum=1)
    """Consecutive failures after which the pod is not ready."""
