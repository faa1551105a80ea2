"""Offsets of a consumer group: where they are stored, and where a queue without offset starts.

May import `instance` and `tables` of the client.
"""
