"""Programs outside the emulation, beside a live cluster: where they find it."""

from collections.abc import Awaitable, Callable

from emulator.cluster import Cluster
from emulator.network.loopback import LoopbackCarrier
from emulator.verbs.desk import Desk


def namesrv_addr(cluster: Cluster) -> str:
    """What a client's option of that name takes: the nameservers as this machine's programs dial them."""
    carrier = cluster.world.fabric.carrier
    assert isinstance(carrier, LoopbackCarrier)
    return ";".join(
        f"{carrier.physical_ip(cluster.addresses[spec.name])}:{spec.config.listen_port}"
        for spec in cluster.scenario.nameservers
    )


def tells_namesrv_addr(tell: Callable[[str], None]) -> Callable[[Desk], Awaitable[None]]:
    """An attendant that says in one line, once every node is ready, where guests find the cluster."""

    async def attend(desk: Desk) -> None:
        await desk.cluster.started.wait()
        tell(f"namesrvAddr={namesrv_addr(desk.cluster)}")

    return attend
