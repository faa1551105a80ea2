"""The beliefs and queues of guests, inferred from the frames that they send and receive.

May import `state`, `machine`, `network` and what is below them.
"""
