"""What nodes hold about a subject: the kind of a belief, its process, and why no consumer holds one."""

import attrs

from emulator.base.text import alike
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP
from emulator.why.missing_signals import Silence
from emulator.why.question import BeliefQuestion, WhyError, no_such
from emulator.why.words import seconds
from nodes.beliefs import PROCESS_ENDS, BeliefKind, LifecycleEvent, MessageEvent

ENDS = tuple(event.value for event in PROCESS_ENDS)
STAGES = tuple(event.value for event in LifecycleEvent if event is not LifecycleEvent.NOT_EMULATED)
"""What happens to a process; the other event is about what it asked."""


@attrs.frozen
class Finding:
    """The rows that a question is about."""

    headlines: tuple[str, ...]
    """The short answer; may be empty."""
    rows: tuple[TraceRow, ...]
    """The rows whose chains of causes are the answer."""
    silences: tuple[Silence, ...] = ()
    """Nodes of which others should have heard."""


def known_groups(trace: TraceRows) -> tuple[str, ...]:
    """All groups that subscribe to something, own a queue, pop, or have a member at a broker or a proxy; sorted."""
    kinds = (BeliefKind.SUBSCRIPTION.value, BeliefKind.CONSUMER_IDS.value, BeliefKind.PROXY_MEMBERS.value)
    subjects = [row.text("subject").partition("/")[0] for row in trace.select(BELIEFS, kind=kinds)]
    popped = [group for (group,) in trace.tuples(MESSAGES, ("group",), event=MessageEvent.POPPED.value)]
    return tuple(sorted(dict.fromkeys([*subjects, *popped, *trace.values(OWNERSHIP, "group")])))


def end_of(trace: TraceRows, row: TraceRow, until_ns: int | None) -> TraceRow | None:
    """The end of the process that wrote a row; None if it lived on until an instant."""
    ends = trace.select(LIFECYCLE, event=ENDS, node=row.text("node"), until_ns=until_ns)
    return next((end for end in ends if end.number("incarnation") == row.number("incarnation")), None)


def kind_of(trace: TraceRows, requested: BeliefQuestion) -> BeliefKind:
    """The kind of belief that a question names, or the only one that has its subject.

    Raises:
        WhyError: no kind has this subject, or several have.
    """
    if requested.kind is not None:
        return requested.kind
    kinds = tuple(dict.fromkeys(row.text("kind") for row in trace.select(BELIEFS, subject=requested.subject)))
    if not kinds:
        if requested.subject in trace.values(BELIEFS, "node"):
            raise WhyError(f"{requested.subject} is a node: ask for `node {requested.subject}`")
        if alike(requested.subject, ("storm",), 1):
            raise WhyError(f"there is no subject {requested.subject}; did you mean `storm`?")
        raise WhyError(no_such("subject", requested.subject, trace.values(BELIEFS, "subject")))
    if len(kinds) > 1:
        raise WhyError(f"expected a kind before {requested.subject}, which has several: {', '.join(sorted(kinds))}")
    return BeliefKind(kinds[0])


def why_no_belief(trace: TraceRows, requested: BeliefQuestion, kind: BeliefKind) -> str:
    """Why no one, or not the node that a question names, holds such a belief."""
    rows = trace.select(BELIEFS, kind=kind.value)
    subjects = tuple(sorted(dict.fromkeys(row.text("subject") for row in rows)))
    if requested.subject not in subjects:
        return no_such(f"subject of {kind}", requested.subject, subjects)
    about = [row for row in rows if row.text("subject") == requested.subject]
    nodes = tuple(sorted(dict.fromkeys(row.text("node") for row in about)))
    if requested.node is not None and requested.node not in nodes:
        return no_such(f"holder of {kind} {requested.subject} named", requested.node, nodes)
    first = next(row for row in about if requested.node in (None, row.text("node")))
    return (
        f"no one knew of {kind} {requested.subject} yet; {first.text('node')} was the first, at {seconds(first.t_ns)}"
    )
