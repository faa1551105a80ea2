"""Processes: when each began, ended, was suspended and ran on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import LifeRow, Process
from emulator.history.steps import Steps
from emulator.trace.schema import LIFECYCLE, TraceTable
from nodes.beliefs import PROCESS_ENDS, LifecycleEvent

ENDS = tuple(event.value for event in PROCESS_ENDS)
NEVER = (1 << 63) - 1
"""An instant, or a seq, that no run reaches."""
BEGINS = (LifecycleEvent.STARTED.value, LifecycleEvent.READY.value)
AWAY = (*ENDS, LifecycleEvent.SUSPENDED.value)
"""Events from which on a process does nothing."""
BACK = (LifecycleEvent.STARTED.value, LifecycleEvent.RESUMED.value)
"""Events from which on the process of a node does something again."""


@attrs.define
class _Life:
    begun_ns: int = NEVER
    dead_seq: int = NEVER
    dead_ns: int = NEVER
    asleep: Steps[bool] = attrs.Factory(lambda: Steps(initial=False))
    last_sleep: Steps[tuple[int, int] | None] = attrs.Factory(lambda: Steps(None))
    """When the process was suspended, and resumed."""


class Processes(Watcher):
    """The lives of processes."""

    settles_after_messages: ClassVar[bool] = False

    def __init__(self) -> None:
        self._lives: dict[Process, _Life] = {}
        self._incarnations: dict[str, dict[int, None]] = {}
        self._ended: dict[str, Steps[int]] = {}
        """Mapping node -> instant at which its last process ended; -1: none has."""
        self._end_instants: dict[int, None] = {}
        self._sleepers: Steps[int] = Steps(0)
        self.stirred: dict[Process, None] = {}
        """Processes that ended, were suspended or resumed in the instant that is being read."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads lives."""
        return {LIFECYCLE: self.live}

    def settle(self, t_ns: int) -> None:  # noqa: ARG002 - it only forgets
        """Forget who stirred in this instant."""
        self.stirred.clear()

    # --- questions --------------------------------------------------------------------

    def is_dead(self, process: Process, seq: int) -> bool:
        """Whether a process had ended before the row with this seq."""
        life = self._lives.get(process)
        return life is not None and life.dead_seq < seq

    def has_ended(self, process: Process, t_ns: int) -> bool:
        """Whether a process had ended after all rows of an instant."""
        life = self._lives.get(process)
        return life is not None and life.dead_ns <= t_ns

    def is_gone(self, process: Process) -> bool:
        """Whether a process had ended before the instant that is being read."""
        return self.is_dead(process, NEVER) and process not in self.stirred

    def is_awake(self, process: Process, t_ns: int) -> bool:
        """Whether a process was neither suspended nor ended after all rows of an instant."""
        life = self._lives.get(process)
        return life is None or not (life.dead_ns <= t_ns or life.asleep.at(t_ns))

    def has_begun(self, process: Process, t_ns: int) -> bool:
        """Whether a process had begun after all rows of an instant."""
        return self.begun_ns(process) <= t_ns

    def incarnations(self, node: str) -> Iterable[int]:
        """The processes of a node, by number."""
        return self._incarnations.get(node, ())

    def changes_ns(self, process: Process) -> Sequence[int]:
        """When a process began, was suspended or resumed, or ended."""
        life = self._lives.get(process)
        return () if life is None else (life.begun_ns, *life.asleep.times_ns, life.dead_ns)

    def is_alive(self, node: str) -> bool:
        """Whether the newest process of a node has begun and not ended, by the rows so far."""
        newest = max(self._incarnations.get(node, ()), default=-1)
        life = self._lives.get((node, newest))
        return life is not None and life.begun_ns < NEVER and life.dead_ns == NEVER

    def any_ended_at(self, t_ns: int) -> bool:
        """Whether a process ended at this very instant."""
        return t_ns in self._end_instants

    def begun_ns(self, process: Process) -> int:
        """When a process began; `NEVER`: no row says it."""
        life = self._lives.get(process)
        return NEVER if life is None else life.begun_ns

    def ended_ns(self, node: str, seq: int) -> int | None:
        """When the last process of a node ended before a row; None: none had."""
        ended = self._ended.get(node)
        return None if ended is None or ended.before(seq) < 0 else ended.before(seq)

    def suspended_until(self, process: Process, seq: int, t_ns: int) -> int | None:
        """When a process was suspended that was resumed at this very instant, before a row; None: it was not."""
        life = self._lives.get(process)
        span = None if life is None else life.last_sleep.before(seq)
        return span[0] if span is not None and span[1] == t_ns else None

    def anybody_sleeps(self, t_ns: int) -> bool:
        """Whether any process was suspended after all rows of an instant."""
        return self._sleepers.at(t_ns) > 0

    def forget(self) -> None:
        """Forget what was before the present instant."""
        self._sleepers.forget()
        for ended in self._ended.values():
            ended.forget()
        for life in self._lives.values():
            life.asleep.forget()
            life.last_sleep.forget()
        self._end_instants = dict.fromkeys([*self._end_instants][-1:])

    # --- rows ---------------------------------------------------------------------------

    def live(self, row: LifeRow) -> None:
        """Something happened to a process."""
        process = row.node, row.incarnation
        life = self._lives.setdefault(process, _Life())
        self._incarnations.setdefault(row.node, {})[row.incarnation] = None
        if row.event in ENDS:
            self._sleep(life, row, asleep=False)
            life.dead_seq, life.dead_ns = min(life.dead_seq, row.seq), min(life.dead_ns, row.t_ns)
            self._end_instants[row.t_ns] = None
            self._ended.setdefault(row.node, Steps(-1)).set(row.seq, row.t_ns, row.t_ns)
        elif row.event in (LifecycleEvent.SUSPENDED, LifecycleEvent.RESUMED):
            self._sleep(life, row, asleep=row.event == LifecycleEvent.SUSPENDED)
        elif row.event in BEGINS and life.dead_seq == NEVER:
            life.begun_ns = min(life.begun_ns, row.t_ns)
            return
        else:
            return
        self.stirred[process] = None

    def _sleep(self, life: _Life, row: LifeRow, *, asleep: bool) -> None:
        if row.event == LifecycleEvent.RESUMED:
            since_ns = life.asleep.last_ns if life.asleep.last else row.t_ns
            life.last_sleep.set(row.seq, row.t_ns, (since_ns, row.t_ns))
        if life.asleep.last is not asleep:
            life.asleep.set(row.seq, row.t_ns, asleep)
            self._sleepers.set(row.seq, row.t_ns, self._sleepers.last + (1 if asleep else -1))
