"""Emulated machines: processes with their power states, clock, CPU and disk, in a world that they share.

May import `guests` and what is below it.
"""
