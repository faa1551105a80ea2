"""The strategies that allocate the queues of a topic among the members of a group: pure functions, one per file.

They may import `nodes.protocol` and `nodes.config`.
"""
