"""The tables of a broker: RocketMQ's rules as synchronous classes and functions; time is an argument.

They may import `nodes.protocol`, `nodes.config`, `nodes.routes` and `nodes.allocation`; no trio, no host, no remote
call, and nothing else of the broker.
"""
