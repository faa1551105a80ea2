"""A controller (RIP-44), which elects a new master when a broker group has lost its own.

`controller.py` is the process, `leader_requests.py` what only a leader answers, `event_queue.py` the one thread on
which it does so; `tables` hold the rules, and `nodes.dledger` replicates its log.
"""
