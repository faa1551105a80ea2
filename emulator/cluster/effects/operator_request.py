"""Requests of an operator at a broker's machine, as from mqadmin on localhost: no network lies between."""

from contextvars import copy_context
from functools import partial

from emulator.machine.process import HostProcess
from emulator.machine.world import World
from emulator.time.timeline import Entry
from nodes.cause import cause
from nodes.host import ChannelHandler
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command


def listens(world: World, process: HostProcess, port: int) -> bool:
    """Whether the process serves requests at a port."""
    return _session(world, process, port) is not None


def ask_broker(world: World, process: HostProcess, port: int, request: Command) -> None:
    """Send a request to a broker that listens; a suspended process gets it when it is resumed."""
    entry = Entry(partial(_ask, world, process, port, request), process, cause.get())
    if process.admits(entry):
        copy_context().run(entry.fire)  # its handlers must not set the cause of this task


def _ask(world: World, process: HostProcess, port: int, request: Command) -> None:
    session = _session(world, process, port)
    if session is not None:
        session.ask(request)


def _session(world: World, process: HostProcess, port: int) -> "_Session | None":
    """A session with a process; None if it does not listen."""
    listener = world.fabric.listeners.get((process.ip, port))
    return _Session(process, listener.handler) if listener is not None and listener.process is process else None


class _Session:
    """An operator's local connection to a broker; implements `nodes.host.Channel`."""

    id = 0
    closed = False

    def __init__(self, process: HostProcess, handler: ChannelHandler) -> None:
        self.remote_address = f"{process.ip}:0"
        self.last_used_ns = 0
        self._process = process
        self._handler = handler

    def ask(self, request: Command) -> None:
        self._handler.on_command(self, request)

    def send(self, command: Command) -> None:
        if command.code != ResponseCode.SUCCESS:
            self._process.log.warning("request of an operator refused", remark=command.remark)

    def close(self) -> None:
        """Nothing is open."""
