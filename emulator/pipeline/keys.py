"""Keys by which the tables of the pipeline are grouped and joined."""

PROCESS = ("run", "node", "incarnation")
"""A process of a node."""
SUBJECT = ("run", "kind", "role", "subject")
"""What nodes of a role hold values of."""
QUEUE = ("run", "group", "topic", "broker_name", "queue_id")
"""A queue of a group."""
PLACE = ("run", "topic", "broker_name", "queue_id")
"""A queue of a topic."""
MESSAGE = ("offset", "stored_ms", *reversed(PLACE))
"""A message. A sort compares the first of these most often: numbers that differ from row to row, not names of runs."""
