"""Producers: sends with retries, transactions, and an application that sends at a steady rate.

May import `offsets` of the client and what is below it.
"""
