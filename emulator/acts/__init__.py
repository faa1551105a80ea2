"""What administrators do to a running cluster: each act is a value with words, and what it asks the nodes.

No act is a fault: RocketMQ carries it out as it is meant to, and the analysis judges the requests, from whichever tool
they come. `catalogue` lists all acts; `emulator.cluster.administrator` has the machine on which they are carried out.
"""
