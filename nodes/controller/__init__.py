"""A controller (RIP-44): who elects a new master when a broker group has lost its own.

Its tables are here; no node runs them yet.
"""
