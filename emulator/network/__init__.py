"""The network between emulated hosts: links with faults, connections, and the carriers of frames.

May import `trace` and what is below it.
"""
