"""Where programs outside find the nameservers of a live cluster."""

from emulator.cluster.cluster import Cluster
from emulator.network.loopback import LoopbackCarrier


class NoAddressError(Exception):
    """No program outside could reach the cluster; says why in one line."""


def namesrv_addr(cluster: Cluster, guest: str | None = None) -> str:
    """`HOST:PORT;HOST:PORT`, as RocketMQ's clients take it: from an option, or from `NAMESRV_ADDR`.

    Args:
        guest: whose address it is to be; None: of whoever has no name.

    Raises:
        NoAddressError: time jumps, so programs outside cannot take part; or there is no guest of that name.
    """
    carrier = cluster.world.fabric.carrier
    if not cluster.world.clock.follows_wall or not isinstance(carrier, LoopbackCarrier):
        raise NoAddressError("programs outside live in real time: only a cluster in mode live has an address for them")
    named = {host.node: host.dialable for host in cluster.world.fabric.guests.named}
    if guest is not None and guest not in named:
        raise NoAddressError(f"no guest is called {guest}; the scenario has {', '.join(named) or 'none with a name'}")
    dialable = carrier.physical_ip if guest is None else named[guest]
    return ";".join(
        f"{dialable(cluster.addresses[spec.name])}:{spec.config.listen_port}" for spec in cluster.scenario.nameservers
    )
