"""Shrinking: faults, their durations, acts, nodes, settings, and the length of the run, again and again."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from emulator.shrinking.ddmin import minimised
from emulator.shrinking.search import OutOfRunsError, Search, ShrinkRun, Tables
from emulator.spec import Scenario, to_dict
from emulator.spec.reading.differences import ScenarioDifference, differences
from emulator.spec.reading.faults import write_plan
from nodes.units import MS_PER_S

RUNS_MAX = 300
_SHORTEST_RUN_MS = 1_000
_FINEST_PART = 16
"""A number is not lowered by less than this part of it."""
_NODES = ("producer", "statefulset", "consumer", "topic", "broker", "domain", "nameserver")
"""In this order, since each may be needed by those before it."""
_LISTS = (("consumer", "names"), ("consumer", "topics"), ("topic", "brokers"))
_NUMBERS = (("topic", "queues"), ("producer", "rate_per_s"), ("producer", "messages"), ("statefulset", "replicas"))
_NO_SETTINGS = (
    *("name", "group", "node", "id", "names", "topics", "brokers", "topic", "queues", "rate_per_s", "options"),
    *("seed", "run_for_ms", "share_process_with", "replicas", "messages"),
)
"""Keys whose absence would not make a scenario simpler, or would make it another one."""
_NO_DETAILS = ("id", "kind", "at_ms")
"""Keys of an act that make it what it is."""
Path = tuple[str | int, ...]
"""Keys and positions that lead to a value inside tables."""


@attrs.frozen
class Shrunk:
    """The result of shrinking."""

    scenario: Scenario
    """The smallest scenario found; it fails."""
    removed: tuple[str, ...]
    """What it lacks of the scenario that was given, a line each; empty: nothing."""
    runs: int
    """Number of scenarios that were run."""
    is_minimal: bool
    """No single fault, act, node or setting can be left out; False: the search ended before that was known."""


class ShrinkingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended the search after something had been found; `shrunk` is the smallest scenario so far."""

    def __init__(self, shrunk: Shrunk) -> None:
        super().__init__("interrupted")
        self.shrunk = shrunk


def shrink(
    scenario: Scenario,
    fails: Callable[[Scenario], bool],
    *,
    likely: Sequence[str] = (),
    runs_max: int = RUNS_MAX,
    progress: Callable[[ShrinkRun], None] | None = None,
) -> Shrunk:
    """Find a small scenario that fails in the same way.

    Nemeses are replaced by the faults that the seed draws for them, if it still fails then, so that each can be left
    out. Every candidate is valid, and none is run twice.

    Args:
        scenario: that fails.
        fails: runs a scenario and says whether it fails in the same way; the same scenario must give the same answer.
        likely: ids of faults that probably matter, such as those that a trace names as causes; they
            decide what is tried first, not what is found.
        runs_max: largest number of runs, at least 1.
        progress: called after each run, with the smallest scenario so far.

    Raises:
        NothingToShrinkError: the scenario does not fail.
        ShrinkingInterrupted: Ctrl-C, after the scenario that was given has failed.
    """
    search = Search(scenario, fails, runs_max, likely, progress)
    search.begin()
    given, is_minimal = scenario, True
    try:
        given = _with_drawn_faults(search)
        before = None
        while before != search.smallest:
            before = search.smallest
            for search.looks_at, make_smaller in _STAGES.items():
                make_smaller(search)
    except OutOfRunsError:
        is_minimal = False
    except KeyboardInterrupt:
        smallest = search.smallest
        raise ShrinkingInterrupted(Shrunk(smallest, _removed(given, smallest), search.runs, is_minimal=False)) from None
    return Shrunk(search.smallest, _removed(given, search.smallest), search.runs, is_minimal)


def _with_drawn_faults(search: Search) -> Scenario:
    """Replace nemeses by the faults that were drawn for them, if it still fails; returns the scenario then."""
    if search.smallest.nemeses:
        tables = search.tables() | {"fault": write_plan(search.smallest.plan())}
        del tables["nemesis"]
        search.looks_at = "faults"
        search.fails(tables)
    return search.smallest


def _fewer_faults(search: Search) -> None:
    _fewer(search, ("nemesis",))
    places = {timed.id: place for place, timed in enumerate(search.smallest.faults.faults)}
    likely = dict.fromkeys(search.likely)
    _fewer(search, ("fault",), likely=[places[fault_id] for fault_id in likely if fault_id in places])


def _shorter_faults(search: Search) -> None:
    for place, timed in enumerate(search.smallest.faults.faults):
        _lower(search, ("fault", place, "for_ms"), timed.for_ms or search.smallest.run_for_ms - timed.at_ms)


def _fewer_acts(search: Search) -> None:
    """Leave acts out, have those that stay happen earlier, and simplify what they say."""
    _fewer(search, ("admin",))
    for place, table in enumerate(search.tables().get("admin", ())):
        _lower(search, ("admin", place, "at_ms"), table["at_ms"])
        for key, value in table.items():
            if key not in _NO_DETAILS:
                _simplify(search, ("admin", place, key), value)


def _simplify(search: Search, path: Path, value: Any) -> None:
    """Leave a value out, so that its default counts; else shorten a list or a table, or lower a number."""
    tables = search.tables()
    del _at(tables, path[:-1])[path[-1]]
    if search.fails(tables):
        return
    if isinstance(value, list):
        _fewer(search, path)
    elif isinstance(value, dict):
        for name in value:
            smaller = search.tables()
            del _at(smaller, path)[name]
            search.fails(smaller)
    elif type(value) is int and value > 1:
        _lower(search, path, value)


def _fewer_nodes(search: Search) -> None:
    for section, key in _LISTS:
        for place in range(len(search.tables()[section])):
            if search.tables()[section][place].get(key):
                _fewer(search, (section, place, key), minimum=1)
    for section in _NODES:
        _fewer(search, (section,))
    if "address_server" in search.tables():
        search.fails({section: table for section, table in search.tables().items() if section != "address_server"})
    for section, key in _NUMBERS:
        for place, table in enumerate(search.tables().get(section, ())):
            if key in table and not search.fails(_changed(search.tables(), (section, place, key), 1)):
                _lower(search, (section, place, key), table[key])


def _fewer_settings(search: Search) -> None:
    tables = search.tables()
    paths = [*_settings(tables)]

    def fails_with(retained: Sequence[int]) -> bool:
        smaller = copy.deepcopy(tables)
        for place, path in enumerate(paths):
            if place not in retained:
                del _at(smaller, path[:-1])[path[-1]]
        return search.fails(smaller)

    minimised(range(len(paths)), fails_with)


def _settings(tables: Tables) -> Iterator[Path]:
    """The paths of all keys that have a default."""
    for section in ("scenario", "network", "guest_limits"):
        yield from ((section, key) for key in tables.get(section, ()) if key not in _NO_SETTINGS)
    for section in _NODES:
        for place, table in enumerate(tables.get(section, ())):
            yield from ((section, place, "options", key) for key in table.get("options", ()))
            yield from ((section, place, key) for key in table if key not in _NO_SETTINGS)


def _shorter_run(search: Search) -> None:
    _lower(search, ("scenario", "run_for_ms"), search.smallest.run_for_ms, minimum=_SHORTEST_RUN_MS)


def _fewer(search: Search, path: Path, *, likely: Sequence[int] = (), minimum: int = 0) -> None:
    """Leave out items of a list."""
    tables = search.tables()
    items = _at(tables, path) if path[0] in tables else []
    minimised(
        range(len(items)),
        lambda retained: search.fails(_changed(tables, path, [items[place] for place in retained])),
        likely=likely,
        minimum=minimum,
    )


def _lower(search: Search, path: Path, number: int, minimum: int = 1) -> None:
    """Halve a number as long as it fails, then take away less and less of it, down to a sixteenth."""
    less = number // 2
    while less >= max(1, number // _FINEST_PART):
        smaller = _whole_seconds(number - less)
        if smaller >= minimum and search.fails(_changed(search.tables(), path, smaller)):
            number = smaller
        else:
            less //= 2


def _whole_seconds(number: int) -> int:
    """Rounded down to thousands, since 37000 ms is easier to read than 37500; smaller numbers stay."""
    return number - number % MS_PER_S if number > MS_PER_S else number


def _changed(tables: Tables, path: Path, value: Any) -> Tables:
    changed = copy.deepcopy(tables)
    _at(changed, path[:-1])[path[-1]] = value
    return changed


def _at(tables: Tables, path: Path) -> Any:
    value: Any = tables
    for step in path:
        value = value[step]
    return value


_STAGES: Mapping[str, Callable[[Search], None]] = {
    "faults": _fewer_faults,
    "durations": _shorter_faults,
    "acts": _fewer_acts,
    "nodes": _fewer_nodes,
    "settings": _fewer_settings,
    "length": _shorter_run,
}


def _removed(given: Scenario, smallest: Scenario) -> tuple[str, ...]:
    """What a smaller scenario lacks, a line each."""
    found = differences(given, smallest)
    gone = Counter(item.section for item in found if not item.key)
    tables = to_dict(given)
    sections = [section for section in ("fault", "nemesis", "admin", *_NODES) if gone[section]]
    lines = [_gone(section, gone[section], len(tables[section]), found) for section in sections]
    return (*lines, *(item.became() for item in found if item.key))


def _gone(section: str, count: int, of: int, found: Sequence[ScenarioDifference]) -> str:
    names = ", ".join(name for item in found if item.section == section and not item.key for name in item.names)
    return f"{count} of {of} [[{section}]]: {names}"
