"""Timed messages in a broker: the tasks around the wheel, and messages that their producers take back.

May import `messages` and what is below it.
"""
