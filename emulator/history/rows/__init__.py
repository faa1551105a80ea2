"""Rows of a trace: read once, for oracles, measures, `why`, comparisons and tests.

May import `state` and what is below it.
"""
