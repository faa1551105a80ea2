"""RocketMQ's remoting protocol, for guests: frames, headers and bodies as RocketMQ's own programs write them.

May import `nodes.rpc` and `nodes.protocol`.
"""
