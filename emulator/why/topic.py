"""Who lists a topic, who serves it, with which permission, and what changed it.

Nameservers and clients hold routes. Brokers do not record their tables of topics, only the versions of these, which
change when a slave copies a table that has changed. So a topic that a nameserver lists and no broker has is found by an
election: the new master has copied nothing between the creation of the topic and its election.
"""

from collections.abc import Iterator

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.state.event_lines import value_in_words
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, RPC
from emulator.why.holders import Finding, end_of
from emulator.why.question import TopicQuestion, WhyError, no_question_about
from emulator.why.words import NodeNames, in_one_line, listed_nodes, request_words, seconds, value_of
from nodes.beliefs import BeliefKind, LifecycleEvent, MessageEvent
from nodes.protocol.codes import RequestCode, ResponseCode

_NAMESERVER = "nameserver"
_READ, _WRITE = 4, 2
_HISTORY_MAX = 8
_START_NS = 5 * 1_000_000_000
"""Routes that come so soon after the start of a run come with it."""


def topic(trace: TraceRows, requested: TopicQuestion, names: NodeNames) -> Finding:
    """Who lists a topic and who serves it.

    Raises:
        WhyError: there is no such topic.
    """
    about = _TopicAtInstant(trace, requested, names)
    if not about.is_known:
        later = trace.select(BELIEFS, kind=BeliefKind.ROUTE.value, subject=requested.topic)
        if later:
            known_at = f"{later[0].text('node')} was the first to know it, at {seconds(later[0].t_ns)}"
            raise WhyError(f"there was no topic {requested.topic} yet: {known_at}; ask `topic {requested.topic}`")
        routes = trace.select(BELIEFS, kind=BeliefKind.ROUTE.value)
        known = dict.fromkeys(row.text("subject") for row in routes)
        own = [name for name in known if not name.startswith("%")]
        raise no_question_about("topic", requested.topic, tuple(own), "topic {}")
    problems = [*about.lost(), *about.refused(), *about.permissions()]
    listing = about.listing()
    when = "" if requested.at_ns is None else f"at {seconds(requested.at_ns)} "
    first, *rest = [*problems, *listing]
    lines = [f"{when}topic {requested.topic}: {first}", *(f"  {line}" for line in rest)]
    lines += [f"  {line}" for line in about.facts()]
    return Finding(tuple(lines), about.last_change())


class _TopicAtInstant:
    """A topic at an instant."""

    def __init__(self, trace: TraceRows, requested: TopicQuestion, names: NodeNames) -> None:
        self._trace = trace
        self._topic = requested.topic
        self._at_ns = trace.end_ns() if requested.at_ns is None else requested.at_ns
        self._names = names
        kind = BeliefKind.ROUTE.value
        self._routes = trace.select(BELIEFS, kind=kind, subject=requested.topic, until_ns=self._at_ns)
        self._listed = [row for row in self._routes if row.text("role") == _NAMESERVER]
        if not self._listed and not trace.values(BELIEFS, "role")[0]:  # written by hand, without roles
            self._listed = [row for row in self._routes if not row.text("source")]

    @property
    def is_known(self) -> bool:
        """Whether any node holds a route of it, or a broker has stored a message of it."""
        stored = self._trace.tuples(MESSAGES, ("seq",), topic=self._topic, until_ns=self._at_ns)
        return bool(self._routes) or next(stored, None) is not None

    def listing(self) -> list[str]:
        """What each nameserver lists."""
        newest = {row.text("node"): row for row in self._listed}
        living = [row for row in newest.values() if end_of(self._trace, row, self._at_ns) is None]
        shown: dict[str, list[str]] = {}
        for row in living:
            shown.setdefault(self._value_words(row), []).append(row.text("node"))
        if not shown:
            return ["no nameserver lists it"]
        if list(shown) == [""]:
            gone = max(living, key=lambda row: row.seq)
            return [f"no nameserver lists it since {seconds(gone.t_ns)}"]
        lines = [
            f"{listed_nodes(tuple(nodes))} {'lists' if len(nodes) == 1 else 'list'} {words or 'it no more'}"
            for words, nodes in shown.items()
        ]
        return [*(["nameservers list it in different ways"] if len(shown) > 1 else []), *lines]

    def permissions(self) -> Iterator[str]:
        """What the routes of nameservers do not permit."""
        routes = [value_of(row) or {} for row in {row.text("node"): row for row in self._listed}.values()]
        for permission, subject in ((_READ, "read"), (_WRITE, "written")):
            lacking = [name for route in routes for name, entry in route.items() if not entry["queues"][2] & permission]
            if lacking:
                yield f"it may not be {subject} at {listed_nodes(tuple(dict.fromkeys(lacking)))}"

    def facts(self) -> Iterator[str]:
        """Clients, messages, and when what changed."""
        holders = {row.text("node"): row for row in self._routes if row not in self._listed}
        with_it = [node for node, row in holders.items() if value_of(row) is not None]
        if with_it:
            yield f"clients that hold a route of it: {listed_nodes(tuple(sorted(with_it)))}"
        place = ("node", "t_ns")
        event = MessageEvent.STORED.value
        last_ns = dict(self._trace.tuples(MESSAGES, place, event=event, topic=self._topic, until_ns=self._at_ns))
        for node, t_ns in last_ns.items():
            yield f"{node} stored its last message of it at {seconds(t_ns)}"
        if not last_ns:
            yield "no broker has stored a message of it"
        yield from self._history()

    def _history(self) -> Iterator[str]:
        """The changes of the first nameserver that lists it."""
        first = self._listed[0].text("node") if self._listed else ""
        changes: list[str] = []
        before = None
        for row in self._listed:
            words = self._value_words(row) or "no route any more"
            if row.text("node") == first and words != before:
                changes.append(f"{seconds(row.t_ns)} {first}: {words}")
                before = words
        if len(changes) > _HISTORY_MAX:
            yield f"{len(changes) - _HISTORY_MAX} earlier changes of the route at {first}"
        yield from changes[-_HISTORY_MAX:]

    def refused(self) -> Iterator[str]:
        """Brokers that answer that they do not have it."""
        if not self._trace.level.explains:
            return
        answers = self._trace.select(
            RPC, kind="response", status=int(ResponseCode.TOPIC_NOT_EXIST), until_ns=self._at_ns
        )
        brokers: dict[str, list[TraceRow]] = {}
        for row in answers:
            words = row.text("detail").replace("[", " ").replace("]", " ").replace(",", " ").split()
            if self._topic in words and row.text("src") not in {item.text("node") for item in self._listed}:
                brokers.setdefault(row.text("src"), []).append(row)
        for broker, rows in brokers.items():
            kinds = listed_nodes(tuple(dict.fromkeys(request_words(row.number("code")) for row in rows)))
            span = f"from {seconds(rows[0].t_ns)} to {seconds(rows[-1].t_ns)}"
            yield f"{broker} answers that it does not exist: {len(rows)} answers to {kinds}, {span}"

    def lost(self) -> Iterator[str]:
        """Masters that were elected without it, although nameservers list it."""
        newest = {row.text("node"): row for row in self._listed}
        for broker_name in dict.fromkeys(name for row in newest.values() for name in value_of(row) or {}):
            created = next(row for row in self._listed if broker_name in (value_of(row) or {}))
            masters = self._masters(broker_name)
            before = [row for row in masters if row.seq < created.seq]
            after = [row for row in masters if row.seq > created.seq]
            if before and after and after[-1].text("node") != before[-1].text("node"):
                yield from self._lost_by(created, before[-1].text("node"), after[-1], broker_name, newest)

    def _lost_by(
        self, created: TraceRow, old: str, elected: TraceRow, broker_name: str, newest: dict[str, TraceRow]
    ) -> Iterator[str]:
        new = elected.text("node")
        created_at = [row for row in self._versions(old) if row.seq < created.seq][-1:]
        copies = [row for row in self._versions(new) if row.seq < elected.seq and self._is_copy(row)]
        stored = self._trace.select(
            MESSAGES, event=MessageEvent.STORED.value, topic=self._topic, node=new, after_ns=elected.t_ns
        )
        if not created_at or stored or any(row.seq > created_at[0].seq for row in copies):
            return
        names = listed_nodes(tuple(node for node, row in newest.items() if broker_name in (value_of(row) or {})))
        last = f", which copied the topics of {old} last at {seconds(copies[-1].t_ns)}" if copies else ""
        since = f"it was created at {seconds(created_at[0].t_ns)}"
        yield (
            f"{names} lists it at {broker_name}, and no broker of {broker_name} has it: {since} at {old}, and {new} "
            f"became master at {seconds(elected.t_ns)} without it{last}"
        )

    def _is_copy(self, version: TraceRow) -> bool:
        """Whether a version of the topics is that of a copy; any may be where the level leaves causes out."""
        cause = self._trace.row(version.cause) if version.cause else None
        if cause is None:
            return bool(version.cause)
        return cause.table is RPC and cause.number("code") == RequestCode.GET_ALL_TOPIC_CONFIG

    def _masters(self, broker_name: str) -> list[TraceRow]:
        """The rows with which a member of a broker group became master, in order."""
        kind = BeliefKind.BROKER_ROLE.value
        rows = self._trace.select(BELIEFS, kind=kind, subject=broker_name, until_ns=self._at_ns)
        return [row for row in rows if (value_of(row) or {}).get("serves_as") == "master"]

    def _versions(self, node: str) -> list[TraceRow]:
        kind = BeliefKind.DATA_VERSION.value
        return self._trace.select(BELIEFS, kind=kind, subject="topics", node=node, until_ns=self._at_ns)

    def last_change(self) -> tuple[TraceRow, ...]:
        """The last change of a route at a nameserver, unless it came with the start of the cluster."""
        started = self._trace.select(LIFECYCLE, event=LifecycleEvent.READY.value)
        start_ns = max((row.t_ns for row in started[:1]), default=0) + _START_NS
        later = [row for row in self._listed if row.t_ns > start_ns]
        return tuple(later[-1:])

    def _value_words(self, row: TraceRow) -> str:
        value = value_of(row)
        return "" if value is None else in_one_line(self._names.within(value_in_words(row.text("kind"), value)))
