"""A broker and its nameservers: its registrations, and the routes to other brokers.

May import `files`, `context` and `tables` of the broker.
"""
