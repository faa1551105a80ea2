"""Emulated time: the timeline, the clock that trio runs on, and the deterministic scheduler.

May import `base`.
"""
