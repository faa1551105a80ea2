"""`rmqemu up`: a live cluster in this terminal, and a command that may run beside it."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import attrs
import trio
import typer

from emulator.cli.terminal import NAME, complain
from emulator.cluster.cluster import namesrv_addr
from emulator.console.control_socket import serve_control
from emulator.console.prompt import Prompt
from emulator.console.session import Session
from emulator.run import RunInterrupted, run_scenario
from emulator.run.run import BY_HAND_FILE
from emulator.spec import Scenario, load
from emulator.state.event_lines import EventLines
from emulator.time.mode import TimeMode
from emulator.trace.recorder import Row
from emulator.trace.schema import Table

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""What shells give for a command that cannot be run."""


class GuestCommand:
    """Runs a command once all nodes are ready, with the cluster's address in its environment; an attendant of a run.

    The command finds `NAMESRV_ADDR`, which RocketMQ's own clients read, too (that of the first named guest; each has
    its own in `NAMESRV_ADDR_SHOP`, where it is called shop);
    `RMQEMU_RUN`, for `rmqemu ctl --run "$RMQEMU_RUN" kill broker-a`; and `rmqemu` on its PATH.

    Args:
        line: the command and its words.
    """

    def __init__(self, line: str) -> None:
        self._words = shlex.split(line)
        self.exit_status = 0
        self.problem = ""
        """Why it could not be run."""

    async def attend(self, session: Session) -> None:
        """Run it; its end is that of the run."""
        await session.cluster.started.wait()
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        names = session.cluster.scenario.guests
        surroundings = {
            **os.environ,
            "NAMESRV_ADDR": namesrv_addr(session.cluster, next(iter(names), None)),
            **{_variable(name): namesrv_addr(session.cluster, name) for name in names},
            "RMQEMU_RUN": str(session.run_directory.resolve()),
            "PATH": path,
        }
        try:
            done = await trio.run_process(self._words, check=False, env=surroundings)
            self.exit_status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        except OSError as error:
            self.problem = f"{self._words[0]}: {error.strerror or error}"
            self.exit_status = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        session.leaving.set()


def _variable(guest: str) -> str:
    return f"NAMESRV_ADDR_{re.sub(r'[^A-Za-z0-9]', '_', guest).upper()}"


def tells_namesrv_addr(tell: Callable[[str], None]) -> Callable[[Session], Awaitable[None]]:
    """An attendant that says in one line, once every node is ready, where guests find the cluster."""

    async def attend(session: Session) -> None:
        await session.cluster.started.wait()
        names = session.cluster.scenario.guests
        for name in names:
            tell(f"{'' if len(names) == 1 else f'{name}: '}namesrvAddr={namesrv_addr(session.cluster, name)}")
        if not names:
            tell(f"namesrvAddr={namesrv_addr(session.cluster)}")

    return attend


def run_live(
    spec: Path, runs: Path, guests: tuple[str, ...], command: str | None, *, web: bool, web_port: int | None
) -> None:
    """`rmqemu up`: run a scenario file live, and print what happens.

    Args:
        guests: names of guests besides those of the scenario.
        command: what to run beside it; its end is that of the run.
        web: whether to show the cluster in a browser, too.
        web_port: of the page; None: a free one.
    """
    scenario = load(spec)
    scenario = attrs.evolve(scenario, guests=(*scenario.guests, *guests))
    beside = None if command is None else GuestCommand(command)
    # A command gets the terminal for itself: no prompt, and no events.
    prompt = Prompt.of_this_terminal() if beside is None else Prompt(interactive=False)
    events = _EventPrinter(scenario, prompt)
    attendants = (
        events.name_newcomers,
        serve_control,
        *prompt.attendants(),
        *_page(prompt.print_above, web_port, asked_for=web),
        tells_namesrv_addr(prompt.print_above) if beside is None else beside.attend,
    )
    _end_in_good_order()
    try:
        left = run_scenario(
            scenario,
            mode=TimeMode.LIVE,
            runs=runs,
            endless=True,
            listeners=(events.show,) if beside is None else (),
            attendants=attendants,
        )
    except RunInterrupted as interrupted:
        _tell_how_to_replay(interrupted.path)
        raise
    if beside is not None:
        _end_as(beside, left.path)
    _tell_how_to_replay(left.path)
    print(left.path)


class _EventPrinter:
    """Prints one line per event."""

    def __init__(self, scenario: Scenario, prompt: Prompt) -> None:
        self._lines = EventLines(scenario)
        self._prompt = prompt

    async def name_newcomers(self, session: Session) -> None:
        """Names of nodes grow with the cluster."""
        self._lines.names = session.cluster.names

    def show(self, table: Table, row: Row) -> None:
        """A `RowListener`."""
        line = self._lines.line(table, row)
        if line is None:
            return
        try:
            self._prompt.print_above(line)
        except BrokenPipeError:
            # Nobody reads on (`| head`): that ends the run as Ctrl-C does, not the node that recorded the row.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            signal.raise_signal(signal.SIGINT)


def _end_in_good_order() -> None:
    """Whoever ends it by a signal finds no fault, socket or task left, as after Ctrl-C."""
    # A script has it in the background, where shells have SIGINT ignored, and with it what the others become.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` wants it to go on
        signal.signal(signal.SIGHUP, lambda *_: _lose_the_terminal())


def _lose_the_terminal() -> None:
    """Its window was closed: nobody reads on, and to write there would be an error of whoever does."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):  # the prompt has proxies in the others' place
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
    signal.raise_signal(signal.SIGINT)


def _end_as(command: GuestCommand, run: Path) -> None:
    if command.problem:
        complain(command.problem)
    else:
        print(f"what happened: {NAME} analyze {run}", file=sys.stderr)
    raise typer.Exit(command.exit_status)


def _page(
    tell: Callable[[str], None], port: int | None, *, asked_for: bool
) -> tuple[Callable[[Session], Awaitable[None]], ...]:
    """Who shows the cluster to a browser, if anybody; the port is taken now, before there is a run."""
    if not asked_for and port is None:
        return ()
    from emulator.web.gate import ANY_FREE_PORT, listen
    from emulator.web.server import serve_web

    return (partial(serve_web, listening=listen(port or ANY_FREE_PORT), tell=tell),)


def _tell_how_to_replay(run: Path) -> None:
    if (run / BY_HAND_FILE).exists():
        print(f"do again what was done by hand: {NAME} run {run / BY_HAND_FILE}", file=sys.stderr)
