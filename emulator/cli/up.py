"""`rmqemu up`: runs a cluster live in this terminal, and a command with it."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import attrs
import trio
import typer

from emulator.analysis.live.storms import LiveStorms
from emulator.base.extra import ExtraMissingError, require_proxy_extra
from emulator.base.printing import print_line
from emulator.cli.terminal import INTERRUPTED, NAME, complain
from emulator.cluster.cluster import Cluster, endpoints, namesrv_addr, proxy_namesrv_addr
from emulator.console.control_socket import serve_control
from emulator.console.prompt import Prompt
from emulator.console.session import Session
from emulator.guests.address_book import ANY, ListenAddress, ListenAddresses
from emulator.machine.power import PowerState
from emulator.run import RunInterrupted, run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.spec import Scenario, SpecError, load
from emulator.spec.refusals.violations import fitting
from emulator.spec.tables.sizes import size_of
from emulator.state.event_lines import EventLines
from emulator.time.mode import TimeMode
from emulator.trace.batches import Row
from emulator.trace.schema import TraceLevel, TraceTable
from nodes.fields import FieldError

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""Exit status of shells for a command that cannot be run."""
_ENDS_WITHIN_S = 5
"""Time from the first Ctrl-C to the end of the process, whatever it does."""


class GuestCommand:
    """Runs a command once all nodes are ready, with the cluster's address in its environment.

    The environment has `NAMESRV_ADDR`, which RocketMQ's clients read: the address for the first named guest. Each named
    guest has its own variable, such as `NAMESRV_ADDR_SHOP` for `shop`. If there are proxies, `RMQEMU_ENDPOINTS` and
    `RMQEMU_ENDPOINTS_SHOP` have their addresses, for clients of RocketMQ 5, and `RMQEMU_PROXY_NAMESRV_ADDR` (and
    `RMQEMU_PROXY_NAMESRV_ADDR_SHOP`) their remoting ports, for clients of RocketMQ 4. `RMQEMU_RUN` is the run
    directory, for `rmqemu ctl --run "$RMQEMU_RUN" kill broker-a`, and `rmqemu` is on the PATH. The method `run` is a
    session task.

    Args:
        line: the command and its words.
    """

    def __init__(self, line: str) -> None:
        self._words = shlex.split(line)
        self.exit_status = 0
        self.problem = ""
        """Why the command could not be run; empty if it was run."""

    async def run(self, session: Session) -> None:
        """Run the command; the run ends with it."""
        await session.cluster.started.wait()
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        environment = {
            **os.environ,
            **_addresses(session.cluster),
            "RMQEMU_RUN": str(session.run_directory.resolve()),
            "PATH": path,
        }
        try:
            # The input is the command's, too: one that reads it until its end lives as long as our parent.
            done = await trio.run_process(self._words, stdin=None, check=False, env=environment)
            self.exit_status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        except OSError as error:
            self.problem = f"{self._words[0]}: {error.strerror or error}"
            self.exit_status = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        session.leaving.set()


def _addresses(cluster: Cluster) -> dict[str, str]:
    """Variables with the addresses of nameservers and proxies, for the first named guest and for each."""
    names = cluster.scenario.guests
    of_proxies = {"RMQEMU_ENDPOINTS": endpoints, "RMQEMU_PROXY_NAMESRV_ADDR": proxy_namesrv_addr}
    kinds = {"NAMESRV_ADDR": namesrv_addr, **(of_proxies if cluster.scenario.proxies else {})}
    return {
        variable: address(cluster, name)
        for kind, address in kinds.items()
        for variable, name in [
            (kind, next(iter(names), None)),
            *((f"{kind}_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}", name) for name in names),
        ]
    }


def namesrv_addr_printer(report_line: Callable[[str], None]) -> Callable[[Session], Awaitable[None]]:
    """A session task that prints the cluster's addresses for guests once every node is ready."""

    async def print_addresses(session: Session) -> None:
        await session.cluster.started.wait()
        names = session.cluster.scenario.guests
        guest_listeners = session.cluster.world.guests.listeners
        for line in guest_listeners.lines() if guest_listeners is not None else ():
            report_line(line)
        for name in names or (None,):
            whose = f"{name}: " if len(names) > 1 else ""
            report_line(f"{whose}namesrvAddr={namesrv_addr(session.cluster, name)}")
            for line in _proxy_lines(session.cluster, name):
                report_line(f"{whose}{line}")

    return print_addresses


def _proxy_lines(cluster: Cluster, guest: str | None) -> Iterator[str]:
    """The addresses of proxies that a guest can use; what is missing, if there is none."""
    hosts = [cluster.hosts[spec.name] for spec in cluster.scenario.proxies]
    down = [host.name for host in hosts if host.power_state is not PowerState.RUNNING]
    if down:
        yield f"no endpoints of {', '.join(down)}: it does not run; `rmqemu why RUN node {down[0]}` says why"
    if len(down) == len(hosts):
        return
    try:
        require_proxy_extra("gRPC")
        yield f"endpoints={endpoints(cluster, guest)}"
    except ExtraMissingError as error:
        yield f"no endpoints: {error}"
    yield f"proxyNamesrvAddr={proxy_namesrv_addr(cluster, guest)}"


def run_live(
    spec: Path,
    runs: Path,
    level: TraceLevel,
    guests: tuple[str, ...],
    command: str | None,
    store_max: str | None,
    listen: ListenAddresses,
    *,
    web: bool,
    web_port: int | None,
    allow_code: bool = False,
) -> None:
    """Run a scenario file live, and print its events.

    Args:
        spec: the scenario file.
        runs: directory of all runs.
        level: which rows the trace has.
        guests: names of guests in addition to those of the scenario.
        command: to run next to the cluster; the run ends with it.
        store_max: most bytes of each broker's log, as people write it; None: what the scenario says.
        listen: where guests reach nodes.
        web: whether to serve the dashboard.
        web_port: port of the dashboard; None: a free one.
        allow_code: whether the scenario may run code that it names.
    """
    scenario = load(spec, allow_code=allow_code)
    if store_max is not None:
        scenario = _with_limit(scenario, size_of("--store-max", store_max))
    try:
        scenario = fitting(attrs.evolve(scenario, guests=(*scenario.guests, *guests)))
    except FieldError as error:
        raise SpecError("--guest", error.problem) from None
    guest_command = None if command is None else GuestCommand(command)
    # A command gets the terminal for itself, so there is no prompt and no event is printed.
    prompt = Prompt.of_this_terminal() if guest_command is None else Prompt(interactive=False)
    events = _EventPrinter(scenario, prompt)
    session_tasks = (
        _end_soon,
        *((events.follow,) if guest_command is None else ()),
        serve_control,
        *(
            partial(_warn_of_others, address)
            for address in (listen.nodes, listen.grpc)
            if address is not None and not address.is_loopback
        ),
        *prompt.session_tasks(),
        *_page(prompt.print_page_address, web_port, requested_for=web),
        namesrv_addr_printer(prompt.print_above) if guest_command is None else guest_command.run,
    )
    _end_on_signals()
    try:
        left = run_scenario(
            scenario,
            mode=TimeMode.LIVE,
            level=level,
            runs=runs,
            endless=True,
            listeners=(events.show,) if guest_command is None else (),
            session_tasks=session_tasks,
            listen=listen,
        )
    except RunInterrupted as interrupted:
        _print_replay_command(interrupted.path)
        raise
    finally:
        prompt.close()
    if guest_command is not None:
        _end_as(guest_command, left.path)
    _print_replay_command(left.path)
    print_line(left.path)


async def _warn_of_others(address: ListenAddress, _session: Session) -> None:
    """Say who can join, once the ports are there; a session task."""
    names = "all machines that reach this one" if address.host == ANY else f"all machines that reach {address.host}"
    rights = "send and consume" if address.option == "grpc" else "send, consume and administer"
    complain(
        f"warning: --{address.label}: {names} can {rights}, as any guest, without a password; "
        f"verbs cannot be said from there: the control socket and the dashboard stay on this machine"
    )


def _with_limit(scenario: Scenario, store_max_bytes: int) -> Scenario:
    """The scenario with a limit of each broker's log."""
    brokers = tuple(
        attrs.evolve(broker, config=attrs.evolve(broker.config, store_max_bytes=store_max_bytes))
        for broker in scenario.brokers
    )
    return attrs.evolve(scenario, brokers=brokers)


class _EventPrinter:
    """Prints one line per event."""

    def __init__(self, scenario: Scenario, prompt: Prompt) -> None:
        self._lines = EventLines(scenario)
        """Replaced before the first node starts."""
        self._storms = LiveStorms()
        self._prompt = prompt

    async def follow(self, session: Session) -> None:
        """Use the session's names of nodes, which grow when groups are scaled, and hear of frames; a session task."""
        self._lines = session.lines
        session.cluster.world.recorder.batch_listeners.append(self._show_storms)

    def _show_storms(self, table: TraceTable, rows: Sequence[Row]) -> None:
        for change in self._storms.take(table, rows):
            self._prompt.print_above(change.line)

    def show(self, table: TraceTable, row: Row) -> None:
        """Print a row; a `RowListener`."""
        line = self._lines.line(table, row)
        if line is not None:
            self._prompt.print_above(line)


def _end_on_signals() -> None:
    """Have SIGTERM and SIGHUP end the run like Ctrl-C, so that no fault, socket or task is left."""
    # Shells start background jobs of scripts with SIGINT ignored, to which the other signals are mapped.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` ignores it
        signal.signal(signal.SIGHUP, lambda *_: _end_without_terminal())


async def _end_soon(_session: Session) -> None:
    """Have the first Ctrl-C end the run, a second one the process at once, and time after some seconds; a session task.

    Trio turns the first one into `KeyboardInterrupt`, which code of the user's own may catch.
    """
    interrupt = signal.getsignal(signal.SIGINT)

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, _ENDS_WITHIN_S)
        if callable(interrupt):
            interrupt(number, frame)

    signal.signal(signal.SIGINT, end)


def _give_up(_number: int, _frame: FrameType | None) -> None:
    """The run has not ended in time: end the process, whatever it does."""
    complain(f"not ended within {_ENDS_WITHIN_S} s; what was traced until now can be read")
    os._exit(INTERRUPTED)


def _end_without_terminal() -> None:
    """The terminal was closed: redirect the standard streams, since writing to them would raise."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):  # the prompt replaces sys.stdout and others
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
    signal.raise_signal(signal.SIGINT)


def _end_as(command: GuestCommand, run: Path) -> None:
    if command.problem:
        complain(command.problem)
    else:
        print_line(f"what happened: {NAME} analyze {run}", err=True)
    raise typer.Exit(command.exit_status)


def _page(
    report_line: Callable[[str], None], port: int | None, *, requested_for: bool
) -> tuple[Callable[[Session], Awaitable[None]], ...]:
    """The session task that serves the dashboard, if it is requested; the port is opened now, before the run."""
    if not requested_for and port is None:
        return ()
    from emulator.web.gate import ANY_FREE_PORT, listen
    from emulator.web.server import serve_web

    return (partial(serve_web, listening=listen(port or ANY_FREE_PORT), report_line=report_line),)


def _print_replay_command(run: Path) -> None:
    if (run / BY_HAND_FILE).exists():
        print_line(f"do again what was done interactively: {NAME} run {run / BY_HAND_FILE}", err=True)
