"""Replication of the log within a broker group: the HA port, a link to each slave, the link to the master.

May import `files`, `context` and `tables` of the broker.
"""
