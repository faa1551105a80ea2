"""The interface between a node and its machine.

Protocol classes only. The emulator implements the host for every time mode and transport; a node never uses trio's
clock, a socket, a file or `random` itself.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableSequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from nodes.beliefs import Event
from nodes.protocol.command import Command

NO_CONNECTION = 0
"""The id of a channel over which an operator hands a request to the node on its own machine."""


class Clock(Protocol):
    """The two clocks of a machine."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970; may be skewed."""

    def monotonic_ns(self) -> int:
        """Never jumps back; nanoseconds since the run began."""


class RandomStream(Protocol):
    """A named, seeded random generator (`random.Random` fits)."""

    def random(self) -> float: ...
    def randrange(self, stop: int, /) -> int: ...
    def shuffle(self, x: MutableSequence[Any], /) -> None: ...


class Disk(Protocol):
    """Files that survive a kill; power loss removes what was not synced.

    A file that is written has the content of the last write; one that is mapped grows in memory.
    """

    def write(self, name: str, content: bytes | Callable[[], bytes], *, sync: bool = True) -> None:
        """Replace a file; a content that is a function is called when the file is read for the first time."""

    def read(self, name: str) -> bytes | None:
        """Content of the file, None where there is none."""

    def map(self, name: str) -> bytearray:
        """The content of a file that is mapped into memory; what is appended to it survives a kill."""

    def map_files(self, name: str) -> dict[int, bytearray]:
        """The contents of files that are mapped one after the other, by ascending keys; the node adds and deletes them.

        Only the file with the greatest key may grow.
        """

    def flush(self, name: str) -> None:
        """Write what was appended to a mapped file to the disk, where it also survives a power loss."""

    def busy_ms(self) -> float:
        """How long until everything written so far is on the disk; a node that must be sure sleeps that long."""


class Channel(Protocol):
    """One end of a connection."""

    id: int
    """Number of the connection, unique in a run, the same at both ends; or `NO_CONNECTION`."""
    remote_address: str
    """`ip:port` of the other end; for an accepted channel the port is the peer's ephemeral one."""
    closed: bool
    last_used_ns: int
    """When a frame was last sent or received at this end, by `Clock.monotonic_ns`."""

    def send(self, command: Command) -> None:
        """Send a frame, in order, without waiting. On a closed channel the frame is dropped."""

    def close(self) -> None:
        """Close this end; the peer notices when the FIN arrives. The handler of this end is not called."""


class ChannelHandler(Protocol):
    """Callbacks of a channel; they are synchronous and must not raise."""

    def on_open(self, channel: Channel) -> None:
        """A connection was accepted; one that this node opens is returned by `Host.connect`."""

    def on_command(self, channel: Channel, command: Command) -> None:
        """A frame arrived; the running cause is its delivery."""

    def on_close(self, channel: Channel) -> None:
        """The peer closed (FIN or RST), or the network gave the connection up."""


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; does nothing once it was made."""


class Logger(Protocol):
    """structlog's bound logger, as far as nodes use it."""

    def info(self, event: str, **fields: object) -> None: ...
    def warning(self, event: str, **fields: object) -> None: ...
    def error(self, event: str, **fields: object) -> None: ...


class Host(Protocol):
    """The emulated machine that one node runs on."""

    name: str
    ip: str
    pid: int
    """Process id: another one after every restart."""
    clock: Clock
    disk: Disk
    log: Logger

    async def sleep_ms(self, duration_ms: float) -> None:
        """Sleep; on a suspended host until it is resumed, at least."""

    async def sleep_until_ns(self, instant_ns: int) -> None:
        """Sleep until `clock.monotonic_ns()` has reached `instant_ns`; returns at once if it has."""

    async def sleep_or_call_ms(self, duration_ms: float, give_waker: Callable[[Callable[[], None]], None]) -> None:
        """Sleep for `duration_ms`, or until the waker that is passed to `give_waker` is called."""

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once after `delay_ms`."""

    def timeout_ms(self, duration_ms: float) -> AbstractContextManager[Any]:
        """Cancel what runs inside after `duration_ms`, raising `trio.TooSlowError`."""

    def start_soon(self, flow: Callable[..., Awaitable[object]], *args: object, name: str) -> None:
        """Run a flow as a task of this process; the end of the process cancels it."""

    def listen(self, port: int, handler: ChannelHandler) -> None:
        """Accept connections on `ip:port` until the process ends or `close_listener`.

        Raises:
            OSError: the port is taken.
        """

    def close_listener(self, port: int) -> None:
        """Stop accepting; connections that were accepted stay open."""

    def lookup(self, domain: str) -> tuple[str, ...]:
        """The IP addresses that a domain name stands for now; empty: it is unknown."""

    def dial(
        self, address: str, handler: ChannelHandler, take: "Callable[[Channel | ConnectError], None]", timeout_ms: float
    ) -> object:
        """Open a connection to `ip:port`, or to one of the IP addresses of a domain name.

        `take` gets it or the error, never inside this call.
        """

    async def connect(self, address: str, handler: ChannelHandler, timeout_ms: float) -> Channel:
        """Open a connection to `ip:port`, and wait until it is open.

        Raises:
            ConnectError: refused, or no answer within `timeout_ms`.
        """

    def send_each(self, channels: Iterable[Channel], command: Command) -> None:
        """Send one frame over each of many channels, oneway, as `Channel.send` would."""

    def rng(self, name: str) -> RandomStream:
        """The stream `name` of this host: the same seed and name give the same draws."""

    def stopwatch(self, name: str) -> AbstractContextManager[None]:
        """Measure the CPU time that what runs inside takes in reality; nothing in the emulation depends on it."""

    def begin_cause(self, name: str) -> None:
        """Start a new chain of causes, for a timer or flow that acts by itself."""

    def record(self, event: Event) -> None:
        """Write a belief or an event into the trace, with the running cause."""

    def inner(self, path: str) -> "InnerHost":
        """A part of this process with a name of its own, described by the file at `path`.

        Raises:
            KeyError: this machine has no such part.
        """


class InnerHost(Host, Protocol):
    """A part of a process: it has its own name, files, random streams and rows, and shares the rest."""

    alive: bool
    """Whether it runs."""

    async def start(self, node: "Node") -> None:
        """Run a node in the part; returns when the node is ready, or has ended."""

    async def wait_ended(self) -> None:
        """Wait until the node has ended."""


class ConnectError(Exception):
    """A connection could not be opened; the text says to which address, and why."""


class ConnectRefusedError(ConnectError):
    """The kernel of the machine has answered that no process listens there."""


class Node(Protocol):
    """One RocketMQ process.

    The host runs `main` as the process's first task. It ends when
    `request_shutdown` was called and the orderly shutdown is done; a kill
    cancels it at any point.
    """

    async def main(self) -> None:
        """Start, serve and shut down, in RocketMQ's order."""

    def request_shutdown(self) -> None:
        """SIGTERM: start the orderly shutdown."""
