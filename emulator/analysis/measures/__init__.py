"""Measures: costs of rebalancing, load, lag and phases of a run, which are not judged, and the symptoms among them.

May import `inputs`.
"""
