"""The network between the emulated hosts: links with faults, and what carries frames."""
