"""Requests of operators and their tools.

May import every other part of the broker except its assembly.
"""
