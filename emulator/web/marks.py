"""The marks of the time line: faults, acts, request storms, and what happened to processes."""

from emulator.analysis.live.storms import StormChange
from emulator.spec.model.scenario import ADMINISTRATOR
from emulator.trace.batches import Row
from emulator.trace.schema import FAULTS, LIFECYCLE, TraceTable
from emulator.web.sections import Entries
from nodes.beliefs import LifecycleEvent
from nodes.units import NS_PER_MS

MARKS_MAX = 400
"""When there are more, the oldest one is forgotten, events of processes first."""
_PROCESS = "process"
_T_NS, _NODE, _ROLE, _EVENT, _DETAIL = (LIFECYCLE.index(name) for name in ("t_ns", "node", "role", "event", "detail"))
_SHOWN = (
    *(LifecycleEvent.READY, LifecycleEvent.STOPPED, LifecycleEvent.CRASHED, LifecycleEvent.KILLED),
    *(LifecycleEvent.POWERED_OFF, LifecycleEvent.SUSPENDED, LifecycleEvent.RESUMED),
)
_FAULT_T_NS, _FAULT_EVENT, _FAULT_ID, _FAULT_KIND, _SUBJECT = (
    FAULTS.index(name) for name in ("t_ns", "event", "fault_id", "kind", "subject")
)


class Marks:
    """Keeps the marks of a run; `to_ms` of what goes on is None.

    Args:
        marks_max: how many are retained.
    """

    def __init__(self, marks_max: int = MARKS_MAX) -> None:
        self._marks_max = marks_max
        self._made = 0
        self._open: dict[object, str] = {}
        """Mapping fault id, exchange or administrator -> key of its mark."""
        self._entries: Entries = {}
        self._changed: dict[str, None] = {}

    def note(self, table: TraceTable, row: Row) -> None:
        """Mark the begin or the end of a fault or an act, or an event of a process; other rows are left out."""
        if table is FAULTS:
            t_ms, fault_id = int(row[_FAULT_T_NS]) // NS_PER_MS, row[_FAULT_ID]
            if row[_FAULT_EVENT] == "begin":
                self._open[fault_id] = self._add("fault", f"{row[_FAULT_KIND]} {row[_SUBJECT]}", t_ms, None)
            else:
                self._end(fault_id, t_ms)
        elif table is LIFECYCLE and row[_ROLE] == ADMINISTRATOR:
            self._on_command(row, int(row[_T_NS]) // NS_PER_MS)
        elif table is LIFECYCLE and row[_EVENT] in _SHOWN:
            t_ms = int(row[_T_NS]) // NS_PER_MS
            self._add(_PROCESS, f"{row[_NODE]} {str(row[_EVENT]).replace('_', ' ')}", t_ms, t_ms)

    def _on_command(self, row: Row, t_ms: int) -> None:
        """Mark an act from the begin of its process to the end."""
        if row[_EVENT] == LifecycleEvent.STARTED:
            self._open[ADMINISTRATOR] = self._add("act", str(row[_DETAIL]).partition(": ")[2], t_ms, None)
        elif row[_EVENT] == LifecycleEvent.STOPPED:
            self._end(ADMINISTRATOR, t_ms)

    def on_storm(self, change: StormChange) -> None:
        """Mark the begin or the end of a request storm."""
        if change.ended:
            self._end(change.exchange, change.second * 1_000)
        else:
            requested = change.exchange
            between = f"{requested.client} -> {requested.server}"
            text = f"request storm: {between} {requested.request} answered {requested.answer}"
            self._open[requested] = self._add("storm", text, change.second * 1_000, None)

    def take_changed(self, now_ms: int) -> Entries:
        """Mapping key -> mark that changed since the last call; None: it was forgotten.

        `shown_ms` of a mark is the instant at which it was taken first: the sections of that instant have its effect.
        """
        for key in self._changed:
            if key in self._entries:
                self._entries[key].setdefault("shown_ms", now_ms)
        changed, self._changed = {key: self._entries.get(key) for key in self._changed}, {}
        return changed

    def _add(self, subject: str, text: str, from_ms: int, to_ms: int | None) -> str:
        self._made += 1
        key = str(self._made)
        self._entries[key] = {"what": subject, "text": text, "from_ms": from_ms, "to_ms": to_ms}
        self._changed[key] = None
        if len(self._entries) > self._marks_max:
            events = (key for key, mark in self._entries.items() if mark["what"] == _PROCESS)
            oldest = next(events, None) or next(iter(self._entries))
            del self._entries[oldest]
            self._changed[oldest] = None
        return key

    def _end(self, of: object, t_ms: int) -> None:
        key = self._open.pop(of, "")
        if key in self._entries:
            self._entries[key] = {**self._entries[key], "to_ms": t_ms}
            self._changed[key] = None
