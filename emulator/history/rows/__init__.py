"""Rows of a trace: read once, for oracles, measures, `why`, comparisons and tests.

May import `trace` and what is below it.
"""
