"""A nameserver: `nameserver.py` is the process, `unregistration.py` its queue, the others are kinds of requests.

Requests are answered at once, from `tables`.
"""
