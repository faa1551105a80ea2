"""What a broker is made of, and how its parts refuse requests."""

from nodes.protocol.codes import ResponseCode
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


class RequestRefusedError(Exception):
    """A request is refused, with the code and the remark of the answer; nothing was changed."""

    def __init__(self, code: ResponseCode, remark: str) -> None:
        super().__init__(remark)
        self.code = code
        self.remark = remark
