"""Following a run that is under way: the rows that are new on disk feed the watchers of the oracles, each row once.

The place behind the last row that was reported is in the checkpoint, so another process goes on there. The state of
the watchers follows from the rows, which the run directory has: it is stored every ten seconds, and a restart reads the
rows behind it again.

One run needs no Spark: this process reads its rows as fast as an emulator writes them. Several runs are followed by a
query of Spark (`emulator.dataset.following_runs`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from emulator.analysis.inputs.facts import facts_of
from emulator.analysis.live.changes import READS, DifferenceChange, LiveWatch
from emulator.analysis.live.checkpoint import Checkpoint, RunProgress, StoredWatch
from emulator.base.errors import UserError
from emulator.base.files import LISTING_BYTES_MAX, read_bytes
from emulator.spec import from_dict
from emulator.spec.model.addresses import owners
from emulator.time.mode import TimeMode
from emulator.trace.index import INDEX, read_index
from emulator.trace.run_directory import MANIFEST, RunDirectory, RunEnd, is_under_way, open_run
from emulator.trace.schema import TraceLevel
from emulator.trace.segments import FOLDER
from emulator.trace.tail import TracePlace, TraceTail

BEGINS_WITHIN_S = 5.0
"""Wall seconds that a run may take to begin."""
_LOOK_EVERY_S = 0.1
_ROWS_MAX = 20_000
"""Most rows that are read at a time."""
_STORE_EVERY_S = 10.0
"""How often the watchers are stored, in wall seconds."""
_RESTS_AFTER_S, _STANDS_AFTER_S = 1.2, 3.0
"""Wall seconds without a row after which an instant is over: longer than an emulator keeps rows for itself. In virtual
time, which may stand still between two rows of an instant, somebody then waits for the next step."""
PrintChanges = Callable[[Sequence[DifferenceChange]], None]


class WatchError(UserError):
    """A run cannot be followed; the text says why and what can be done in one line."""


def open_watched(path: Path, patience_s: float = BEGINS_WITHIN_S) -> RunDirectory:
    """Open a run to follow it; one that is about to begin is waited for.

    Args:
        path: the run directory.
        patience_s: how long at most, in wall seconds.

    Raises:
        NotARunError: no run began there, or it cannot be read by this version.
        DamagedRunError: files are missing or were changed.
        WatchError: the level of its trace leaves out what is watched.
    """
    give_up_s = time.monotonic() + patience_s
    while not _has_begun(path) and time.monotonic() < give_up_s:
        time.sleep(_LOOK_EVERY_S)
    run = open_run(path)
    if run.level is TraceLevel.COUNTS:
        raise WatchError(
            f"{path} has a trace of level {run.level}, without views and owners: expected findings or full"
        )
    return run


def _has_begun(path: Path) -> bool:
    if (path / MANIFEST).exists():
        return True
    try:
        return is_under_way(path)
    except OSError:
        return False


def recorded_names(run: Path) -> Mapping[str, str]:
    """Mapping address, or client id of a guest -> node, as the index of a run has them now; it may be empty."""
    names: Mapping[str, str] = (
        read_index(read_bytes(run / FOLDER / INDEX, LISTING_BYTES_MAX)).head.get("addresses") or {}
    )
    return names


class Following:
    """Follows one run.

    Args:
        run: from `open_watched`.
        checkpoint: of the run.
        print_changes: called with changes, in order.

    Raises:
        WatchError: the run had ended before anybody followed it.
        CheckpointError: the checkpoint is that of another run, or in use.
        OSError: the checkpoint cannot be created.
    """

    def __init__(self, run: RunDirectory, checkpoint: Checkpoint, print_changes: PrintChanges) -> None:
        if run.ended is not RunEnd.UNDER_WAY and not checkpoint.progress.place.rows:
            raise WatchError(f"{run.path} has ended, there is nothing to watch: rmqemu analyze {run.path}")
        checkpoint.claim()
        self._run = run
        self._checkpoint = checkpoint
        self._print_changes = print_changes
        self._scenario = from_dict(run.manifest["scenario"], "the scenario of the run")
        self._watch = LiveWatch(facts_of(self._scenario, 0).broker_names)
        self._place = TracePlace()
        self._tail = TraceTail(run.path)
        self._rebuild(checkpoint.progress)
        self._read_at_s = time.monotonic()
        self._store_at_s = self._read_at_s
        """When the watchers are stored next."""
        self.end: RunDirectory | None = None
        """The run when it has ended; None: it is under way."""

    # --- questions ------------------------------------------------------------------------

    @property
    def rows(self) -> Mapping[str, int]:
        """Mapping table -> number of rows that were read, those before the checkpoint included."""
        return dict(self._watch.rows)

    @property
    def reached_ns(self) -> int:
        """Emulated time of the last row that was read."""
        return self._watch.reached_ns

    @property
    def differences(self) -> tuple[DifferenceChange, ...]:
        """What differs now."""
        return self._watch.differences

    @property
    def names(self) -> Mapping[str, str]:
        """Mapping address, or client id of a guest -> node, as the index notifies them now."""
        return recorded_names(self._run.path) or owners(self._scenario)

    # --- following ------------------------------------------------------------------------

    def goes_on(self) -> bool:
        """Read what is new, and return whether more may come.

        When no row comes for a while, and at the end of the run, the changes of its last instant are reported.

        Raises:
            DamagedRunError: the trace was damaged meanwhile.
            OSError: it cannot be read, what is reported cannot be printed, or the checkpoint cannot be written.
        """
        has_read = self._read()
        if self._goes_on():
            if not has_read:
                self._rest()
            return True
        self.stop()
        self._report_the_last(time_passes=False)
        return False

    def stop(self) -> None:
        """Stop reading; the checkpoint can be used again."""
        self._tail.close()
        self._checkpoint.release()

    def _goes_on(self) -> bool:
        if self.end is None and not is_under_way(self._run.path):
            self.end = open_run(self._run.path)
        return self.end is None or self._place.rows < sum(self.end.trace.counts().values())

    def _rest(self) -> None:
        """Report the last instant if the emulator has written no row for a while."""
        silent_s = time.monotonic() - self._read_at_s
        is_over = silent_s >= (_RESTS_AFTER_S if self._is_live else _STANDS_AFTER_S)
        if is_over and self._place.rows and not self._checkpoint.progress.rested:
            self._report_the_last(time_passes=self._is_live)

    def _report_the_last(self, *, time_passes: bool) -> None:
        if not self._checkpoint.progress.rested:
            self._print_changes(tuple(self._watch.rest(time_passes=time_passes)))
            self._checkpoint.save(attrs.evolve(self._checkpoint.progress, rested=True))

    @property
    def _is_live(self) -> bool:
        return bool(self._run.manifest["mode"] == TimeMode.LIVE)

    def _rebuild(self, until: RunProgress) -> None:
        """Read the rows before the checkpoint, which have been reported, without those before the stored watchers."""
        t_ns, place = self._restore(until), until.place
        while self._place.rows < place.rows:
            found, self._place = self._tail.read(self._place, min(_ROWS_MAX, place.rows - self._place.rows))
            if not found:
                break
            for _, table, row in found:
                t_ns = int(row[1])
                for _ in self._watch.take(table.name, t_ns, row if table.name in READS else None):
                    pass
        if until.rested:
            for _ in self._watch.rest(time_passes=self._is_live):
                pass
        if (self._place, t_ns) != (place, until.t_ns):
            self._checkpoint.release()
            raise self._checkpoint.other_run()

    def _restore(self, until: RunProgress) -> int:
        """Take up the stored watchers, if their last row is in the run; its time, or 0."""
        stored = self._checkpoint.stored_watch()
        if stored is None or stored.place.rows > until.place.rows:
            return 0
        found, place = self._tail.read(stored.before, 1)
        if not found or place != stored.place:
            return 0
        self._watch, self._place = stored.watch, place
        return int(found[0].row[1])

    def _read(self) -> bool:
        """Read the rows that are new, report what they change, and remember that; returns whether there were any."""
        found, place = self._tail.read(self._place, _ROWS_MAX)
        if not found:
            return False
        changes: list[DifferenceChange] = []
        for _, table, row in found:
            changes += self._watch.take(table.name, int(row[1]), row if table.name in READS else None)
        if changes:
            self._print_changes(changes)
        self._checkpoint.save(RunProgress(place, int(found[-1].row[1])))
        self._read_at_s = time.monotonic()
        if self._read_at_s >= self._store_at_s:
            before = self._place
            for _, table, row in found[:-1]:
                before = before.after(table.name, int(row[0]))
            self._checkpoint.save_watch(StoredWatch(before, place, self._watch))
            self._store_at_s = self._read_at_s + _STORE_EVERY_S
        self._place = place
        return True
