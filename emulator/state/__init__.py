"""The state of a run while it goes on: queue owners, beliefs, active faults, and events as lines of text.

May import `machine`, `trace`, `spec` and what is below them.
"""
