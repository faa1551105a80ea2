"""A running cluster: its hosts, the operator who hurts and heals it, and what each fault does to it."""

from emulator.cluster.cluster import Cluster, NodeCrashedError

__all__ = ["Cluster", "NodeCrashedError"]
