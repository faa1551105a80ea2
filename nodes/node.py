"""The life of a node: what a host may do with it."""

from typing import Protocol


class Node(Protocol):
    """One RocketMQ process.

    The host runs `main` as the process's first task. It ends when
    `request_shutdown` was called and the node's orderly stop is done; a kill
    cancels it at any point.
    """

    async def main(self) -> None:
        """Start, serve, stop; in RocketMQ's order."""

    def request_shutdown(self) -> None:
        """SIGTERM: begin the orderly stop."""
