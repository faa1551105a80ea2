"""What is known of a run while it goes on: owners, beliefs, events in words; knows `base`, `spec` and `trace`."""
