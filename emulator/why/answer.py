"""The complete answer to a question: chains of causes, the premises behind them, and missing signals."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

import attrs

from emulator.guests.client_names import guest_of
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.spec import from_dict
from emulator.spec.model.addresses import addresses, owners_of_shared
from emulator.state.event_lines import proxies_in
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP, PASSES, RPC
from emulator.why.chain import LINKS_MAX, ChainLink, LinkKind, left_out, walk, with_beliefs
from emulator.why.finding import find
from emulator.why.missing_signals import (
    BEFORE_NS,
    SignalWindow,
    Silence,
    last_sign_of_life,
    missing_signal_lines,
    windows,
)
from emulator.why.premises import assignment_of, premises, view_of
from emulator.why.question import AbsenceQuestion, BeliefQuestion, QueueQuestion, WhyError, question
from emulator.why.words import NodeNames, chain_lines, change, names_of, previous, row_words, seconds, value_of
from nodes.beliefs import BeliefKind, LifecycleEvent, OwnershipEvent, PassOutcome

_AGAIN = "run the scenario again with --trace full: its rows have the same seqs"
_ABOUT_SIGNALS = (QueueQuestion, BeliefQuestion, AbsenceQuestion)
"""Questions whose answer is what a node has heard."""
_PREMISES_MAX = 3
"""How many steps of premises are followed from one row."""
_OF_CLIENTS = (BeliefKind.ROUTE, BeliefKind.CONSUMER_IDS, BeliefKind.VIEW)
_OF_BROKERS = (BeliefKind.LIVE_BROKERS, BeliefKind.MEMBER_GROUP, BeliefKind.MIN_BROKER)
"""Kinds that other nodes read from a node; a chain to such a belief also shows the beliefs on its way."""
_ASSIGNERS = (BeliefKind.REBALANCE_MODE, BeliefKind.ASSIGNER, BeliefKind.EPOCH, BeliefKind.ALLOCATION)
_ABOUT_CLIENTS = (*_OF_CLIENTS, *_ASSIGNERS, BeliefKind.ASSIGNMENT, BeliefKind.QUEUE_LOCKS)
_BY_ADDRESS = (BeliefKind.LIVE_BROKERS, BeliefKind.CONSUMER_IDS, BeliefKind.VIEW, BeliefKind.MEMBER_GROUP)


def answer(words: Sequence[str], trace: TraceRows, names: NodeNames) -> tuple[str, ...]:
    """Answer a question, as lines of text.

    Args:
        words: the question; see `emulator.why.question`.
        trace: of a run, finished, under way or killed.
        names: of its nodes.

    Raises:
        WhyError: the words are not a question, or the trace has nothing about it.
    """
    requested = question(words)
    if BELIEFS not in trace.level.whole:
        raise WhyError(f"the level of this trace is {trace.level}: it holds no belief and no owner; {_AGAIN}")
    found = find(trace, requested, names)
    title = "signals that it missed" if isinstance(requested, _ABOUT_SIGNALS) else "what was wrong around it"
    builder = _AnswerBuilder(trace, names, requested.at_ns, title)
    builder.lines += found.headlines
    builder.expect(found.silences)
    for row in found.rows:
        builder.add_row(row)
        builder.why_retained(row)
    builder.add_missing_signals()
    builder.lines_of_what_is_left_out()
    return tuple(builder.lines)


def answer_of_run(words: Sequence[str], run: RunDirectory) -> tuple[str, ...]:
    """Answer a question about a run that has been opened; see `answer`."""
    return answer(words, TraceRows(run.path), names_of_run(run))


def names_of_run(run: RunDirectory) -> NodeNames:
    """The names of the nodes of a run that has been opened."""
    scenario = from_dict(run.manifest["scenario"])
    known = run.manifest.get("addresses", {})
    return names_of(addresses(scenario), scenario.brokers, known, owners_of_shared(scenario))


def chain_of_row(trace: TraceRows, row: TraceRow, names: NodeNames) -> tuple[str, ...]:
    """The chain of causes of a row and of its premises, as lines of text."""
    builder = _AnswerBuilder(trace, names, None, "")
    builder.add_row(row)
    return tuple(builder.lines)


@attrs.define
class _AnswerBuilder:
    """Collects the lines of an answer."""

    trace: TraceRows
    names: NodeNames
    at_ns: int | None
    _title: str
    lines: list[str] = attrs.Factory(list)
    _reported: dict[int, None] = attrs.Factory(dict)
    """Seq of the rows in the answer so far."""
    _instants_ns: list[int] = attrs.Factory(list)
    _nodes: dict[str, None] = attrs.Factory(dict)
    _silences: dict[Silence, None] = attrs.Factory(dict)
    _leaves_out: bool = False
    """Whether a chain ends at a row that the trace does not have."""

    def add_row(self, row: TraceRow) -> None:
        """Add the chain of a row, then those of its premises; nothing if the answer has it."""
        if row.seq in self._reported:
            return
        self._chain(row, "")
        waiting = [row]
        if not self.trace.level.explains:
            return  # which answer a node had by then is not known
        for _ in range(_PREMISES_MAX):
            if not waiting:
                break
            for premise in premises(self.trace, waiting.pop(0), self.names):
                if premise.row.seq not in self._reported:
                    self._chain(premise.row, premise.title)
                    waiting.append(premise.row)

    def expect(self, silences: Sequence[Silence]) -> None:
        """Note nodes of which others should have heard."""
        for silence in silences:
            self._silences[silence] = None
            self._nodes |= dict.fromkeys((silence.listener, silence.node))
            self._instants_ns.append(silence.at_ns)

    def add_missing_signals(self) -> None:
        """Add the signals that did not arrive, and why; nothing if no node waits for one."""
        if not self._nodes:
            return
        self._paragraph()
        self.lines += missing_signal_lines(
            self.trace, self._title, self._windows(), tuple(self._nodes), tuple(self._silences), self.names
        )

    def lines_of_what_is_left_out(self) -> None:
        """Add what the level of the trace keeps from the answer."""
        if self._leaves_out:
            self._paragraph()
            self.lines.append(f"level {self.trace.level} has no more; {_AGAIN}")

    def _windows(self) -> tuple[SignalWindow, ...]:
        """The parts of the run in which signals may be missing."""
        requested_ns = [] if self.at_ns is None else [min(self.at_ns, self.trace.end_ns())]
        instants_ns = (*self._instants_ns, *requested_ns)
        spans_ns = [(max(0, instant_ns - BEFORE_NS), instant_ns) for instant_ns in instants_ns]
        for silence in self._silences:
            heard = last_sign_of_life(self.trace, silence)
            if heard is not None:
                spans_ns.append((heard.t_ns, silence.at_ns))
        return windows(spans_ns)

    def _chain(self, row: TraceRow, title: str) -> None:
        walked = walk(self.trace, row)
        links = with_beliefs(self.trace, walked, *_shown_on_the_way(row))
        self._paragraph()
        if title:
            self.lines.append(title)
        self.lines += chain_lines(self.trace, links, self.names)
        if not self.trace.level.explains and (led := left_out(self.trace, walked[-1])):
            subject = f"a timer or a frame that arrived, which level {self.trace.level} leaves out"
            self.lines.append(f"(row {led} led to it: {subject})")
            self._leaves_out = True
        if len(walked) == LINKS_MAX:
            self.lines.append(f"(only the newest {LINKS_MAX} links of this chain were followed)")
        self._instants_ns.append(row.t_ns)
        self._nodes.update(dict.fromkeys((*_near(row, links), *_proxies_of(row, self.names))))
        for link, older in zip(links, [*links[1:], None], strict=True):
            self._reported[link.row.seq] = None
            if link.kind in (LinkKind.CONSEQUENCE, LinkKind.BELIEF):
                self._removed_note(link.row, by_timer=older is not None and older.kind is LinkKind.TIMER)

    def _removed_note(self, row: TraceRow, *, by_timer: bool) -> None:
        """Note the nodes that a belief no longer contains; they were silent if a timer removed them."""
        if row.table is not BELIEFS or row.text("kind") not in _BY_ADDRESS:
            return
        before = previous(self.trace, row)
        for item in () if before is None else change(before, row).gone:
            node = self.names.node(item)
            if node != item:
                self._nodes[node] = None
                if by_timer:
                    self._silences[Silence(node, row.text("node"), row.t_ns)] = None

    def why_retained(self, row: TraceRow) -> None:
        """Add why an owner still owns a queue: whence it works now; nothing for any other row."""
        if row.table is not OWNERSHIP or row.text("event") != OwnershipEvent.ACQUIRED:
            return
        until_ns = self.trace.end_ns() if self.at_ns is None else self.at_ns
        view = view_of(self.trace, row, until_ns)
        keeps = f"{row.text('node')} keeps it:"
        stage = self.trace.newest(LIFECYCLE, node=row.text("node"), until_ns=until_ns)
        if stage is not None and stage.text("event") == LifecycleEvent.SUSPENDED:
            self.lines.append(f"{keeps} it stands still since {seconds(stage.t_ns)}, and makes no pass")
        elif text := self._whether_assigned(row, until_ns):
            self.lines.append(f"{keeps} {text}")
        elif view is None or value_of(view) is None:
            return
        elif view.seq > row.seq:
            text = row_words(self.trace, view, self.names)
            self.lines.append(f"{keeps} since {seconds(view.t_ns)} it works from {text}")
        else:
            self.lines.append(f"{keeps} no pass since has seen other members or queues than at {seconds(view.t_ns)}")

    def _whether_assigned(self, row: TraceRow, until_ns: int) -> str:
        """Which broker assigned the queues of an owner, or since when none has; empty: it allocates for itself."""
        node: dict[str, Any] = {name: row.fields[name] for name in ("node", "incarnation", "group", "topic")}
        passes = self.trace.select(PASSES, until_ns=until_ns, **node)
        without_hits = list(takewhile(lambda item: item.text("event") == PassOutcome.UNANSWERED, reversed(passes)))
        if without_hits:
            return f"no broker has assigned it queues since {seconds(without_hits[-1].t_ns)}"
        assigned = assignment_of(self.trace, row, until_ns)
        if assigned is None:
            return ""
        teller = self.names.node(assigned.text("source"))
        return f"{teller} assigns it the same queues since {seconds(assigned.t_ns)}"

    def _paragraph(self) -> None:
        if self.lines:
            self.lines.append("")


def _shown_on_the_way(row: TraceRow) -> tuple[tuple[BeliefKind, ...], tuple[str, ...]]:
    """(kinds, subjects) of the beliefs that a chain to this row also shows."""
    if row.table is OWNERSHIP:
        group, topic = row.text("group"), row.text("topic")
        return _OF_CLIENTS, (group, topic, f"{group}/{topic}")
    if row.table is not BELIEFS:
        return (), ()
    kind, subject = BeliefKind(row.text("kind")), row.text("subject")
    return (_OF_CLIENTS if kind in _ABOUT_CLIENTS else _OF_BROKERS), (subject, *subject.split("/"))


def _proxies_of(row: TraceRow, names: NodeNames) -> list[str]:
    """The proxies of clients, although none of them is in the chain of what is believed of these."""
    addresses: Iterable[str] = ()
    if row.table is BELIEFS and row.text("kind") == BeliefKind.PROXY:
        addresses = row.text("subject").split(";")
    elif row.table is BELIEFS and row.text("kind") == BeliefKind.PROXY_MEMBERS:
        addresses = (address for ids in (value_of(row) or {}).values() for address in proxies_in(ids))
    return [names.node(address) for address in addresses]


def _near(row: TraceRow, links: tuple[ChainLink, ...]) -> list[str]:
    """The nodes of a chain, in order."""
    nodes = [row.text("node"), guest_of(row.text("node"))]
    for link in links:
        nodes += [link.row.text("src")] if link.row.table is RPC and link.kind is not LinkKind.TIMED_OUT else []
        nodes += [link.node] if link.node else []
    return nodes
