"""Guests, which are real RocketMQ programs, as processes on the emulated network (mode `live`).

May import the rest of `network` and what is below it; `network` itself knows only `hosts` and `watch`.
"""
