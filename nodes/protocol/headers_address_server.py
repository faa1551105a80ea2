"""Headers of the requests that RocketMQ does not have: those to the address server, in place of HTTP.

The rules of `nodes.protocol.headers` hold.
"""

from nodes.values import frozen


@frozen
class NameserverListHeader:
    """The list of nameservers: the header of PUT_NAMESERVER_LIST (900062), and of an answer to GET_NAMESERVER_LIST."""

    addresses: str
    """`HOST:PORT`, separated by `;`; may be empty."""
