"""What keeps the messages of one queue waiting: the first of the usual causes that holds, the surest ones first."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import takewhile
from typing import Any

import attrs

from emulator.history.processes import AWAY
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP, RPC
from emulator.why.answered_pulls import Refusals, failed_calls, refusals
from emulator.why.backlog import WaitingQueue, is_wanted, popped_topics, subscriptions_of, topic_of
from emulator.why.handed_out import lost_answer, lost_answer_lines
from emulator.why.holders import STAGES, LastHold, holds_of
from emulator.why.missing_signals import Silence
from emulator.why.no_owner import no_owner_lines
from emulator.why.question import QueueQuestion
from emulator.why.words import NodeNames, listed_nodes, request_words, seconds, value_of
from nodes.beliefs import BeliefKind, ConsumptionResult, LifecycleEvent, MessageEvent, OwnershipEvent
from nodes.protocol.codes import RequestCode
from nodes.protocol.names import retry_topic
from nodes.units import NS_PER_S

_RECENT_NS = 30 * NS_PER_S
"""How far to look back for what a consumer does: its periodic tasks have shorter periods."""
_BEFORE_NS = 15 * NS_PER_S
"""A call that fails was sent up to so long before its queue stood still."""
_READ = 4
"""Bit of a permission."""
_GIVE_UP = (RequestCode.SEND_MESSAGE_V2.name, RequestCode.CONSUMER_SEND_MSG_BACK.name)
"""Requests by which a consumer hands a message back with which its listener has failed."""
_OF_BROKERS = (
    *(BeliefKind.MEMBER_GROUP, BeliefKind.MIN_BROKER, BeliefKind.SPECIAL_SERVICE, BeliefKind.BROKER_ROLE),
    *(BeliefKind.ONLINE_STAGE, BeliefKind.MASTER_ADDR),
)
"""Beliefs of a broker about its own broker group."""


@attrs.frozen
class StallCause:
    """Why the messages of a queue wait."""

    rank: int
    """The lower, the more certain, and the sooner it is named."""
    text: str
    """On one line; the same for all queues that wait for the same cause."""
    lines: tuple[str, ...] = ()
    """What else is known."""
    rows: tuple[TraceRow, ...] = ()
    """The rows whose chains of causes explain it."""
    silences: tuple[Silence, ...] = ()


def brokers_of(trace: TraceRows, broker_name: str) -> tuple[str, ...]:
    """The nodes of a broker group, sorted."""
    rows = trace.select(BELIEFS, kind=tuple(kind.value for kind in _OF_BROKERS), subject=broker_name)
    stored = trace.tuples(MESSAGES, ("node",), event=MessageEvent.STORED.value, broker_name=broker_name)
    named = [broker_name] if broker_name in trace.values(LIFECYCLE, "node") else []
    nodes = (*(row.text("node") for row in rows), *(node for (node,) in stored), *named)
    return tuple(sorted(dict.fromkeys(nodes)))


def why_it_waits(trace: TraceRows, waiting: WaitingQueue, at_ns: int, names: NodeNames) -> StallCause:
    """Why the messages of a queue wait at an instant.

    Args:
        trace: of the run.
        waiting: the queue.
        at_ns: the instant.
        names: of the nodes.
    """
    about = _WaitingQueue(trace, waiting, at_ns, names)
    return next(cause for look in _LOOKS for cause in look(about))


class _WaitingQueue:
    """A queue with messages that wait, and what is asked about it."""

    def __init__(self, trace: TraceRows, waiting: WaitingQueue, at_ns: int, names: NodeNames) -> None:
        self.trace = trace
        self.waiting = waiting
        self.at_ns = at_ns
        self.names = names
        queue = waiting.queue
        self.group = queue.group
        self.requested = QueueQuestion(queue.topic, queue.broker_name, queue.queue_id, queue.group, at_ns)

    @cached_property
    def brokers(self) -> tuple[str, ...]:
        """The nodes that may serve the queue."""
        return brokers_of(self.trace, self.requested.broker_name)

    @cached_property
    def owners(self) -> tuple[LastHold, ...]:
        """Those who hold it; of a group that broadcasts, the member that is behind."""
        found = [hold for hold in holds_of(self.trace, self.group, self.requested) if hold.owns]
        return tuple(hold for hold in found if self.waiting.node in ("", hold.node))

    def proxies_of(self, node: str) -> tuple[str, ...]:
        """The proxies that a client of RocketMQ 5 calls for the broker: by its route, else its connection."""
        topic, broker_name = self.requested.topic, self.requested.broker_name
        kind = BeliefKind.PROXY_ROUTE.value
        route = self.trace.newest(BELIEFS, node=node, kind=kind, subject=topic, until_ns=self.at_ns)
        entry = None if route is None else (value_of(route) or {}).get(broker_name)
        if entry is not None:
            return tuple(dict.fromkeys(map(self.names.node, entry["endpoints"])))
        row = self.trace.newest(BELIEFS, node=node, kind=BeliefKind.PROXY.value, until_ns=self.at_ns)
        address = None if row is None else value_of(row)
        return () if address is None else (self.names.node(address),)

    def stage(self, node: str) -> TraceRow | None:
        """The last stage of the process of a node."""
        return self.trace.newest(LIFECYCLE, node=node, event=STAGES, until_ns=self.at_ns)

    def consumed(self, after_ns: int) -> int:
        """How many messages of the queue members have consumed since an instant."""
        place = attrs.asdict(self.waiting.queue)
        event = MessageEvent.CONSUMED.value
        return sum(1 for _ in self.trace.select(MESSAGES, event=event, after_ns=after_ns, until_ns=self.at_ns, **place))


def _refused(about: _WaitingQueue) -> Iterator[StallCause]:
    """A broker refuses the pulls: the group is switched off, a permission lacks read, and others."""
    for hold in about.owners:
        servers = (*about.brokers, *about.proxies_of(hold.node))
        found = list(refusals(about.trace, about.group, about.requested.topic, hold.node, servers, about.at_ns))
        for item in sorted(found, key=lambda element: not element.reason)[:1]:
            because = f", because {item.reason} at {item.broker}" if item.reason else f" from {item.broker}"
            text = f"pulls get {item.answer} since {seconds(item.since_ns)}{because}"
            yield StallCause(0, text, _refusal_lines(item), () if item.change is None else (item.change,))


def _refusal_lines(item: Refusals) -> tuple[str, ...]:
    changed = item.change
    lines = [f"{item.broker} refused {item.count} pulls of {item.consumer} since {seconds(item.since_ns)}"]
    if changed is not None:
        table = changed.text("subject").replace("_", " ")
        lines.append(f"the table of {table} of {item.broker} changed last before that at {seconds(changed.t_ns)}")
    return tuple(lines)


def _no_broker(about: _WaitingQueue) -> Iterator[StallCause]:
    """No node of the broker group runs."""
    yield from _none_runs(about, about.brokers, f"no broker of {about.requested.broker_name} runs")


def _no_proxy(about: _WaitingQueue) -> Iterator[StallCause]:
    """No proxy runs that its consumers call."""
    proxies = [about.proxies_of(hold.node) for hold in about.owners]
    if all(proxies):
        every = tuple(dict.fromkeys(node for of in proxies for node in of))
        yield from _none_runs(about, every, f"no proxy of {about.group} runs")


def _none_runs(about: _WaitingQueue, nodes: tuple[str, ...], text: str) -> Iterator[StallCause]:
    stages = [stage for node in nodes if (stage := about.stage(node)) is not None]
    away = [stage for stage in stages if stage.text("event") in AWAY]
    if stages and len(away) == len(stages):
        named = listed_nodes([_stage_words(item) for item in away])
        yield StallCause(1, f"{text}: {named}", rows=tuple(away[-1:]))


def _handed_out(about: _WaitingQueue) -> Iterator[StallCause]:
    """A broker handed it out, and the answer was lost; or the group is one of proxies, and owns no queues."""
    queue = about.waiting.queue
    place = {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id, "group": queue.group}
    first = about.waiting.first_offset
    popped = about.trace.newest(MESSAGES, event=MessageEvent.POPPED.value, offset=first, until_ns=about.at_ns, **place)
    lost = None if popped is None else lost_answer(about.trace, popped)
    if popped is not None and lost is not None:
        text = f"{queue.broker_name} handed it out at {seconds(popped.t_ns)}, and the answer to {lost.client} was lost"
        yield StallCause(1, text, tuple(lost_answer_lines(about.trace, lost)))
    elif popped_topics(about.trace, queue.group, about.at_ns):
        yield StallCause(4, _not_acknowledged(about, popped, place))


def _not_acknowledged(about: _WaitingQueue, popped: TraceRow | None, place: dict[str, Any]) -> str:
    if popped is not None:
        return f"it was handed out at {seconds(popped.t_ns)}, and no client has acknowledged it"
    last = about.trace.newest(MESSAGES, event=MessageEvent.POPPED.value, until_ns=about.at_ns, **place)
    before = "none of the queue ever was" if last is None else f"the last of the queue was at {seconds(last.t_ns)}"
    return f"it was handed out to no client of {about.group}; {before}"


def _not_routed(about: _WaitingQueue) -> Iterator[StallCause]:
    """The newest route of the nameservers does not let consumers read the broker, or not this queue of it."""
    topic, broker_name = about.requested.topic, about.requested.broker_name
    kind = BeliefKind.ROUTE.value
    rows = about.trace.select(BELIEFS, kind=kind, subject=topic, source="", until_ns=about.at_ns)
    newest = {row.text("node"): row for row in rows}
    if not newest or about.owners:
        return
    entries = [((value_of(row) or {}).get(broker_name), row) for row in newest.values()]
    last = max(newest.values(), key=lambda row: row.seq)
    if all(entry is None for entry, _ in entries):
        text = f"no nameserver lists {broker_name} for {topic}, so no consumer owns its queues"
        yield StallCause(1, f"{text} (since {seconds(last.t_ns)})", rows=(last,))
    elif not any(entry is not None and entry["queues"][2] & _READ for entry, _ in entries):
        text = f"the permission of {topic} at {broker_name} lacks read, so no consumer owns its queues"
        yield StallCause(0, f"{text} (since {seconds(last.t_ns)})", rows=(last,))
    else:
        yield from _not_a_read_queue(about, [(entry["queues"], row) for entry, row in entries if entry is not None])


def _not_a_read_queue(about: _WaitingQueue, listed: list[tuple[Sequence[int], TraceRow]]) -> Iterator[StallCause]:
    """The topic has fewer read queues: no consumer sees what producers, or brokers for a group, store in the others."""
    topic, broker_name = about.requested.topic, about.requested.broker_name
    read, write = (max(numbers[place] for numbers, _ in listed) for place in (0, 1))
    if read > about.requested.queue_id:
        return
    has = f"{read} read {'queue' if read == 1 else 'queues'}"
    text = f"{topic} has {has} at {broker_name}, so no consumer reads queue {read} or a later one"
    if about.requested.queue_id < write:
        line = f"producers send to {write} queues of it (writeQueueNums)"
    elif topic == retry_topic(about.group):
        line = "a broker chooses one of the retryQueueNums queues of its group, however many its retry topic has"
    else:
        line = f"it has {write} write queues: what waits was stored before that"
    yield StallCause(0, text, (line,), (max((row for _, row in listed), key=lambda row: row.seq),))


def _no_owner(about: _WaitingQueue) -> Iterator[StallCause]:
    """No consumer owns the queue."""
    if about.owners:
        return
    known = holds_of(about.trace, about.group, about.requested)
    lost = max((hold.newest for hold in known), key=lambda row: row.seq, default=None)
    last = "" if lost is None else f": {lost.text('node')} lost it last, at {seconds(lost.t_ns)}"
    locked = list(_lock_holders(about))
    last += "".join(f", and {line}" for line in locked[:1])
    lines = [line.strip() for line in no_owner_lines(about.trace, about.group, about.requested, about.names)]
    yield StallCause(2, f"it has no owner{last}", tuple(lines), () if lost is None else (lost,))


def _asleep(about: _WaitingQueue) -> Iterator[StallCause]:
    """Its owners are suspended."""
    stages = [stage for hold in about.owners if (stage := about.stage(hold.node)) is not None]
    asleep = [stage for stage in stages if stage.text("event") == LifecycleEvent.SUSPENDED]
    if asleep and len(asleep) == len(about.owners):
        names = listed_nodes([_stage_words(item) for item in asleep])
        yield StallCause(1, f"its owner does not run: {names}", rows=tuple(asleep[-1:]))


def _slept(about: _WaitingQueue) -> Iterator[StallCause]:
    """Its owner was suspended, and has only just gone on."""
    for hold in about.owners:
        stage = about.stage(hold.node)
        if stage is not None and stage.text("event") == LifecycleEvent.RESUMED and stage.t_ns > about.waiting.since_ns:
            slept = about.trace.newest(
                LIFECYCLE, node=hold.node, event=LifecycleEvent.SUSPENDED.value, until_ns=stage.t_ns
            )
            since = "" if slept is None else f" from {seconds(slept.t_ns)}"
            text = f"its owner did not run: {hold.node} was suspended{since} to {seconds(stage.t_ns)}"
            yield StallCause(1, text, rows=(stage if slept is None else slept,))


def _unlocked(about: _WaitingQueue) -> Iterator[StallCause]:
    """The group consumes in order, and its owner does not have the lock of the queue."""
    events = (OwnershipEvent.LOCKED.value, OwnershipEvent.UNLOCKED.value)
    of_group = about.trace.select(OWNERSHIP, event=events, group=about.group, until_ns=about.at_ns)
    if not of_group:
        return
    place = (about.requested.topic, about.requested.broker_name, about.requested.queue_id)
    for hold in about.owners:
        own = [row for row in of_group if row.text("node") == hold.node and _place(row) == place]
        if not own or own[-1].text("event") == OwnershipEvent.UNLOCKED:
            since = f"lost its lock at {seconds(own[-1].t_ns)}" if own else "never got its lock"
            lines = tuple(_lock_holders(about))
            yield StallCause(
                3, f"{hold.node} owns it and {since}, so it does not consume in order", lines, tuple(own[-1:])
            )


def _lock_holders(about: _WaitingQueue) -> Iterator[str]:
    """Who has the lock, as brokers hold."""
    requested = about.requested
    name = f"{requested.topic}@{requested.broker_name}@{requested.queue_id}"
    for broker in about.brokers:
        row = about.trace.newest(
            BELIEFS,
            kind=BeliefKind.QUEUE_LOCKS.value,
            subject=about.group,
            node=broker,
            until_ns=about.at_ns,
        )
        holder = "" if row is None else (value_of(row) or {}).get(name, "")
        if holder:
            yield f"{broker} still holds a lock of {about.names.node(holder)}"


def _cut_off(about: _WaitingQueue) -> Iterator[StallCause]:
    """The frames between its owner and the broker, or the proxies of that, do not arrive."""
    after_ns = max(about.waiting.since_ns, about.at_ns - 4 * _RECENT_NS) - _BEFORE_NS
    for hold in about.owners:
        peers = about.proxies_of(hold.node) or about.brokers
        failed = failed_calls(about.trace, hold.node, peers, after_ns, about.at_ns)
        recent = [row for row in failed if row.t_ns > about.at_ns - _RECENT_NS]
        if recent and not about.consumed(max(failed[0].t_ns, about.at_ns - _RECENT_NS)):
            peer = next(node for node in peers if node in _ends(about, recent[-1]) or node == peers[-1])
            kinds = dict.fromkeys(_failure(row) for row in failed)
            text = f"{hold.node} does not reach {peer} since {seconds(failed[0].t_ns)}"
            yield StallCause(
                3, text, (f"{len(failed)} failures: {', '.join(kinds)}",), (), _silence(hold.node, peer, about)
            )


def _silence(consumer: str, broker: str, about: _WaitingQueue) -> tuple[Silence, ...]:
    return (Silence(consumer, broker, about.at_ns),)


def _ends(about: _WaitingQueue, row: TraceRow) -> tuple[str, str]:
    return row.text("src"), about.names.node(row.text("dst"))


def _failure(row: TraceRow) -> str:
    match row.text("event"):
        case "timed_out":
            return f"{request_words(row.number('code'))} timed out"
        case "dropped":
            return f"{row.text('detail')} took frames"
        case "refused":
            return "connection refused"
        case "connect_lost":
            return "connection not answered"
        case event:
            return f"frames {event}"


def _left_out(about: _WaitingQueue) -> Iterator[StallCause]:
    """Its owner does not subscribe to the messages that wait, though another member does."""
    place = attrs.asdict(about.waiting.queue)
    place.pop("group")
    stored = about.trace.select(MESSAGES, event=MessageEvent.STORED.value, until_ns=about.at_ns, **place)
    first = next((row for row in stored if row.number("offset") == about.waiting.first_offset), None)
    for hold in about.owners if first is not None else ():
        own = [
            row
            for row in subscriptions_of(about.trace, about.group, about.at_ns)
            if row.text("node") == hold.node and topic_of(row) == about.requested.topic
        ]
        if own and first is not None and not is_wanted(own[0], first.text("tags")):
            expression = value_of(own[0])["expression"]
            tag = first.text("tags")
            text = f"{hold.node} owns it and subscribes to {expression}, and the first message has tag {tag}"
            yield StallCause(4, text, rows=(own[0],))


def _elsewhere(about: _WaitingQueue) -> Iterator[StallCause]:
    """All calls of its consumers wait at other brokers: a receive asks one, and those of simple ones take turns."""
    waits: list[tuple[TraceRow, TraceRow]] = []
    for hold in about.owners:
        receives = list(_pending_receives(about, hold.node)) if hold.is_shared else []
        pops = [pop for receive in receives for pop in _pop_of(about, receive)]
        if (
            not pops
            or len(pops) < len(receives)
            or any(about.names.node(pop.text("dst")) in about.brokers for pop in pops)
        ):
            return
        waits += zip(receives, pops, strict=True)
    for receive, pop in waits[:1]:
        node, broker = receive.text("src"), about.names.node(pop.text("dst"))
        since = f"since {seconds(receive.t_ns)}"
        text = f"{node} waits for messages of {broker} {since}: a receive asks one broker, and its calls take turns"
        yield StallCause(4, text)


def _pending_receives(about: _WaitingQueue, node: str) -> Iterator[TraceRow]:
    """The calls of a client for messages that have not been answered at an instant."""
    code, after_ns = int(RequestCode.V2_RECEIVE_MESSAGE), about.at_ns - 2 * _RECENT_NS
    given: dict[str, Any] = {"code": code, "event": "delivered", "after_ns": after_ns, "until_ns": about.at_ns}
    answers = about.trace.select(RPC, kind="response", dst=node, **given)
    answered = [(row.text("src"), row.number("opaque")) for row in answers]
    for row in about.trace.select(RPC, kind="request", src=node, **given):
        if (about.names.node(row.text("dst")), row.number("opaque")) not in answered:
            yield row


def _pop_of(about: _WaitingQueue, receive: TraceRow) -> list[TraceRow]:
    """The pop that a proxy sends a broker for a call."""
    proxy, code = about.names.node(receive.text("dst")), int(RequestCode.POP_MESSAGE)
    after_ns = receive.t_ns - 1
    sent = about.trace.select(RPC, kind="request", src=proxy, code=code, after_ns=after_ns, until_ns=about.at_ns)
    return [row for row in sent if row.cause == receive.seq][:1]


def _failing(about: _WaitingQueue) -> Iterator[StallCause]:
    """Its listener fails with a message, and gets it again before any other one of the queue."""
    place = attrs.asdict(about.waiting.queue)
    event = MessageEvent.CONSUMED.value
    for hold in about.owners:
        rows = about.trace.select(MESSAGES, event=event, node=hold.node, until_ns=about.at_ns, **place)
        again = list(takewhile(partial(_is_same_failure, rows[-1]), reversed(rows))) if rows else []
        if len(again) > 1:
            last, first = again[0], again[-1]
            name = f"{about.waiting.queue.name}@{last.number('offset')}"
            text = f"the listener of {hold.node} fails, and gets the message again before any other one of its queue"
            times = f"it failed {len(again)} times with {name}, from {seconds(first.t_ns)} to {seconds(last.t_ns)}"
            yield StallCause(5, text, (f"{times}; ask `message {name}`", *_kept_from_giving_up(about, hold)))


def _is_same_failure(last: TraceRow, row: TraceRow) -> bool:
    """Whether a listener failed with the same message as in its last row."""
    identity = ("offset", "stored_ms", "tags")
    is_failure = row.text("tags") == ConsumptionResult.LATER
    return is_failure and all(row.text(name) == last.text(name) for name in identity)


def _kept_from_giving_up(about: _WaitingQueue, hold: LastHold) -> Iterator[str]:
    """What brokers deny its owner, which sends a message with which it has failed too often to a retry topic."""
    kind = BeliefKind.DENIED.value
    denied: dict[tuple[str, str], TraceRow] = {}
    for row in about.trace.select(BELIEFS, kind=kind, node=about.brokers, until_ns=about.at_ns):
        denied[row.text("node"), row.text("subject")] = row
    for (broker, _), row in denied.items():
        value = value_of(row)
        if value is not None and value["request"] in _GIVE_UP and about.names.node(value["ip"]) == hold.node:
            needs = f"{' or '.join(value['actions'])} of {value['resource']}"
            yield f"it cannot be given up: {broker} denies {hold.node} {value['request']}, which needs {needs}"


def _slow(about: _WaitingQueue) -> Iterator[StallCause]:
    """Its owner consumes more slowly than producers send, or its listener does not return."""
    hold = about.owners[-1]
    after_ns = max(0, about.at_ns - _RECENT_NS)
    consumed = about.consumed(after_ns)
    span_s = (about.at_ns - after_ns) / NS_PER_S or 1
    if consumed:
        place = attrs.asdict(about.waiting.queue)
        place.pop("group")
        event = MessageEvent.STORED.value
        stored = about.trace.select(MESSAGES, event=event, after_ns=after_ns, until_ns=about.at_ns, **place)
        rates = f"{consumed / span_s:.1f} a second are consumed and {len(stored) / span_s:.1f} a second stored"
        yield StallCause(6, f"the listener of {hold.node} is slow: in the last {span_s:.0f} s {rates}")
    since = f"since {seconds(max(about.waiting.since_ns, hold.row.t_ns))}"
    holds = "receives from it" if hold.is_shared else "owns it"
    yield StallCause(7, f"{hold.node} {holds}, and its listener has finished no message of it {since}", rows=())


def _stage_words(stage: TraceRow) -> str:
    return f"{stage.text('node')} ({stage.text('event').replace('_', ' ')} at {seconds(stage.t_ns)})"


def _place(row: TraceRow) -> tuple[str, str, int]:
    return row.text("topic"), row.text("broker_name"), row.number("queue_id")


_LOOKS: tuple[Callable[[_WaitingQueue], Iterator[StallCause]], ...] = (
    _refused,
    _no_broker,
    _no_proxy,
    _handed_out,
    _not_routed,
    _no_owner,
    _asleep,
    _slept,
    _unlocked,
    _cut_off,
    _left_out,
    _elsewhere,
    _failing,
    _slow,
)
"""In the order in which they are looked for; the last one always finds something."""
