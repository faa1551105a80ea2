"""POP: a broker hands messages out, hides them for a while, and revives those that no consumer acknowledges.

May import `nodes.broker.messages` and what lies below it.
"""
