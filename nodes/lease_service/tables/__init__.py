"""The leases: synchronous, without host."""
