"""The notebook handle: a running cluster behind ordinary, synchronous calls."""
