"""RocketMQ itself: nameserver, broker and client, which get time, network, disk and randomness from their host.

From the bottom to the top: `protocol` are the commands with headers and bodies, `filter` the expressions of
subscriptions, `config` the options, `routes` and `allocation` tables that clients and brokers share, `host` the
interface of the machine, `threads` RocketMQ's schedulers as tasks, `rpc` calls and answers. `nameserver`, `broker` and
`client` are the nodes, which do not import each other.
"""
