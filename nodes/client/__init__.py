"""Clients: consumers and producers.

The packages in the order in which they may import each other: `consumer`, then `rebalance` and `producer` (neither of
which imports the other), `offsets`, `instance`, and `tables`, the rules without any I/O.
"""
