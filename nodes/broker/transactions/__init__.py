"""Transactions in a broker: half messages, checks, and the ends of transactions.

May import `messages` and what is below it.
"""
