"""What a broker is made of."""

from nodes.rpc.server import Handlers


class Part:
    """A part of a broker: the requests that it answers, its files, its start and its end.

    A part defines those methods that it needs; the others do nothing.
    """

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {}

    def load(self) -> None:
        """Read the files of an earlier process; the log is loaded already."""

    def persist(self) -> None:
        """Write the files that a process writes once it has loaded all of them, and once more when it has stopped."""

    async def start(self) -> None:
        """Start; returns when the parts after it may start."""

    async def stop(self) -> None:
        """Stop; returns when the parts after it may stop."""
