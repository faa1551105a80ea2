"""Rebalance: passes, the requests to brokers that they need, locks of ordered queues.

May import `offsets` of the client and what is below it.
"""
