"""What could be typed next, read from the usage of the verbs."""

import re
from collections.abc import Iterable

from emulator.verbs.desk import Desk
from emulator.verbs.looking import ALL, shared_subjects
from faults.catalogue import CHAOS_NAMES
from faults.link import Stage
from faults.whom import ROLES
from nodes.protocol.codes import RequestCode

_WORD = re.compile(r"[A-Za-z][A-Za-z-]*")
_NODES = ("NODE", "NODES", "A", "B", "CONDITION")


def completions(desk: Desk, line: str) -> tuple[str, ...]:
    """The words that could stand where a line ends, those that begin as it does."""
    before, _, begun = line.rpartition(" ")
    words = before.split()
    if words[:1] == ["at"] and len(words) >= 2:
        words = words[2:]
    offered = desk.verbs if not words else _offered(desk, words[0])
    return tuple(dict.fromkeys(word for word in offered if word.startswith(begun)))


def _offered(desk: Desk, name: str) -> Iterable[str]:
    if name not in desk.verbs:
        return
    for word in _WORD.findall(desk.verbs[name].usage):
        if word.islower():
            yield word
        else:
            yield from _filling(desk, word)


def _filling(desk: Desk, word: str) -> Iterable[str]:
    if word in _NODES:
        yield from desk.cluster.hosts
        yield from desk.cluster.scenario.guests
        yield from ROLES if word == "NODES" else ()
    elif word == "FAULT":
        yield from desk.operator.active
    elif word == "SUBJECT":
        yield from (subject for _, subject in shared_subjects(desk))
        yield ALL
    elif word in ("GROUP", "G"):
        yield from (spec.group for spec in desk.cluster.scenario.consumers)
    elif word in ("TOPIC", "T"):
        yield from (spec.name for spec in desk.cluster.scenario.topics)
    elif word == "CODE":
        yield from (code.name for code in RequestCode)
    elif word == "STAGE":
        yield from Stage
    elif word == "NAME":
        yield from CHAOS_NAMES
    elif word == "VERB":
        yield from desk.verbs
