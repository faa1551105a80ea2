"""A broker and its clients: heartbeats, notifications, offsets, locks, shares of queues, calls to clients.

May import `ha`, `registration` and what is below them.
"""
