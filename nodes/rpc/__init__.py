"""Requests and answers over channels: codec, client, server."""
