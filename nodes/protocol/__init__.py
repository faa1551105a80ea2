"""The protocol between nodes: the remoting command, its codes, headers and bodies, and RocketMQ's values.

Pure; may import `nodes.cause` alone.
"""
