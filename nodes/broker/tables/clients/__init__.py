"""Tables of clients: members, offsets, locks of queues, assignments, permissions."""
