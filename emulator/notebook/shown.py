"""HTML for the output of verbs; other verbs are shown as lines."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from emulator.analysis.rendering.palette import OWNER_COLOURS
from emulator.console.session import Session
from emulator.console.state_verbs import SHARED_KINDS
from emulator.history.beliefs import HeldBelief
from emulator.machine.host import EmulatedHost
from emulator.machine.power import PowerState
from emulator.notebook.html import ALARM, QUIET, block, chip, table, text
from emulator.state.event_lines import EventLines
from nodes.beliefs import BeliefKind
from nodes.units import MS_PER_S

Show = Callable[[Session, Sequence[object]], str]
_OF_BROKER_GROUPS = (BeliefKind.MEMBER_GROUP, BeliefKind.MIN_BROKER)
_ROLES = "font-weight:600;opacity:.75"
"""Style where nodes of different roles hold different values, which is no disagreement."""
_POWER_COLOURS = {
    PowerState.RUNNING: "#1b7f4d",
    PowerState.SUSPENDED: "#e69f00",
    PowerState.DOWN: ALARM,
    PowerState.POWERED_OFF: "#5a1a1a",
}


def show_status(session: Session, _words: Sequence[object]) -> str:
    """The time, all nodes in the colour of their states, active faults, and subjects about which nodes differ."""
    scenario = session.cluster.scenario
    head = text(scenario.name, "font-weight:600") + text(f"  at {session.now_ms / MS_PER_S:.3f} s", QUIET)
    roles: dict[str, list[str]] = {}
    for host in session.cluster.hosts.values():
        roles.setdefault(host.role, []).append(_node(host))
    nodes = table(("role", "nodes"), ((text(f"{role}s"), "".join(chips)) for role, chips in roles.items()))
    return block(head, nodes, show_faults(session, ()), _differences(session))


def show_faults(session: Session, _words: Sequence[object]) -> str:
    """Active faults as a table."""
    active = session.operator.active.values()
    rows = [
        (chip(timed.id, ALARM), text(timed.fault.describe()), text(f"{timed.at_ms / MS_PER_S:.3f} s", QUIET))
        for timed in active
    ]
    return table(("fault", "what", "since"), rows) if rows else block(text("no fault is active", QUIET))


def show_views(session: Session, words: Sequence[object]) -> str:
    """A table of subjects and nodes; where nodes of one role differ, holders of one value share letter and colour."""
    lines = session.lines
    rows = []
    for kind, subject in session.state.beliefs.subjects():
        held = session.state.beliefs.held(kind, subject)
        lonely = kind in _OF_BROKER_GROUPS and len(held) < 2
        wanted = subject == words[0] if words else lines.shows(kind, subject) and not lonely
        if kind in SHARED_KINDS and wanted:
            rows.append(_row(session, lines, kind, subject))
    if not rows:
        return block(text("no one believes anything yet", QUIET))
    return table(("belief", "about", *session.nodes, "what they hold"), rows)


def _row(session: Session, lines: EventLines, kind: str, subject: str) -> list[str]:
    held = session.state.beliefs.held(kind, subject)
    differs = session.state.beliefs.differs(kind, subject)
    all_holders = _all_holders(session, held)
    cells = [text(kind, "" if differs else QUIET), text(subject, "font-weight:600" if differs else "")]
    for node in session.nodes:
        if node in held:
            about = f"{node}: {lines.value(kind, held[node].value)}\nsince {held[node].since_ns / 1e9:.3f} s"
            cells.append(
                _mark(*all_holders[held[node].value], severe=differs, alone=len(all_holders) == 1, about=about)
            )
        else:
            cells.append("")
    answer = (
        (
            _mark(*holders, severe=True) + " "
            if differs
            else ""
            if len(all_holders) == 1
            else text(f"{holders[0]} ", _ROLES)
        )
        + text(lines.value(kind, value), "" if differs else QUIET)
        for value, holders in all_holders.items()
    )
    return [*cells, "<br>".join(answer)]


def _mark(letter: str, colour: str, *, severe: bool, alone: bool = False, about: str = "") -> str:
    """A mark for the holders of a value: coloured if nodes of one role differ, a letter if roles do, else a tick."""
    if severe:
        return chip(letter, colour, about)
    return f'<span title="{escape(about)}" style="{QUIET if alone else _ROLES}">{"✓" if alone else letter}</span>'


def _all_holders(session: Session, held: Mapping[str, HeldBelief]) -> dict[str, tuple[str, str]]:
    """Mapping value -> (letter, colour), in the order of the nodes."""
    values = list(dict.fromkeys(held[node].value for node in session.nodes if node in held))
    return {
        value: (chr(ord("A") + number % 26), OWNER_COLOURS[number % len(OWNER_COLOURS)])
        for number, value in enumerate(values)
    }


def _node(host: EmulatedHost) -> str:
    return chip(host.name, _POWER_COLOURS[host.power_state], f"{host.ip}, {host.power_state.value}") + (
        "" if host.power_state is PowerState.RUNNING else text(f"{host.power_state.value} ", QUIET)
    )


def _differences(session: Session) -> str:
    lines = session.lines
    found = [
        key
        for key in session.state.beliefs.subjects()
        if key[0] in SHARED_KINDS and session.state.beliefs.differs(*key)
    ]
    if not found:
        return text("nodes of one role agree about everything they share", QUIET)
    reported = [key for key in found if lines.shows(*key)]
    chips = "".join(chip(f"{kind} {subject}", ALARM) for kind, subject in reported)
    rest = len(found) - len(reported)
    system = text(f" and {rest} system topic{'' if rest == 1 else 's'}", QUIET) if rest else ""
    return text("they differ about ", "font-weight:600") + chips + system


SHOWN: Mapping[str, Show] = {"status": show_status, "faults": show_faults, "views": show_views}
"""Mapping verb -> function that makes its HTML in the thread of the cluster."""
