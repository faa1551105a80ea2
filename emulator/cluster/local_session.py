"""A request of an operator to a node, from the node's own machine: no fault of the network keeps it away."""

from collections.abc import Mapping, Sequence
from contextvars import copy_context

from emulator.machine.host import EmulatedHost
from emulator.machine.process import HostProcess
from emulator.machine.world import World
from emulator.spec.model.scenario import BrokerSpec
from emulator.time.timeline import ScheduledCall
from nodes.cause import cause
from nodes.host import NO_CONNECTION, ChannelHandler
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command


class LocalSession:
    """An operator's local connection to a node; implements `nodes.host.Channel`."""

    id = NO_CONNECTION
    closed = False

    def __init__(self, process: HostProcess, handler: ChannelHandler) -> None:
        self.remote_address = f"{process.ip}:0"
        self.last_used_ns = 0
        self._process = process
        self._handler = handler

    def ask(self, request: Command) -> None:
        """Have the node handle a request."""
        self._handler.on_command(self, request)

    def send(self, command: Command) -> None:
        """The answer of the node."""
        if command.code != ResponseCode.SUCCESS:
            self._process.log.warning("an operator was refused", remark=command.remark)

    def close(self) -> None:
        """Nothing is open."""


def session_with(world: World, process: HostProcess, port: int) -> LocalSession | None:
    """A session with a process; None if it does not listen on the port."""
    listener = world.fabric.listeners.get((process.ip, port))
    return LocalSession(process, listener.handler) if listener is not None and listener.process is process else None


def send(world: World, process: HostProcess, port: int, request: Command) -> None:
    """Send a request to a process; a suspended one handles it when it runs again."""

    def ask() -> None:
        session = session_with(world, process, port)
        if session is not None:
            session.ask(request)

    entry = ScheduledCall(ask, process, cause.get())
    if process.admits(entry):
        copy_context().run(entry.fire)  # its handlers must not set the cause of this task


def listening(world: World, hosts: Mapping[str, EmulatedHost], brokers: Sequence[BrokerSpec]) -> list[BrokerSpec]:
    """Those of the brokers that listen, suspended ones included.

    Args:
        hosts: of the cluster, by name.
    """
    processes = ((spec, hosts[spec.name].process) for spec in brokers)
    return [
        spec
        for spec, process in processes
        if process is not None and session_with(world, process, spec.config.listen_port) is not None
    ]


async def send_to_brokers(
    world: World, hosts: Mapping[str, EmulatedHost], brokers: Sequence[BrokerSpec], request: Command
) -> int:
    """Send a request to each of the brokers that listens; returns how many were sent it."""
    await world.clock.idle()
    found = listening(world, hosts, brokers)
    for spec in found:
        process = hosts[spec.name].process
        assert process is not None
        send(world, process, spec.config.listen_port, request)
    return len(found)
