"""The options of a StatefulSet, under Kubernetes' names and with its defaults."""

import attrs

from nodes.config.options import DELAY_S, Config, count, name_options, seconds
from nodes.fields import choice
from nodes.protocol.headers_statefulset import ProbePath


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class StatefulSetConfig(Config):
    """Options of a StatefulSet and of the probes of its pods.

    The manifest of the design swaps the two paths, and these defaults keep that: liveness asks whether the consumer is
    ready, so one that is slow to start is restarted, and readiness asks only whether the process answers.
    """

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
