"""Keys by which the tables of the pipeline are grouped and joined."""

PROCESS = ("run", "node", "incarnation")
"""A process of a node."""
SUBJECT = ("run", "kind", "role", "subject")
"""What nodes of a role hold values of."""
QUEUE = ("run", "group", "topic", "broker_name", "queue_id")
"""A queue of a group."""
PLACE = ("run", "topic", "broker_name", "queue_id")
"""A queue of a topic."""
