"""The handle: a running cluster as an object with ordinary methods."""

import shlex
import weakref
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from emulator.handle.engine import Engine
from emulator.handle.history import tell_history
from emulator.handle.ownership import tell_ownership
from emulator.handle.shown import SHOWN
from emulator.handle.so_far import flushed
from emulator.handle.told import Told
from emulator.handle.verb_method import VerbMethod
from emulator.handle.waiting import WaitingLine
from emulator.namesrv_addr import namesrv_addr
from emulator.verbs.desk import Desk
from emulator.verbs.registry import VERBS
from emulator.verbs.verb import Verb, VerbError, say

if TYPE_CHECKING:
    from emulator.analysis.report import Report
    from emulator.analysis.trace_frames import TraceFrames


class ClusterHandle:
    """A running cluster; `emulator.launch` makes one.

    Every verb is a method, with `_` for `-`: `cluster.cut("c1", "broker-a", "one-way")`,
    `cluster.power_off("broker-a")`; `cluster.help()` lists them. In stepped time nothing
    happens between two calls. Also a context manager; it is closed when it is
    left, forgotten, or when Python ends.
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
        """Let emulated time pass; returns when it has.

        An interrupt stops time where it has come to, and harms nothing.

        Args:
            duration_ms: emulated milliseconds, whole and not negative.

        Raises:
            ValueError: no such number.
            ClusterEndedError: the cluster has ended.
            NodeCrashedError: a node's own code raised.
        """
        if isinstance(duration_ms, bool) or duration_ms != int(duration_ms) or duration_ms < 0:
            raise ValueError(f"advance: expected whole milliseconds >= 0, not {duration_ms!r}")
        engine = self._engine
        begin_ms = engine.reached_ms
        with WaitingLine(lambda: (engine.reached_ms - begin_ms) / max(duration_ms, 1)) as line:
            engine.advance(int(duration_ms), line.look)

    # --- verbs ------------------------------------------------------------------

    def __getattr__(self, name: str) -> VerbMethod:
        verb = VERBS.get(name.replace("_", "-"))
        if verb is None or name.startswith("_"):
            raise AttributeError(f"a cluster has no {name}; help() lists its verbs")
        return VerbMethod(verb, self._say)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(name.replace("-", "_") for name in VERBS)])

    def _say(self, verb: Verb, words: tuple[object, ...]) -> Told:
        line = shlex.join([verb.name, *(_word(word) for word in words)])

        engine = self._engine
        show = SHOWN.get(verb.name)

        async def act(desk: Desk) -> Told:
            lines = await engine.let_time_pass(lambda: say(line, desk, VERBS), desk)
            return Told(lines, show(desk, words) if show is not None else "")

        told = engine.call(act)
        if engine.desk.leaving.is_set():
            self.close()
        return told

    @property
    def ownership(self) -> Told:
        """Which consumer owns which queue right now."""
        engine = self._engine

        async def act(desk: Desk) -> Told:
            return tell_ownership(engine.owners, desk.nodes)

        return engine.call(act)

    @property
    def history(self) -> Told:
        """The owners of all queues from the beginning until now, as a picture, with the faults above it."""
        engine = self._engine

        async def act(desk: Desk) -> Told:
            return tell_history(engine.owners, desk.nodes, desk.cluster.world.timeline.now_ns)

        return engine.call(act)

    @property
    def namesrv_addr(self) -> str:
        """`HOST:PORT;...` for programs outside, as RocketMQ's clients take it.

        Raises:
            NoAddressError: time does not pass by itself (`mode="live"`).
        """

        async def act(desk: Desk) -> str:
            return namesrv_addr(desk.cluster)

        return self._engine.call(act)

    def namesrv_addr_of(self, guest: str) -> str:
        """The same for the program of this name, one of the scenario's `guests`: who dials these addresses is it.

        Raises:
            NoAddressError: time does not pass by itself, or the scenario has no such guest.
        """

        async def act(desk: Desk) -> str:
            return namesrv_addr(desk.cluster, guest)

        return self._engine.call(act)

    # --- the trace --------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The run directory; an ordinary run once the cluster is closed."""
        return self._engine.desk.run_directory

    def trace(self) -> "TraceFrames":
        """What has been traced so far, one Spark DataFrame per table: `trace().beliefs`, `trace()["rpc"]`.

        Raises:
            JavaNotFoundError: Spark has no Java to run on.
        """
        from emulator.analysis.notebook_session import notebook_session  # noqa: PLC0415 - Spark takes seconds to import
        from emulator.analysis.trace_frames import TraceFrames  # noqa: PLC0415

        return TraceFrames(flushed(self._engine), notebook_session())

    def report(self) -> "Report":
        """The judged report of what has happened so far; a notebook shows its tables and its picture.

        Raises:
            JavaNotFoundError: Spark has no Java to run on.
        """
        from emulator.analysis.notebook_session import notebook_session  # noqa: PLC0415 - as above
        from emulator.analysis.report import judge  # noqa: PLC0415

        return judge(flushed(self._engine), notebook_session())

    # --- the end ----------------------------------------------------------------

    def close(self) -> Path:
        """Heal everything, stop every process, and make the run directory an ordinary run; returns it.

        What was done by hand stays there as `by_hand.toml`. To close twice does nothing.

        Raises:
            NodeCrashedError: a node's own code raised, and no call has said so yet.
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
    """A word of a verb's line: texts, numbers, enums and paths."""
    if isinstance(word, float) and word.is_integer():
        return str(int(word))
    if not isinstance(word, str | int | float | Path) or isinstance(word, bool):
        raise VerbError(f"expected a text or a number, not {word!r}")
    return str(word)
