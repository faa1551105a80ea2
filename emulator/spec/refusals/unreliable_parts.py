"""What the mistakes of a file's tables leave in doubt, so that nothing is reported that only follows from them."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.violations import PORT
from emulator.spec.tables.mistakes import NameMistakeError, Reading, SpecError, UnknownKeyError, paths_to

_NODES = ("nameserver", "controller", "broker", "consumer", "producer", "statefulset", "scenario", "address_server")
_NAMED_IN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "node": _NODES,
        "broker": ("broker",),
        "topic": ("topic",),
        "domain name": ("domain",),
        "group": ("consumer", "statefulset"),
        "statefulset": ("consumer", "statefulset"),
        PORT: ("broker", PORT),
    }
)
"""What is named -> the sections of a file that give such names."""
_NAMING = (
    *("name", "id", "node", "replicas", "container", "address_of", "one_address"),
    *("group", "names", "count", "share_process_with", "api", "scaler", "guests"),
)
"""Keys that say what nodes, topics and groups there are."""
_PORTS = ("listenPort", "listen_port")
_TABLE = re.compile(r"\w+\[\d+\]")
_OPTIONS_OF_FAULT = re.compile(r"(fault|nemesis)\[\d+\]\.options")


@attrs.frozen
class UnreliableParts:
    """What could not be read as it was meant."""

    tables: Mapping[str, None]
    """Paths of the tables of arrays that have a mistake."""
    sections: Mapping[str, None]
    """Sections that may give other names than those that were read."""
    spoiled: Mapping[str, None]
    """Those of them in which a mistake was reported."""

    @classmethod
    def of(cls, reading: Reading, draft: Scenario) -> "UnreliableParts":
        """What the mistakes so far leave in doubt, and a scenario without any broker."""
        tables = (_TABLE.match(mistake.key) for mistake in reading.mistakes)
        open_sections = (section for mistake in reading.mistakes for section in _open_sections(mistake))
        spoiled = dict.fromkeys((*open_sections, *(paths_to(path)[-1] for path in reading.lost)))
        sections = spoiled if draft.brokers else {**spoiled, "broker": None}
        return cls(dict.fromkeys(found[0] for found in tables if found), sections, spoiled)

    def cover(self, mistake: SpecError) -> bool:
        """Whether a violation may only follow from what could not be read."""
        table = _TABLE.match(mistake.key)
        if mistake.key in self.spoiled:
            return True
        if isinstance(mistake, NameMistakeError):
            return any(section in self.sections for section in _NAMED_IN.get(mistake.named, ()))
        if table and table[0] in self.tables:
            return True
        if _OPTIONS_OF_FAULT.match(mistake.key):  # may fit only what a node's own options are meant to be
            return any(path.partition("[")[0] in _NODES for path in self.tables)
        return False


def _open_sections(mistake: SpecError) -> Iterator[str]:
    """The section of a mistake, if it may have changed names; an unknown section may have been meant for any."""
    steps = [path for path in reversed(paths_to(mistake.key)) if not path.endswith("]")]
    section, *keys = (path.rpartition(".")[2] for path in steps)
    if not isinstance(mistake, UnknownKeyError):
        if keys and keys[0] in _NAMING:
            yield section
        if keys and keys[-1] in _PORTS:
            yield PORT
    elif len(steps) == 1:
        yield from (*_NODES, "topic") if mistake.meant is None else (mistake.meant,)
    elif mistake.meant in _NAMING or (mistake.meant is None and ".options." not in mistake.key):
        yield section
