"""Endpoints: the addresses of proxies, as clients are started with them and as routes name them.

Mirrors:
    `org.apache.rocketmq.client.java.route.Endpoints`, `TopicRouteData`.
"""

from collections.abc import Iterable

from nodes.protocol.v2.definition import Address, Endpoints, MessageQueue
from nodes.protocol.v2.enums import AddressScheme, Permission

_MASTER_ID = 0


def endpoints_of(addresses: tuple[str, ...]) -> Endpoints:
    """The endpoints with some addresses, each `ip:port`."""
    pairs = (address.rsplit(":", 1) for address in addresses)
    return Endpoints(AddressScheme.IPv4, tuple(Address(host, int(port)) for host, port in pairs))


def addresses_of(endpoints: Endpoints) -> tuple[str, ...]:
    """The addresses of endpoints, each `ip:port`."""
    return tuple(f"{address.host}:{address.port}" for address in endpoints.addresses)


def route_endpoints(routes: Iterable[Iterable[MessageQueue]]) -> tuple[Endpoints, ...]:
    """The endpoints that routes name, each once."""
    return tuple(dict.fromkeys(queue.broker.endpoints for queues in routes for queue in queues))


def endpoints_to_query_assignments(queues: tuple[MessageQueue, ...], access_point: Endpoints) -> Endpoints | None:
    """Where a push consumer asks for its assignments.

    Args:
        queues: the route of the topic.
        access_point: what the client was started with; it is asked if the route names it.

    Returns:
        Otherwise the endpoints of a master whose queue can be used; a proxy of a cluster answers with the same ones for
        all brokers, so the first is taken, and a client of RocketMQ takes the next one in turn. None: there is none.
    """
    if any(queue.broker.endpoints == access_point for queue in queues):
        return access_point
    usable = (q for q in queues if q.broker.id == _MASTER_ID and q.permission is not Permission.NONE)
    return next((queue.broker.endpoints for queue in usable), None)
