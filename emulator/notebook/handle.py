"""The handle of a running cluster: verbs as methods, stepped time, the trace."""

import shlex
import sys
import time
import weakref
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import attrs
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeElapsedColumn

from emulator.base.extra import require_extra
from emulator.base.rich_texts import Console
from emulator.cluster.cluster import endpoints, namesrv_addr, proxy_namesrv_addr
from emulator.console.session import Session
from emulator.console.state_verbs import LOOKING
from emulator.console.verb import Verb, VerbError
from emulator.console.verbs import VERBS
from emulator.guests.address_book import ListenAddresses
from emulator.notebook.engine import Engine, flushed
from emulator.notebook.html import VerbOutput
from emulator.notebook.owners import history_output, ownership_output
from emulator.notebook.shown import SHOWN
from emulator.spec import Scenario, load
from emulator.time.mode import TimeMode
from emulator.trace.schema import TraceLevel
from nodes.fields import TIME_MAX_MS, quoted

if TYPE_CHECKING:
    from emulator.analysis.report import Report
    from emulator.dataset.frames import TraceFrames


_SILENT_S = 2.0
_REDRAWN_EVERY_S = 0.5
_LINE_CHARS = 60
Say = Callable[[Verb[Session], tuple[object, ...]], VerbOutput]


class WaitingLine:
    """A progress bar on stderr for calls longer than 2 s; it is erased at the end.

    rich draws the bar, but it is printed with carriage returns instead of rich's
    live display: a notebook would show that display's control sequences as text, or
    keep an empty widget in its output.

    Args:
        share: returns the completed share of the call, 0..1.
    """

    def __init__(self, share: Callable[[], float]) -> None:
        self._share = share
        self._console = Console(file=StringIO(), width=_LINE_CHARS, no_color=True, force_jupyter=False)
        self._bar = Progress(BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), console=self._console)
        self._task = self._bar.add_task("", total=1.0)
        self._next_s = time.monotonic() + _SILENT_S
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def look(self) -> None:
        """Draw the bar, if the call has lasted long enough."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _REDRAWN_EVERY_S
        self._shown = True
        self._bar.update(self._task, completed=self._share())
        with self._console.capture() as drawn:
            self._console.print(self._bar)
        self._write(drawn.get().rstrip("\n"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._shown:
            self._write(" " * _LINE_CHARS + "\r")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()


class VerbMethod:
    """Executes its verb when it is called; a verb that only looks also when a notebook shows it: `cluster.status`.

    Args:
        verb: of the console.
        say: executes the verb with words.
    """

    def __init__(self, verb: Verb[Session], say: Say) -> None:
        self._verb = verb
        self._print = say
        self.__name__ = verb.name.replace("-", "_")
        self.__doc__ = f"{verb.summary[0].upper()}{verb.summary[1:]}.\n\nWords: {verb.usage or 'none'}"

    def __call__(self, *words: object) -> VerbOutput:
        """Execute the verb.

        Args:
            words: texts, numbers, enums or paths.

        Raises:
            VerbError: the verb failed; nothing has changed.
            ClusterEndedError: the cluster has ended.
            NodeCrashedError: a node's own code raised.
        """
        return self._print(self._verb, words)

    def __repr__(self) -> str:
        return str(self()) if self._shows_itself() else f"{self._verb.line()}: {self._verb.summary}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        if not self._shows_itself():
            return {"text/plain": repr(self)}
        return self()._repr_mimebundle_()

    def _shows_itself(self) -> bool:
        return self._verb in LOOKING and self._verb.minimum == 0


class ClusterHandle:
    """A running cluster; `emulator.launch` makes one.

    Every verb is a method, with `_` for `-`: `cluster.cut("c1", "broker-a", "one-way")`,
    `cluster.power_off("broker-a")`; `cluster.help()` lists them. In stepped time nothing
    happens between two calls. A handle is also a context manager; the cluster is closed
    when the block is left, when the handle is garbage-collected, or when Python exits.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._forget = weakref.finalize(self, engine.abandon)

    # --- time -------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """Emulated milliseconds since the run began."""
        return self._engine.now_ms

    def advance(self, duration_ms: float) -> None:
        """Let emulated time pass.

        An interrupt stops time where it is; the cluster keeps running.

        Args:
            duration_ms: emulated milliseconds, whole and not negative.

        Raises:
            ValueError: the duration is not a whole number >= 0.
            ClusterEndedError: the cluster has ended.
            NodeCrashedError: a node's own code raised.
        """
        if isinstance(duration_ms, bool) or not 0 <= duration_ms <= TIME_MAX_MS or duration_ms != int(duration_ms):
            problem = f"advance: expected whole milliseconds >= 0, not {quoted(duration_ms)}"
            raise ValueError(f"{problem}; {TIME_MAX_MS} at most, which is a year")
        engine = self._engine
        begin_ms = engine.reached_ms
        with WaitingLine(lambda: (engine.reached_ms - begin_ms) / max(duration_ms, 1)) as line:
            engine.advance(int(duration_ms), line.look)

    # --- verbs ------------------------------------------------------------------

    def __getattr__(self, name: str) -> VerbMethod:
        verb = VERBS.get(name.replace("_", "-"))
        if verb is None or name.startswith("_"):
            raise AttributeError(f"a cluster has no {name}; help() lists its verbs")
        return VerbMethod(verb, self._print)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(name.replace("-", "_") for name in VERBS)])

    def _print(self, verb: Verb[Session], words: tuple[object, ...]) -> VerbOutput:
        line = shlex.join([verb.name, *(_word(word) for word in words)])

        engine = self._engine
        show = SHOWN.get(verb.name)

        async def act(session: Session) -> VerbOutput:
            lines = await engine.let_time_pass(lambda: session.say(line), session)
            return VerbOutput(lines, show(session, words) if show is not None else "")

        reported = engine.call(act)
        if engine.session.leaving.is_set():
            self.close()
        return reported

    @property
    def ownership(self) -> VerbOutput:
        """The current owners of all queues."""

        async def act(session: Session) -> VerbOutput:
            return ownership_output(session.state.owners, session.nodes)

        return self._engine.call(act)

    @property
    def history(self) -> VerbOutput:
        """The owners of all queues from the beginning until now, as a picture with the faults."""

        async def act(session: Session) -> VerbOutput:
            return history_output(session.state, session.nodes, session.cluster.world.timeline.now_ns)

        return self._engine.call(act)

    @property
    def namesrv_addr(self) -> str:
        """The nameservers' addresses for guests without a name: `HOST:PORT;...`, as RocketMQ's clients expect.

        Raises:
            NoAddressError: the cluster is not in mode `live`.
        """

        async def act(session: Session) -> str:
            return namesrv_addr(session.cluster)

        return self._engine.call(act)

    def namesrv_addr_of(self, guest: str) -> str:
        """The nameservers' addresses for a named guest of the scenario; a program that uses them is this guest.

        Raises:
            NoAddressError: the cluster is not in mode `live`, or the scenario has no such guest.
        """

        async def act(session: Session) -> str:
            return namesrv_addr(session.cluster, guest)

        return self._engine.call(act)

    def endpoints(self, guest: str | None = None) -> str:
        """The proxies' addresses for clients of RocketMQ 5: `HOST:PORT;...`; empty without proxies.

        Args:
            guest: a named guest of the scenario; None: guests without a name.

        Raises:
            NoAddressError: the cluster is not in mode `live`, or the scenario has no such guest.
        """

        async def act(session: Session) -> str:
            return endpoints(session.cluster, guest)

        return self._engine.call(act)

    def proxy_namesrv_addr(self, guest: str | None = None) -> str:
        """The remoting ports of the proxies: `HOST:PORT;...`, for clients of RocketMQ 4 in place of `namesrv_addr`.

        Args:
            guest: as of `endpoints`.

        Raises:
            NoAddressError: as of `endpoints`.
        """

        async def act(session: Session) -> str:
            return proxy_namesrv_addr(session.cluster, guest)

        return self._engine.call(act)

    # --- the trace --------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The run directory; an ordinary run once the cluster is closed."""
        return self._engine.session.run_directory

    def trace(self) -> "TraceFrames":
        """The trace so far, one Spark DataFrame per table: `trace().beliefs`, `trace()["rpc"]`.

        Raises:
            ExtraMissingError: Spark is not installed.
            JavaNotFoundError: there is no Java for Spark.
        """
        require_extra("trace()")
        from emulator.dataset.frames import TraceFrames  # noqa: PLC0415
        from emulator.dataset.spark import spark_session  # noqa: PLC0415 - Spark takes seconds to import

        return TraceFrames(flushed(self._engine), spark_session())

    def report(self) -> "Report":
        """The judged report of the run so far; a notebook shows its tables and its picture."""
        from emulator.analysis.rendering.shown_report import shown  # noqa: PLC0415 - a launch must not wait for the analysis

        return shown(flushed(self._engine))

    # --- the end ----------------------------------------------------------------

    def close(self) -> Path:
        """End all faults, stop every process, and write the manifest; returns the run directory.

        What was done interactively is saved there in `by_hand.toml`. Closing twice does nothing.

        Raises:
            NodeCrashedError: a node's own code raised, and no call has raised this yet.
            RunError: the trace cannot be written.
        """
        self._engine.close()
        self._forget.detach()
        return self.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._forget()

    def __repr__(self) -> str:
        scenario, engine = self._engine.scenario, self._engine
        head = f"cluster {scenario.name}, {engine.mode}, seed {scenario.seed}"
        if engine.ended:
            return f"{head}: ended at {self.now_ms / 1_000:.3f} s; its trace is in {self.path}"
        return f"{head}\n{self.status()}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        if self._engine.ended:
            return {"text/plain": repr(self)}
        status = self.status()
        return {"text/plain": repr(self), "text/html": status._repr_html_()}


def _word(word: object) -> str:
    """A word of a verb as text.

    Raises:
        VerbError: the word is not a text, number, enum or path.
    """
    if isinstance(word, float) and word.is_integer():
        return str(int(word))
    if not isinstance(word, str | int | float | Path) or isinstance(word, bool):
        raise VerbError(f"expected a text or a number, not {quoted(word)}")
    return str(word)


def launch(
    spec: Scenario | str | Path,
    *,
    mode: TimeMode | str = TimeMode.SIM,
    trace: TraceLevel | str = TraceLevel.FULL,
    seed: int | None = None,
    runs: Path | str = "runs",
    listen: str | None = None,
    grpc: str | None = None,
    allow_code: bool = False,
) -> ClusterHandle:
    """Start a cluster.

    In `sim` and `fast`, time stops at 0 until `advance` lets it pass; the scenario's
    faults begin at their instants, and its end is ignored. In `live`, time follows the
    wall clock.

    Args:
        spec: a scenario, or the path of a scenario file.
        mode: `sim`, `fast` or `live`.
        trace: `full`, `findings` or `counts`: which rows the trace has.
        seed: replaces the scenario's seed.
        runs: directory of all runs.
        listen: in `live`, `HOST:PORT` where guests reach the first nameserver, and the other nodes at the next ports;
            None: each node has a loopback address of its own.
        grpc: in `live`, `HOST:PORT` where clients of RocketMQ 5 reach the first proxy, and the other proxies at the
            next ports; None: with all other ports.
        allow_code: whether a scenario file may run code that it names; a scenario made in Python has its `code`.

    Returns:
        The handle of the cluster; several clusters may run at a time.

    Raises:
        SpecError: the scenario file cannot be read, or the scenario is invalid.
        ValueError: the mode or the level of the trace is unknown.
        RunError: the run directory cannot be written.
        ListenError: guests cannot be listened to there.
    """
    scenario = spec if isinstance(spec, Scenario) else load(spec, allow_code=allow_code)
    if seed is not None:
        scenario = attrs.evolve(scenario, seed=seed)
    try:
        time_mode = TimeMode(mode)
    except ValueError:
        raise ValueError(f"mode: expected {', '.join(TimeMode)}, not {quoted(mode)}") from None
    try:
        level = TraceLevel(trace)
    except ValueError:
        raise ValueError(f"trace: expected {', '.join(TraceLevel)}, not {quoted(trace)}") from None
    engine = Engine(scenario, time_mode, level, Path(runs), ListenAddresses.parse(listen, grpc))
    engine.start()
    return ClusterHandle(engine)
