"""The tables of a controller: RocketMQ's rules as synchronous classes and functions; time is an argument.

They may import `nodes.protocol`; no trio, no host, no remote call.
"""
