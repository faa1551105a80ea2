"""Code that a scenario names: whether it may run, and where it is found."""
