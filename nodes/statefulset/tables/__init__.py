"""The decisions of the StatefulSet controller and of the kubelet: synchronous, without host.

They may import `nodes.config` and `nodes.protocol`.
"""
