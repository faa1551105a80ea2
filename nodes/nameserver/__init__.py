"""The nameserver: who is alive, and where topics are."""
