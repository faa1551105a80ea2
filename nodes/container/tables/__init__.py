"""The brokers of a container in the order of its tables, and the files that describe them."""
