"""Where programs outside find the nameservers of a live cluster."""

from emulator.cluster import Cluster
from emulator.network.loopback import LoopbackCarrier


class NoAddressError(Exception):
    """No program outside could reach the cluster; says why in one line."""


def namesrv_addr(cluster: Cluster) -> str:
    """`HOST:PORT;HOST:PORT`, as RocketMQ's clients take it: from an option, or from `NAMESRV_ADDR`.

    Raises:
        NoAddressError: time jumps, so programs outside cannot take part.
    """
    carrier = cluster.world.fabric.carrier
    if not cluster.world.clock.follows_wall or not isinstance(carrier, LoopbackCarrier):
        raise NoAddressError("programs outside live in real time: only a cluster in mode live has an address for them")
    return ";".join(
        f"{carrier.physical_ip(cluster.addresses[spec.name])}:{spec.config.listen_port}"
        for spec in cluster.scenario.nameservers
    )
