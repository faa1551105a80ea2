"""A lock service with leases, as consumers use one to hold a queue alone: not of RocketMQ.

May import `rpc` and what is below it.
"""
