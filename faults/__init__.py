"""Faults as frozen values: kinds, scopes, plans, and the words that describe them.

Pure: no trio, no I/O. May import the codes and fields of `nodes`, and nothing of the emulator.
"""
