"""Headers of requests to a container of brokers.

The rules of `nodes.protocol.headers` hold.
"""

import attrs


@attrs.frozen
class AddBrokerRequestHeader:
    """Header of ADD_BROKER (902)."""

    config_path: str


@attrs.frozen
class RemoveBrokerRequestHeader:
    """Header of REMOVE_BROKER (903)."""

    broker_cluster_name: str
    broker_name: str
    broker_id: int
