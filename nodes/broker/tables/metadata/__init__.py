"""Topics and subscription groups, with their attributes."""
