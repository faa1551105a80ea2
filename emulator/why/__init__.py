"""Why a node believes what it believes: the chain of causes in a trace, in RocketMQ's words.

May import `cluster` and what is below it.
"""
