"""What a finding is: a frozen row with units in its names, which is its schema, and what is reported about it.

May import `rows`.
"""
