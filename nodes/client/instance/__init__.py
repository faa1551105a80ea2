"""Shared parts of the consumers and producers of one client id: connections, routes, heartbeats, requests of brokers.

May import `tables` of the client.
"""
