"""Kubernetes, as far as a StatefulSet of consumers needs it: API server, StatefulSet controller, kubelet.

May import `rpc` and what is below it.
"""
