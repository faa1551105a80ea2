"""DLedger: members of a group vote for a leader, and replicate a log by majority; of controllers, and of brokers.

May import `nodes.rpc` and what is below it; `member` decides, and reaches no trio, no host and no remote call.
"""
