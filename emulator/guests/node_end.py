"""The node's end of a guest's connection."""

from time import perf_counter

from emulator.guests.budget import CpuAccount
from emulator.guests.guests import Guests
from emulator.guests.wide_work import WIDE_REQUESTS
from emulator.network.endpoint import Endpoint, Peer
from nodes.host import Channel, ChannelHandler
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command, CommandFlag


class NodeEnd(Endpoint, ChannelHandler):
    """The node's end of a guest's connection; answers SYSTEM_BUSY when a limit is reached."""

    __slots__ = ("_budget", "_cpu", "_node_handler", "_open", "_wide_work")

    def __init__(
        self, guests: Guests, number: int, process: Peer, handler: ChannelHandler, cpu: CpuAccount, *rest: object
    ) -> None:
        super().__init__(guests.fabric, number, process, self, *rest)  # type: ignore[arg-type]
        self._node_handler = handler
        self._cpu = cpu
        self._budget = guests.budget
        self._wide_work = guests.wide_work
        self._open: dict[int, None] = {}

    def on_open(self, channel: Channel) -> None:
        """Let the node know of the connection."""
        self._node_handler.on_open(channel)

    def on_command(self, channel: Channel, command: Command) -> None:
        """Have the node handle a frame, or refuse a request."""
        if not command.flag & (CommandFlag.RESPONSE | CommandFlag.ONEWAY):
            refusal = self._refusal()
            if refusal is not None:
                super().send(command.answer(ResponseCode.SYSTEM_BUSY, refusal))
                return
            self._open[command.opaque] = None
        began_s = perf_counter()
        self._node_handler.on_command(channel, command)
        self._cpu.charge(began_s)
        if command.code in WIDE_REQUESTS:
            self._wide_work.charge(perf_counter() - began_s)

    def _refusal(self) -> str | None:
        requests_max = self._budget.limits.requests
        if len(self._open) >= requests_max:
            return f"more than {requests_max} requests of this connection wait for their answers"
        if self._cpu.owes_more_than(self._budget.limits.cpu_debt_ms / 1_000):
            return f"the requests of this connection take more than {self._budget.limits.cpu_percent} % of the CPU"
        return self._budget.refusal(self.network.timeline.now_ns)

    def on_close(self, channel: Channel) -> None:
        """Let the node know that the connection has ended."""
        began_s = perf_counter()
        self._node_handler.on_close(channel)
        self._wide_work.charge(perf_counter() - began_s)

    def send(self, command: Command) -> None:
        """Send a frame of the node."""
        if command.flag & CommandFlag.RESPONSE:
            self._open.pop(command.opaque, None)
        super().send(command)
