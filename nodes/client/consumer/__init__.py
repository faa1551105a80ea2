"""Push and lite pull consumers: pulls, consumption in order or not, messages sent back.

May import every other package of the client.
"""
