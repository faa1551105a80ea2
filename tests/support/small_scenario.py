"""The cluster of somebody who tests an application."""

SCENARIO = """
[scenario]
name = "small"
run_for_s = 3600

[nameserver]
count = 2

[[broker]]
name = "broker-a"
"""
