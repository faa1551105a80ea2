"""Requests and answers over channels: codec, client, server, the choice of the nameserver.

May import `nodes.host`, `nodes.threads`, `nodes.config` and `nodes.protocol`.
"""
