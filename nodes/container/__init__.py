"""A container: one process with several brokers, which share a client and its connections (RIP-31).

May import `broker`, `rpc` and what is below them.
"""
