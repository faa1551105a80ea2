"""The threads of a broker, where a request takes time: pools, fast failure, and what shows that the broker is busy.

May import `tables` and what is below it.
"""
