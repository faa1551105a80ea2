"""The time that a process takes from its start until it can do anything."""

from collections.abc import Callable

from nodes.host import Host, Node

_STREAM = "boot"


class SlowBoot:
    """A node whose process loads for a while before it opens its first port; implements `nodes.host.Node`.

    How long is drawn anew for every process.

    Args:
        spread_ms: longest time.
        make: makes the node, which then knows nothing of the time before.
    """

    def __init__(self, host: Host, spread_ms: int, make: Callable[[Host], Node]) -> None:
        self._host = host
        self._boot_ms = host.rng(_STREAM).randrange(spread_ms + 1)
        self._make = make
        self._node: Node | None = None
        self._asked_to_stop = False

    async def main(self) -> None:
        """Load, then be the node."""
        await self._host.sleep_ms(self._boot_ms)
        if not self._asked_to_stop:
            self._node = self._make(self._host)
            await self._node.main()

    def request_shutdown(self) -> None:
        """Stop; a process that still loads ends when it has loaded."""
        self._asked_to_stop = True
        if self._node is not None:
            self._node.request_shutdown()
