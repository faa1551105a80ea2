"""Tables of POP: check points and acknowledgements, in buffer, log or database; polling, locks, revival."""
