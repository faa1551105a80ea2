"""Smaller scenarios that fail in the same way: parts are left out one at a time, as long as the failure remains."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from emulator.spec import SpecError
from fuzz.random_scenario import Tables, scenario_of

_PARTS = ("fault", "nemesis", "producer", "consumer", "broker", "topic", "nameserver")
_RUNS_MOST = 300
_SHORTEST_MS = 2_000
_NEEDED = ("name", "group", "names", "topics", "brokers", "topic", "kind", "at_ms", "every_ms", "least_ms", "seed")


def shrunk(tables: Tables, fails: Callable[[Tables], bool], runs_most: int = _RUNS_MOST) -> Tables:
    """The smallest tables found that still fail.

    Args:
        tables: of a scenario that fails.
        fails: whether the scenario of some tables fails in the same way; it is run.
        runs_most: number of scenarios that are tried.
    """
    runs = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(tables):
            if runs >= runs_most:
                return tables
            if not _is_valid(candidate):
                continue
            runs += 1
            if fails(candidate):
                tables, smaller = candidate, True
                break
    return tables


def _is_valid(tables: Tables) -> bool:
    try:
        scenario_of(tables)
    except SpecError:
        return False
    return True


def _smaller(tables: Tables) -> Iterator[Tables]:
    """The tables without one of their parts; the largest parts first."""
    for path in (*_whole_tables(tables), *_names(tables), *_keys(tables)):
        yield _without(tables, path)
    if tables["scenario"]["run_for_ms"] > _SHORTEST_MS:
        shorter = copy.deepcopy(tables)
        shorter["scenario"]["run_for_ms"] = tables["scenario"]["run_for_ms"] * 3 // 4
        yield shorter


def _whole_tables(tables: Tables) -> Iterator[tuple[Any, ...]]:
    for part in _PARTS:
        for index in range(len(tables.get(part, ()))):
            yield part, index


def _names(tables: Tables) -> Iterator[tuple[Any, ...]]:
    for part in ("consumer", "topic"):
        for index, table in enumerate(tables.get(part, ())):
            for key in ("names", "topics", "brokers"):
                for place in range(len(table.get(key, ()))):
                    yield part, index, key, place


def _keys(tables: Tables) -> Iterator[tuple[Any, ...]]:
    for part in _PARTS:
        for index, table in enumerate(tables.get(part, ())):
            for key in table.get("options", ()):
                yield part, index, "options", key
            for key in table:
                if key not in _NEEDED and key != "options":
                    yield part, index, key
    for part in ("network", "scenario"):
        for key in tables.get(part, ()):
            if key not in (*_NEEDED, "run_for_ms"):
                yield part, key


def _without(tables: Tables, path: tuple[Any, ...]) -> Tables:
    smaller = copy.deepcopy(tables)
    holder: Any = smaller
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return smaller
