"""The tools of administrators: what a command of mqadmin asks the nodes of a cluster, in which order.

Above `nodes.client`, with whose producer a command sends a message; it knows no other kind of node.
"""
