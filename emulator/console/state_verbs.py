"""Verbs that show the state of the cluster, and `why`; they change nothing."""

from collections import Counter
from typing import TYPE_CHECKING

from emulator.base.errors import UserError
from emulator.base.text import nearest, shortened
from emulator.console.matrix import Matrix, matrix
from emulator.console.verb import Lines, Verb, VerbError, Words
from emulator.network.link import LinkRule
from emulator.spec.model.addresses import owners_of_shared
from emulator.why.forms import FORMS
from nodes.beliefs import BeliefKind
from nodes.units import MS_PER_S

if TYPE_CHECKING:
    from emulator.console.session import Session

SHARED_KINDS = (
    BeliefKind.VIEW,
    BeliefKind.CONSUMER_IDS,
    BeliefKind.ROUTE,
    BeliefKind.LIVE_BROKERS,
    BeliefKind.MEMBER_GROUP,
    BeliefKind.MIN_BROKER,
    BeliefKind.CONTROLLER_LEADER,
    BeliefKind.SYNC_STATE,
    BeliefKind.REPLICAS,
    BeliefKind.PROXY_MEMBERS,
)
"""Kinds about which healthy nodes of one role agree."""
ALL = "all"
_VALUE_CHARS = 90


async def _status(session: "Session", _words: Words) -> Lines:
    states = Counter(host.power_state.value for host in session.cluster.hosts.values())
    nodes = ", ".join(f"{count} {state}" for state, count in states.items())
    differing = [key for key in shared_subjects(session) if session.state.beliefs.differs(*key)]
    faults = _count(len(session.operator.active), "active fault")
    lines = [f"{session.now_ms / MS_PER_S:.3f} s, nodes: {nodes}; {faults}"]
    lines += [f"they differ about {kind} {subject}" for kind, subject in differing]
    return tuple(lines if differing else [*lines, "nodes of one role agree about everything they share"])


async def _nodes(session: "Session", _words: Words) -> Lines:
    hosts = session.cluster.hosts.values()
    rows = [(host.name, host.role, host.ip, host.power_state.value) for host in hosts]
    rows += [
        (node, session.state.beliefs.role(node), client_id, "outside")
        for node, client_id in session.guest_clients().items()
    ]
    width = max(len(name) for name, *_ in rows)
    requested = [
        f"{guest} asked {reported}" for guest, some in session.state.not_emulated().items() for reported in some
    ]
    return (*(f"{name:<{width}}  {role:<10}  {at:<12}  {state}" for name, role, at, state in rows), *requested)


async def _views(session: "Session", words: Words) -> Lines:
    """The matrix of a subject, or of all subjects about which nodes of one role differ, with the values below."""
    wanted = words[0] if words else None
    shown = matrix_of(session, wanted)
    if not shown.subjects and wanted is None:
        return ("nodes of one role agree about everything they share; `views all` shows all of it, agreed or not",)
    names = [f"{item.kind} {item.subject}" for item in shown.subjects]
    width = max(map(len, names))
    lines = [" ".join([" " * width, *shown.nodes])]
    for subject, name in zip(shown.subjects, names, strict=True):
        cells = (f"{subject.cell(node):^{len(node)}}" for node in shown.nodes)
        lines.append(" ".join([f"{name:<{width}}", *cells]).rstrip() + ("  they differ" if subject.differs else ""))
    for subject in shown.subjects:
        if subject.differs or wanted not in (None, ALL):
            lines += [
                f"{subject.kind} {subject.subject} {letter}: "
                f"{shortened(session.lines.value(subject.kind, value), _VALUE_CHARS)}"
                for letter, value in subject.values.items()
            ]
    return tuple(lines)


def matrix_of(session: "Session", wanted: str | None) -> Matrix:
    """The matrix of a subject, of `all` subjects, or with None of those about which nodes of one role differ.

    Raises:
        VerbError: the subject is unknown.
    """
    keys = shared_subjects(session)
    chosen = [
        key for key in keys if (session.state.beliefs.differs(*key) if wanted is None else wanted in (ALL, key[1]))
    ]
    if not chosen and wanted is not None:
        known = tuple(dict.fromkeys(subject for _, subject in keys))
        raise VerbError(nearest("subject", wanted, known))
    return matrix(session.state.beliefs, chosen, session.nodes)


async def _owners(session: "Session", words: Words) -> Lines:
    """The owners of the queues of a topic, or of all queues."""
    owners = session.state.owners.owners()
    topics = dict.fromkeys(queue.topic for queue in owners)
    if words and words[0] not in topics:
        raise VerbError(nearest("topic", words[0], tuple(topics)))
    lines = []
    for queue, holders in owners.items():
        if not words or queue.topic == words[0]:
            remark = {0: "no owner", 1: ""}.get(len(holders), f"({len(holders)} owners)")
            lines.append(" ".join([f"{queue.group}  {queue.name}:", *holders, remark]).rstrip())
    return tuple(lines) or ("no group consumes anything",)


async def _diff(session: "Session", words: Words) -> Lines:
    """The beliefs about which two nodes differ; a subject that only one of them knows is no difference."""
    item, other = (session.node(word) for word in words)
    lines = []
    for kind, subject in session.state.beliefs.subjects():
        held = session.state.beliefs.held(kind, subject)
        if item in held and other in held and held[item].value != held[other].value:
            lines.append(f"{kind} {subject}")
            lines += [
                f"  {name}: {shortened(session.lines.value(kind, held[name].value), _VALUE_CHARS)}"
                for name in (item, other)
            ]
    return tuple(lines) or (f"{item} and {other} agree about everything that both know of",)


async def _links(session: "Session", _words: Words) -> Lines:
    rules: tuple[LinkRule, ...] = session.cluster.world.fabric.rules
    names = (*session.cluster.hosts, *session.cluster.scenario.guests)
    lines = []
    for src in names:
        for dst in names:
            on_it = [rule.fault_id for rule in rules if src != dst and rule.covers(src, dst)]
            if on_it:
                lines.append(f"{src} -> {dst}: {', '.join(on_it)}")
    return tuple(lines) or ("every link is as the scenario says",)


async def _faults(session: "Session", _words: Words) -> Lines:
    active = session.operator.active.values()
    hits = session.cluster.world.fabric.hits
    lines = tuple(
        f"{item.id}: {item.fault.describe()}, since {item.at_ms / MS_PER_S:.3f} s, "
        f"hit {_count(hits.of(item.id), 'time')}"
        for item in active
    )
    return lines or ("no fault is active",)


def shared_subjects(session: "Session") -> list[tuple[str, str]]:
    """(kind, subject) of all beliefs about which healthy nodes of one role agree."""
    return [key for key in session.state.beliefs.subjects() if key[0] in SHARED_KINDS]


def _count(number: int, subject: str) -> str:
    return f"{number} {subject}" if number == 1 else f"{number} {subject}s"


LOOKING = (
    Verb("status", "", "emulated time, states of nodes, active faults, subjects about which nodes differ", _status),
    Verb(
        "nodes", "", "all nodes with their addresses and states, and which requests of guests are not supported", _nodes
    ),
    Verb(
        "views",
        "[SUBJECT|all]",
        "beliefs of all nodes; without a subject, those about which nodes differ",
        _views,
        0,
        1,
    ),
    Verb("owners", "[TOPIC]", "the owners of each queue", _owners, 0, 1),
    Verb("diff", "A B", "everything about which two nodes differ", _diff, 2, 2),
    Verb("links", "", "links with a fault", _links),
    Verb("faults", "", "active faults", _faults),
)


async def _why(session: "Session", words: Words) -> Lines:
    from emulator.history.rows.lookup import TraceRows  # noqa: PLC0415
    from emulator.why.answer import answer  # noqa: PLC0415 - only this verb needs Arrow's compute functions
    from emulator.why.words import names_of  # noqa: PLC0415

    session.flush_trace()
    cluster, scenario = session.cluster, session.cluster.scenario
    ips = {host.name: host.ip for host in cluster.hosts.values()}
    names = names_of(ips, scenario.brokers, cluster.names, owners_of_shared(scenario))
    try:
        return answer(words, TraceRows(session.run_directory), names)
    except UserError as error:
        raise VerbError(str(error)) from None


ASKING = (
    Verb(
        "why",
        "QUESTION",
        f"what is behind something in the run; a question is {FORMS}",
        _why,
        1,
        9,
    ),
)
