"""Campaigns: seeds times variants of one scenario, executed, judged and kept as one directory.

May import `run` and what is below it.
"""
