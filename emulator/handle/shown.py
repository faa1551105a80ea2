"""How a notebook shows what verbs tell; a verb that is not listed shows its lines."""

from collections.abc import Callable, Mapping, Sequence

from emulator.analysis.palette import OWNER_COLOURS
from emulator.handle.html import ALARM, QUIET, block, chip, table, text
from emulator.host import EmulatedHost, PowerState
from emulator.lines import EventLines
from emulator.verbs.book import Held
from emulator.verbs.desk import Desk
from emulator.verbs.looking import SHARED_KINDS
from nodes.beliefs import BeliefKind

Show = Callable[[Desk, Sequence[object]], str]
_OF_BROKER_GROUPS = (BeliefKind.MEMBER_GROUP, BeliefKind.MIN_BROKER)
_S = 1_000
_POWER_COLOURS = {
    PowerState.RUNNING: "#1b7f4d",
    PowerState.SUSPENDED: "#e69f00",
    PowerState.DOWN: ALARM,
    PowerState.POWERED_OFF: "#5a1a1a",
}


def show_status(desk: Desk, _words: Sequence[object]) -> str:
    """The time, every node in the colour of its state, what is broken, and who differs."""
    scenario = desk.cluster.scenario
    head = text(scenario.name, "font-weight:600") + text(f"  at {desk.now_ms / _S:.3f} s", QUIET)
    roles: dict[str, list[str]] = {}
    for host in desk.cluster.hosts.values():
        roles.setdefault(host.role, []).append(_node(host))
    nodes = table(("role", "nodes"), ((text(f"{role}s"), "".join(chips)) for role, chips in roles.items()))
    return block(head, nodes, show_faults(desk, ()), _differences(desk))


def show_faults(desk: Desk, _words: Sequence[object]) -> str:
    """Active faults as a table."""
    active = desk.operator.active.values()
    rows = [
        (chip(timed.id, ALARM), text(timed.fault.describe()), text(f"{timed.at_ms / _S:.3f} s", QUIET))
        for timed in active
    ]
    return table(("fault", "what", "since"), rows) if rows else block(text("no fault is active", QUIET))


def show_views(desk: Desk, words: Sequence[object]) -> str:
    """Subjects beside nodes: quiet where nodes of one role agree, a letter and a colour for each camp where not."""
    lines = EventLines(desk.cluster.scenario)
    rows = []
    for kind, subject in desk.book.subjects():
        held = desk.book.held(kind, subject)
        lonely = kind in _OF_BROKER_GROUPS and len(held) < 2
        wanted = subject == words[0] if words else lines.shows(kind, subject) and not lonely
        if kind in SHARED_KINDS and wanted:
            rows.append(_row(desk, lines, kind, subject))
    if not rows:
        return block(text("nobody believes anything yet", QUIET))
    return table(("belief", "about", *desk.cluster.hosts, "what they hold"), rows)


def _row(desk: Desk, lines: EventLines, kind: str, subject: str) -> list[str]:
    held = desk.book.held(kind, subject)
    camps = _camps(desk, held)
    differs = desk.book.differs(kind, subject)
    cells = [text(kind, "" if differs else QUIET), text(subject, "font-weight:600" if differs else "")]
    for node in desk.cluster.hosts:
        if node not in held:
            cells.append("")
        elif not differs:
            cells.append(text("✓", QUIET))
        else:
            about = f"{node}: {lines.value(kind, held[node].value)}\nsince {held[node].since_ns / 1e9:.3f} s"
            cells.append(chip(*camps[held[node].value], about))
    said = {value: lines.value(kind, value) for value in camps}
    if differs:
        cells.append("<br>".join(chip(*camps[value]) + text(words) for value, words in said.items()))
    else:
        cells.append("<br>".join(text(words, QUIET) for words in dict.fromkeys(said.values())))
    return cells


def _camps(desk: Desk, held: Mapping[str, Held]) -> dict[str, tuple[str, str]]:
    """Value -> its letter and its colour, in the order of the nodes."""
    values = list(dict.fromkeys(held[node].value for node in desk.cluster.hosts if node in held))
    return {
        value: (chr(ord("A") + number % 26), OWNER_COLOURS[number % len(OWNER_COLOURS)])
        for number, value in enumerate(values)
    }


def _node(host: EmulatedHost) -> str:
    return chip(host.name, _POWER_COLOURS[host.power_state], f"{host.ip}, {host.power_state.value}") + (
        "" if host.power_state is PowerState.RUNNING else text(f"{host.power_state.value} ", QUIET)
    )


def _differences(desk: Desk) -> str:
    found = [key for key in desk.book.subjects() if key[0] in SHARED_KINDS and desk.book.differs(*key)]
    if not found:
        return text("nodes of one role agree about everything they share", QUIET)
    return text("they differ about ", "font-weight:600") + "".join(
        chip(f"{kind} {subject}", ALARM) for kind, subject in found
    )


SHOWN: Mapping[str, Show] = {"status": show_status, "faults": show_faults, "views": show_views}
"""Verb -> its HTML, made where the verb was carried out."""
