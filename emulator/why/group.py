"""What a consumer group is made of: members, mode, subscriptions, owners, permission, and where it began."""

from collections import Counter
from collections.abc import Iterator

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, MESSAGES, OWNERSHIP
from emulator.why.answered_pulls import refusals
from emulator.why.backlog import backlog, broadcasts, popped_topics, subscriptions_of, topic_of
from emulator.why.first_offset import consume_from_where, first_offset_lines, missed_at_start_lines
from emulator.why.holders import CHANGES, Finding, LastHold, end_of, holds, known_groups
from emulator.why.question import GroupQuestion, no_question_about
from emulator.why.stalls import brokers_of
from emulator.why.unreachable import unreachable
from emulator.why.words import NodeNames, listed_nodes, seconds, value_of
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.units import NS_PER_S

_SHOWN_MAX = 8
_RESET = MessageEvent.RESET.value
_SET = (MessageEvent.COMMITTED.value, _RESET)
_LISTS = (BeliefKind.CONSUMER_IDS.value, BeliefKind.PROXY_MEMBERS.value)


def group(trace: TraceRows, requested: GroupQuestion, names: NodeNames) -> Finding:
    """What a group is made of, and what is wrong with it.

    Raises:
        WhyError: there is no such group.
    """
    groups = known_groups(trace)
    if requested.group not in groups:
        raise no_question_about("group", requested.group, groups, "group {}")
    about = _GroupAtInstant(trace, requested, names)
    problems, rows = about.problems()
    mode = "BROADCASTING" if about.broadcasts else "CLUSTERING"
    is_well = f"{about.count} of mode {mode}, and nothing is wrong with it"
    first, *rest = problems or [is_well]
    when = "" if requested.at_ns is None else f"at {seconds(requested.at_ns)} "
    lines = [f"{when}group {requested.group}: {first}", *(f"  {item}" for item in rest)]
    lines += [f"  {line}" for line in about.facts()]
    return Finding(tuple(lines), rows)


class _GroupAtInstant:
    """A group at an instant."""

    def __init__(self, trace: TraceRows, requested: GroupQuestion, names: NodeNames) -> None:
        self._trace = trace
        self._group = requested.group
        self._at_ns = trace.end_ns() if requested.at_ns is None else requested.at_ns
        self._names = names
        self._subscriptions = [
            row
            for row in subscriptions_of(trace, requested.group, self._at_ns)
            if end_of(trace, row, self._at_ns) is None
        ]
        self.broadcasts = broadcasts(self._subscriptions)
        self._lists = self._member_lists()
        self._holds = self._owners()

    @property
    def count(self) -> str:
        """`2 members`."""
        number = len({node: None for nodes in self._lists.values() for node in nodes})
        return f"{number} {'member' if number == 1 else 'members'}"

    def problems(self) -> tuple[list[str], tuple[TraceRow, ...]]:
        """What is wrong, the gravest first, and the rows that explain it."""
        found: list[str] = []
        rows: list[TraceRow] = []
        for line, row in self._switched_off():
            found.append(line)
            rows += [] if row is None else [row]
        found += self._unlisted()
        for node in dict.fromkeys(row.text("node") for row in self._subscriptions):
            found += [f"{node}: {line}" for line in unreachable(self._trace, node, self._names, self._at_ns)]
        found += self._different_subscriptions()
        found += self._owner_problems()
        found += first_offset_lines(self._trace, self._group, self._at_ns)
        found += missed_at_start_lines(self._trace, self._group, self._at_ns)
        found += self._skipped()
        waiting = backlog(self._trace, self._group, self._at_ns).late
        if waiting:
            messages = sum(item.messages for item in waiting)
            found.append(f"{messages:,} messages wait; ask `lag {self._group} at {_instant(self._at_ns)}`")
        return found, tuple(rows[:1])

    def facts(self) -> Iterator[str]:
        """Members, mode, subscriptions, and owned queues."""
        for broker, nodes in self._lists.items():
            yield f"{broker} lists {' '.join(nodes) or 'no member'}"
        where = consume_from_where(self._trace, self._group) if self._subscriptions else None
        mode = "CLUSTERING: members share the queues"
        if self.broadcasts:
            mode = "BROADCASTING: each member consumes all"
        elif topics := popped_topics(self._trace, self._group, self._at_ns):
            own = tuple(topic for topic in topics if not topic.startswith(RETRY_TOPIC_PREFIX))
            mode = f"CLUSTERING: members share the messages of {listed_nodes(own)}, which brokers hand out"
        yield f"mode {mode}{'' if where is None else f'; consumeFromWhere {where.value}'}"
        for topic, expressions in self._expressions().items():
            shown = [f"{expression} ({listed_nodes(tuple(nodes))})" for expression, nodes in expressions.items()]
            yield f"subscribes to {topic}: {', '.join(shown)}"
        owned = Counter(hold.node for of in self._holds.values() for hold in of if hold.owns)
        if owned:
            yield f"queues: {', '.join(f'{node} {number}' for node, number in sorted(owned.items()))}"

    def _member_lists(self) -> dict[str, list[str]]:
        """Mapping broker or proxy -> the members that it lists."""
        rows = self._trace.select(BELIEFS, kind=_LISTS, subject=self._group, until_ns=self._at_ns)
        newest = {row.text("node"): row for row in rows}
        self._proxies = {row.text("node") for row in rows if row.text("kind") == BeliefKind.PROXY_MEMBERS}
        living = {node: row for node, row in newest.items() if end_of(self._trace, row, self._at_ns) is None}
        return {
            node: sorted(self._names.node(client_id) for client_id in value_of(living[node]) or [])
            for node in sorted(living)
        }

    def _switched_off(self) -> Iterator[tuple[str, TraceRow | None]]:
        """The brokers that refuse the pulls of the group."""
        shown: dict[str, None] = {}
        brokers = dict.fromkeys(place[1] for place in self._holds)
        nodes = tuple(dict.fromkeys(node for name in brokers for node in brokers_of(self._trace, name)))
        for row in self._subscriptions:
            for refusal in refusals(self._trace, self._group, topic_of(row), row.text("node"), nodes, self._at_ns):
                because = refusal.reason or f"its pulls get {refusal.answer}"
                line = f"{because} at {refusal.broker} since {seconds(refusal.since_ns)}"
                if refusal.status == ResponseCode.NO_PERMISSION and f"{because}{refusal.broker}" not in shown:
                    shown[f"{because}{refusal.broker}"] = None
                    yield f"{line}, pulls get {refusal.answer}", refusal.change

    def _skipped(self) -> Iterator[str]:
        """Offsets that an administrator set forward, in one line for each topic, broker and second."""
        of: dict[tuple[str, str, int], list[str]] = {}
        for row in self._trace.select(MESSAGES, event=_RESET, group=self._group, until_ns=self._at_ns):
            topic, broker_name, queue_id = row.text("topic"), row.text("broker_name"), row.number("queue_id")
            place = {"topic": topic, "broker_name": broker_name, "queue_id": queue_id, "group": self._group}
            before = self._trace.newest(MESSAGES, event=_SET, until_ns=row.t_ns - 1, **place)
            since = 0 if before is None else before.number("offset")
            if row.number("offset") > since:
                key = topic, broker_name, row.t_ns // NS_PER_S
                of.setdefault(key, []).append(f"{since:,} to {row.number('offset'):,} in queue {queue_id}")
        for (topic, broker_name, second), moves in of.items():
            more = f" and {len(moves) - _SHOWN_MAX} more" if len(moves) > _SHOWN_MAX else ""
            reset = f"an administrator set its offset of {topic} at {broker_name} forward in second {second}"
            yield f"{reset}: {', '.join(moves[:_SHOWN_MAX])}{more}"

    def _unlisted(self) -> Iterator[str]:
        """The members that some broker does not list."""
        lists = {node: nodes for node, nodes in self._lists.items() if node not in self._proxies}
        members = dict.fromkeys(
            [row.text("node") for row in self._subscriptions] + [node for of in lists.values() for node in of]
        )
        if not members and not any(self._lists.values()):
            yield "it has no member"
        for broker, nodes in lists.items():
            missing = [node for node in members if node not in nodes]
            if missing:
                ask = f"no {missing[0]} in consumer_ids {self._group} of {broker} at {_instant(self._at_ns)}"
                yield f"{broker} does not list {listed_nodes(tuple(missing))}; ask `{ask}`"

    def _expressions(self) -> dict[str, dict[str, list[str]]]:
        """Mapping topic -> expression -> nodes."""
        found: dict[str, dict[str, list[str]]] = {}
        for row in self._subscriptions:
            if not topic_of(row).startswith(RETRY_TOPIC_PREFIX):
                of_topic = found.setdefault(topic_of(row), {})
                of_topic.setdefault(value_of(row)["expression"], []).append(row.text("node"))
        return found

    def _different_subscriptions(self) -> Iterator[str]:
        nodes = {row.text("node"): None for row in self._subscriptions}
        for topic, expressions in self._expressions().items():
            names = [f"{listed_nodes(tuple(of))} {expression}" for expression, of in expressions.items()]
            without = [node for node in nodes if not any(node in of for of in expressions.values())]
            if len(names) > 1:
                yield f"its members subscribe to {topic} in different ways: {'; '.join(names)}"
            if without:
                yield f"{listed_nodes(tuple(without))} does not subscribe to {topic}, and others of the group do"

    def _owners(self) -> dict[tuple[str, str, int], list[LastHold]]:
        """Mapping queue -> the last row of each consumer about it."""
        of: dict[tuple[str, str, int], list[TraceRow]] = {}
        for row in self._trace.select(OWNERSHIP, event=CHANGES, group=self._group, until_ns=self._at_ns):
            of.setdefault((row.text("topic"), row.text("broker_name"), row.number("queue_id")), []).append(row)
        return {place: holds(self._trace, of[place], self._at_ns) for place in sorted(of)}

    def _owner_problems(self) -> Iterator[str]:
        if self.broadcasts:
            return
        counts = {place: sum(hold.owns for hold in of) for place, of in self._holds.items() if place[2] >= 0}
        for text, places in (
            ("no owner", [place for place, owners in counts.items() if owners == 0]),
            ("several owners", [place for place, owners in counts.items() if owners > 1]),
        ):
            names = [f"{topic}/{broker}/{queue_id}" for topic, broker, queue_id in places]
            if names and text == "several owners":
                names = [name for place, name in zip(places, names, strict=True) if self._is_pulled(place)]
            if names:
                more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
                has = "1 queue has" if len(names) == 1 else f"{len(names)} queues have"
                yield f"{has} {text}: {', '.join(names[:_SHOWN_MAX])}{more}"

    def _is_pulled(self, place: tuple[str, str, int]) -> bool:
        """Whether a queue is pulled: several members may pop one."""
        return any(hold.row.text("event") == "acquired" for hold in self._holds[place])


def _instant(t_ns: int) -> str:
    return f"{t_ns / 1e9:.3f}".rstrip("0").rstrip(".") + "s"
