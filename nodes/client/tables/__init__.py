"""The tables of a client: RocketMQ's rules as synchronous classes and functions; time is an argument.

They may import `nodes.protocol`, `nodes.config` and `nodes.routes`; no host and no remote call.
"""
