"""The address server: a page with the list of nameservers; not a part of RocketMQ.

May import `rpc` and what is below it.
"""
