"""Messages in a broker: sends, the log, delays, pulls, queries, and escapes to other brokers.

May import `clients`, `group` and what is below them.
"""
