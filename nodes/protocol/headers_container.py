"""Headers of requests to a container of brokers.

The rules of `nodes.protocol.headers` hold.
"""

from nodes.values import frozen


@frozen
class AddBrokerRequestHeader:
    """Header of ADD_BROKER (902)."""

    config_path: str


@frozen
class RemoveBrokerRequestHeader:
    """Header of REMOVE_BROKER (903)."""

    broker_cluster_name: str
    broker_name: str
    broker_id: int
