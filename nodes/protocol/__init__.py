"""The protocol between nodes: the remoting command, its codes, headers and bodies, and RocketMQ's values.

`codes` has the numbers of the requests, `exchanges` the properties of each, `registry` all of them together.

Pure; may import `nodes.cause`, `nodes.secret` and `nodes.values` alone.
"""
