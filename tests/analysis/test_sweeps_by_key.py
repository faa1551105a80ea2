"""A sweep finds by the rows of its key alone what it finds where one pass feeds all keys together.

That is what lets a sweep run where the rows of each key come sorted from a table, one key after the other: the shared
inputs have read the whole run before, so a sweep must ask them by seq or by instant.
"""

from itertools import groupby
from operator import attrgetter, itemgetter

import attrs
import pytest

from analysis.busy_traces import BROKER_NAMES, busy_trace
from analysis.random_traces import END_S
from analysis.trace_rows import SECOND, RowsOf
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.oracles.delayed_messages import WaitSweeps
from emulator.analysis.oracles.elections import ElectionSweeps
from emulator.analysis.oracles.lock_order import LockSweeps
from emulator.analysis.oracles.popped_messages import PopSweeps
from emulator.analysis.oracles.transactions import TransactionSweeps
from emulator.history.rows.feed import Watcher, watch
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP, PASSES

END_NS = END_S * SECOND
FACTS = RunFacts(END_NS, broker_names=BROKER_NAMES, consume_ms={"g": 300, "h": 0}, ordered=("g",))

FINDINGS = {
    "QueueSweep": attrgetter("holds", "overlaps", "orphans"),
    "SubjectSweep": attrgetter("found"),
    "QueueProgress": attrgetter("found"),
    "OffsetSweep": attrgetter("found"),
    "ServiceSweep": attrgetter("found"),
    "LockSweep": attrgetter("found"),
    "PopSweep": lambda sweep: sweep.found() if sweep.found().popped else (),
    "KeySweep": attrgetter("found", "moved", "overtaken_ns", "two"),
    "WaitSweep": lambda sweep: (sweep.row, sweep.due_ns, sweep.delivered_ns, sweep.recalled, sweep.dropped),
    "TransactionSweep": lambda sweep: (
        *(sweep.first, sweep.half, sweep.decided_ns, sweep.committed_ns, sweep.rolled_back_ns, sweep.unasked),
    ),
    "ElectionSweep": lambda sweep: list(sweep.found),
}
"""Mapping class -> what one of its sweeps has found when it is closed."""


class Now(Watcher):
    """The instant that is being read."""

    def __init__(self):
        self.t_ns = 0

    def readers(self):
        return dict.fromkeys((LIFECYCLE, BELIEFS, OWNERSHIP, PASSES, MESSAGES), self._read)

    def _read(self, row):
        self.t_ns = row.t_ns


class Noted:
    """A sweep that notes what it is fed with."""

    def __init__(self, sweep, now):
        self.sweep = sweep
        self.fed = []
        """Instant, name of the method, its arguments."""
        self._now = now

    def feed(self, row):
        self.fed.append((self._now.t_ns, "feed", (row,)))
        self.sweep.feed(row)

    def repeat(self):
        self.fed.append((self._now.t_ns, "repeat", ()))
        self.sweep.repeat()

    def __getattr__(self, name):
        return getattr(self.sweep, name)


@attrs.frozen
class Pass:
    """One pass over a trace, in which all keys are fed together."""

    changes: tuple
    """Instants at which shared inputs may have changed."""
    sweeps: dict
    """Mapping class -> key -> its sweep, and what it was fed with."""
    makers: dict
    """Mapping class -> function that makes a sweep for a key, which asks the shared inputs of this pass."""


def passed(trace):
    inputs, now = SharedInputs(FACTS), Now()
    of_oracles = LockSweeps(inputs.presence), PopSweeps(inputs.presence), WaitSweeps(), TransactionSweeps(FACTS.node_of)
    of_inputs = inputs.owners, inputs.holdings, inputs.progress, inputs.offsets, inputs.services, inputs.keys
    every = (*of_inputs, *of_oracles, ElectionSweeps())
    makers = {}
    for watcher in every:
        make = watcher._make
        watcher._make = lambda key, make=make: Noted(make(key), now)
        makers[watcher] = make
    watchers = (now, *inputs.watchers, *of_oracles, every[-1])
    watch(RowsOf(trace), watchers)
    for watcher in watchers:
        watcher.finish(END_NS)
    found = {type(next(iter(item.of.values())).sweep).__name__: item for item in every if item.of}
    return Pass(
        changes=tuple(_changes(trace)),
        sweeps={name: item.of for name, item in found.items()},
        makers={name: makers[item] for name, item in found.items()},
    )


def _changes(trace):
    for table in (LIFECYCLE, BELIEFS):
        yield from (row[1] for row in trace.rows[table.name])
    event = OWNERSHIP.index("event")
    yield from (row[1] for row in trace.rows[OWNERSHIP.name] if row[event].startswith("pop_"))


def alone(sweep, fed, changes):
    """Feed a sweep with its rows; it settles whenever rows came or shared inputs changed."""
    looks = dict.fromkeys(changes)
    steps = [(t_ns, 0, call) for t_ns, *call in fed] + [(t_ns, 1, ()) for t_ns in looks]
    for t_ns, of_instant in groupby(sorted(steps, key=itemgetter(0, 1)), key=itemgetter(0)):
        for _, _, call in of_instant:
            if call:
                getattr(sweep, call[0])(*call[1])
        if t_ns in looks and hasattr(sweep, "recheck"):
            sweep.recheck()
        sweep.settle(t_ns)
    sweep.close(END_NS)
    return sweep


@pytest.fixture(scope="module", params=[20, pytest.param(60, marks=pytest.mark.slow)])
def passes(request):
    return [passed(busy_trace(seed)) for seed in range(request.param)]


@pytest.mark.parametrize("name", FINDINGS)
def test_a_sweep_finds_by_the_rows_of_its_key_alone_what_it_finds_among_all_keys(passes, name):
    findings, seen = FINDINGS[name], 0
    for seed, item in enumerate(passes):
        for key, noted in item.sweeps.get(name, {}).items():
            expected = findings(noted.sweep)
            assert findings(alone(item.makers[name](key), noted.fed, item.changes)) == expected, f"trace {seed}, {key}"
            seen += any(expected) if isinstance(expected, tuple | list) else bool(expected)
    assert seen > len(passes) / 2, "the random traces are too tame to prove anything"
