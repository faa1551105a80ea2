"""A running cluster: its hosts, the operator that begins and ends faults, and the effect of each kind of fault.

May import `machine` and what is below it.
"""
