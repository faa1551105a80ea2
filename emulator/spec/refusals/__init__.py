"""What a scenario may not be: mistakes, and parts that do not fit together."""
