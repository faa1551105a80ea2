"""The threads of a broker, where a request takes time: the lock of the log, its buffers, and fast failure.

May import `tables` and what is below it.
"""
