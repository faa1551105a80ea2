"""The same watchers while a run goes on: what differs now, its load, its request storms.

May import `measures` and what is below it.
"""
