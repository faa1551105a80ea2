"""Programs outside the emulation, beside a live cluster: where they find it."""

from collections.abc import Awaitable, Callable

from emulator.namesrv_addr import namesrv_addr
from emulator.verbs.desk import Desk


def tells_namesrv_addr(tell: Callable[[str], None]) -> Callable[[Desk], Awaitable[None]]:
    """An attendant that says in one line, once every node is ready, where guests find the cluster."""

    async def attend(desk: Desk) -> None:
        await desk.cluster.started.wait()
        tell(f"namesrvAddr={namesrv_addr(desk.cluster)}")

    return attend
