"""The tables of a nameserver: RocketMQ's rules as synchronous classes; time is an argument.

They may import `nodes.protocol`; no trio, no host, no remote call.
"""
