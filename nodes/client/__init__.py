"""The client: one instance per process, its consumers and producers."""
