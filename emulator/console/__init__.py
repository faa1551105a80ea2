"""The verbs of a running cluster, and where they come from: prompt, script, control socket.

May import `why` and what is below it.
"""
