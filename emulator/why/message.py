"""What became of a message: stored, delayed, delivered, consumed, filtered, popped, retried, given up, lost."""

from collections import Counter
from collections.abc import Iterator

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import MESSAGES, OWNERSHIP, RPC
from emulator.why.handed_out import lost_answer, lost_answer_lines
from emulator.why.holders import Finding
from emulator.why.question import MessageQuestion, StoredAt, WhyError, no_question_about
from emulator.why.words import NodeNames, listed_nodes, seconds
from nodes.beliefs import ConsumptionResult, MessageEvent, OwnershipEvent
from nodes.broker.tables.pop.check_point import PopOutcome
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX

_E = MessageEvent
_SEND_BACK = int(RequestCode.CONSUMER_SEND_MSG_BACK)
_LINES_MAX = 30
_COPIES_MAX = 64
_WITH_KEYS = tuple(event.value for event in (_E.STORED, _E.HALF, _E.DELAYED, _E.DELIVERED, _E.ENDED))
"""Events whose key is a key of a message, or its unique id."""
_WITH_ID = tuple(
    event.value
    for event in (_E.HALF, _E.DECIDED, _E.ENDED, _E.DELAYED, _E.DELIVERED, _E.RECALLED, _E.DROPPED, _E.DISCARDED)
)
"""Events whose key is the unique id of a message."""
_COPIED = (_E.RETRIED.value, _E.DEAD_LETTERED.value)
"""Events whose key is the place of the message that was copied."""
_FAILED_ACKS = (PopOutcome.REFUSED.value, PopOutcome.GONE.value, PopOutcome.UNKNOWN.value)
_SAME_KEY_MAX = 8
_OFFSETS = (_E.COMMITTED.value, _E.LOADED.value, _E.COPIED.value, _E.RESET.value)
"""Events about offsets of groups, not about messages."""
_HALF_OFFSETS = (_E.HALF.value, _E.DECIDED.value, _E.DELAYED.value)
"""Events whose offset is not that of the message in its queue."""


@attrs.frozen
class _MessageStep:
    t_ns: int
    seq: int
    node: str
    text: str


def message(trace: TraceRows, requested: MessageQuestion, names: NodeNames) -> Finding:
    """What became of a message.

    Raises:
        WhyError: there is none.
    """
    about = _MessageRows(trace, requested)
    if not about.rows:
        raise _unknown(trace, requested)
    name = requested.name
    same = [] if isinstance(name, StoredAt) or about.has_id(name) else with_key(trace, name, requested.at_ns)
    if len(same) > 1:
        return _several(trace, requested, same, names)
    steps = sorted(about.steps(), key=lambda step: step.seq)
    width = max(len(step.node) for step in steps)
    shown = [f"  {seconds(step.t_ns):>10}  {step.node:<{width}}  {step.text}" for step in steps]
    more = len(shown) - _LINES_MAX
    if more > 1:
        shown = [*shown[: _LINES_MAX // 2], f"  {'…':>10}  {more} more", *shown[-_LINES_MAX // 2 :]]
    named = name.words if isinstance(name, StoredAt) else name
    headline = f"message {named} {about.verdict(names)}"
    return Finding((headline, *about.not_received(), *about.passed(), *about.same_keys(), *shown), ())


def with_key(trace: TraceRows, key: str, at_ns: int | None) -> list[StoredAt]:
    """Where messages with a key among their KEYS are stored, without copies for groups, in order.

    Args:
        trace: of the run.
        key: one of the producer's.
        at_ns: the latest instant; None: the end of the run.
    """
    known = [item for item in trace.values(MESSAGES, "key") if key in item.split()]
    rows = trace.select(MESSAGES, event=_E.STORED.value, key=tuple(known), until_ns=at_ns) if known else []
    return list(dict.fromkeys(_place(row) for row in rows if not _is_copy(row)))


def _several(trace: TraceRows, requested: MessageQuestion, same: list[StoredAt], names: NodeNames) -> Finding:
    """The messages that have one key, each with what became of it."""
    lines = [f"{len(same)} messages have the key {requested.name}; ask for one of them, `message {same[0].words}`"]
    for place in same[:_SAME_KEY_MAX]:
        about = _MessageRows(trace, MessageQuestion(place, requested.at_ns))
        lines.append(f"  message {place.words} {about.verdict(names)}")
    more = len(same) - _SAME_KEY_MAX
    return Finding((*lines, *([f"  and {more} more"] if more > 0 else [])), ())


class _MessageRows:
    """The rows of one message, and of its copies.

    A message is where it is stored; its waits and its transaction have its unique id, and its copies name it. Its KEYS
    are the producer's: other messages may have the same.
    """

    def __init__(self, trace: TraceRows, requested: MessageQuestion) -> None:
        self._trace = trace
        self._at_ns = requested.at_ns
        self.places: dict[StoredAt, None] = {}
        self._ids: dict[str, None] = {}
        self._found: dict[int, TraceRow] = {}
        if isinstance(requested.name, StoredAt):
            self._collect([requested.name])
        else:
            self._collect(self._of_id(requested.name) or with_key(trace, requested.name, requested.at_ns)[:1])
        self.rows = [self._found[seq] for seq in sorted(self._found)]

    def _collect(self, waiting: list[StoredAt]) -> None:
        """Take the rows at places, and at those of the copies of what is there."""
        while waiting and len(self.places) < _COPIES_MAX:
            place = waiting.pop(0)
            if place in self.places:
                continue
            self.places[place] = None
            rows = self._at(place)
            self._found |= {row.seq: row for row in rows}
            waiting += self._copies(place, rows)
            waiting += [found for unique_id in self._unique_ids(rows) for found in self._of_id(unique_id)]

    def _copies(self, place: StoredAt, rows: list[TraceRow]) -> Iterator[StoredAt]:
        """Where copies of a message are stored, and of what it is a copy itself."""
        key = f"{place.topic} {place.broker_name} {place.queue_id} {place.offset}"
        for row in self._trace.select(MESSAGES, event=_COPIED, key=key, until_ns=self._at_ns):
            yield _place(row)
        for row in rows:
            if row.text("event") in _COPIED and (original := _original(row)) is not None:
                yield original
            elif row.text("event") == _E.REVIVED:
                copy = self._trace.newest(MESSAGES, event=_E.STORED.value, cause=row.cause, until_seq=row.seq)
                if copy is not None and _is_copy(copy):
                    yield _place(copy)

    def _unique_ids(self, rows: list[TraceRow]) -> Iterator[str]:
        """The unique ids of messages that were delivered to a place after a wait or a transaction."""
        for row in rows:
            if row.text("event") == _E.DELIVERED:
                yield row.text("key")
            elif row.text("event") == _E.STORED and row.cause:
                yield from (end.text("key") for end in self._with_cause(row, _E.ENDED))

    def _of_id(self, unique_id: str) -> list[StoredAt]:
        """Take the rows with a unique id; the places to which its message was delivered."""
        if not unique_id or unique_id in self._ids:
            return []
        self._ids[unique_id] = None
        rows = self._trace.select(MESSAGES, event=_WITH_ID, key=unique_id, until_ns=self._at_ns)
        self._found |= {row.seq: row for row in rows}
        places = [_place(row) for row in rows if row.text("event") == _E.DELIVERED and _has_place(row)]
        for row in rows:
            if row.text("event") == _E.ENDED and row.cause:
                places += map(_place, self._with_cause(row, _E.STORED))
        return places

    def _with_cause(self, row: TraceRow, event: MessageEvent) -> list[TraceRow]:
        """The rows of an event that the same request has led to, about the same topic."""
        until_ns, topic = self._at_ns, row.text("topic")
        return self._trace.select(MESSAGES, event=event.value, cause=row.cause, topic=topic, until_ns=until_ns)

    def _at(self, place: StoredAt) -> list[TraceRow]:
        rows = self._trace.select(
            MESSAGES,
            topic=place.topic,
            broker_name=place.broker_name,
            queue_id=place.queue_id,
            offset=place.offset,
            until_ns=self._at_ns,
        )
        return [row for row in rows if row.text("event") not in (*_OFFSETS, *_HALF_OFFSETS)]

    def has_id(self, name: str) -> bool:
        """Whether a name is its unique id."""
        return any(row.text("event") in _WITH_ID and row.text("key") == name for row in self.rows)

    def verdict(self, names: NodeNames) -> str:
        """What became of it, on one line."""
        consumed = self._consumed
        parts = [
            f"was consumed {_times(number)} by group {group} ({listed_nodes(tuple(self._consumers(group)))})"
            f"{self._failures(group)}"
            for group, number in consumed.items()
        ]
        acknowledged = list(self._acknowledged(consumed, names))
        parts += acknowledged
        parts += [text for event, text in _FATES.items() if any(row.text("event") == event for row in self.rows)]
        dead = [row for row in self.rows if row.text("topic").startswith(DLQ_TOPIC_PREFIX)]
        parts += [f"is a dead letter since {seconds(dead[0].t_ns)}"] if dead else []
        stored = [row for row in self.rows if row.text("event") == _E.STORED and not _is_copy(row)]
        parts += [self._taken_by(row) for row in stored[1:] if _place(row) == _place(stored[0])]
        if not consumed and not acknowledged:
            since = f"is stored since {seconds(stored[0].t_ns)}, and " if stored else ""
            return "; ".join([f"{since}no consumer has consumed it", *parts])
        return "; ".join(parts)

    def _taken_by(self, later: TraceRow) -> str:
        """The message that took its place, after a broker had lost it or its topic had been deleted."""
        known = [row for row in self.rows if row.text("event") == _E.CONSUMED]
        number = sum(row.number("stored_ms") == later.number("stored_ms") for row in known)
        became = f"was consumed {_times(number)}" if number else "no consumer has consumed"
        return f"another message took its place at {seconds(later.t_ns)}, which {became}"

    @property
    def _consumed(self) -> Counter[str]:
        """Mapping group -> how often."""
        return Counter(row.text("group") for row in self.rows if row.text("event") == _E.CONSUMED)

    def _consumers(self, group: str) -> list[str]:
        return list(
            dict.fromkeys(
                row.text("node") for row in self.rows if row.text("event") == _E.CONSUMED and row.text("group") == group
            )
        )

    def _failures(self, group: str) -> str:
        """How often the listener of a group failed with it, and when; empty: it never did."""
        failed = [row for row in self.rows if row.text("group") == group and _is_failure(row)]
        if not failed:
            return ""
        last_ns = failed[-1].t_ns
        until = "" if len(failed) == 1 else f" to {seconds(last_ns)}"
        since = f"from {seconds(failed[0].t_ns)}" if until else f"at {seconds(last_ns)}"
        return f", whose listener failed {_times(len(failed))}, {since}{until}"

    def _acknowledged(self, consumed: Counter[str], names: NodeNames) -> Iterator[str]:
        """Groups of guests, whose listeners are not seen: what they have acknowledged they have consumed."""
        acks = [row for row in self.rows if row.text("event") == _E.ACKED and row.text("tags") not in _FAILED_ACKS]
        for group in dict.fromkeys(row.text("group") for row in acks):
            if not consumed[group]:
                own = [row for row in acks if row.text("group") == group]
                address = own[0].text("client_id")
                by = names.node(address).removeprefix(address)
                when = f"acknowledged at {seconds(own[0].t_ns)}{f' by {by}' if by else ''}"
                yield f"was consumed by group {group}: {when}"

    def not_received(self) -> Iterator[str]:
        """Clients to which it was handed out, and which did not get it."""
        for row in self.rows:
            lost = lost_answer(self._trace, row) if row.text("event") == _E.POPPED else None
            if lost is not None:
                where = f"{row.text('node')} handed {_place(row).words} out to group {row.text('group')}"
                yield f"  at {seconds(row.t_ns)} {where}, and {lost.client} did not get it"
                yield from (f"    {line}" for line in lost_answer_lines(self._trace, lost))

    def same_keys(self) -> Iterator[str]:
        """How many other messages have one of its keys."""
        keyed = [row for row in self.rows if row.text("event") == _E.STORED and not _is_copy(row)]
        for key in dict.fromkeys(key for row in keyed for key in row.text("key").split()):
            others = [place for place in with_key(self._trace, key, self._at_ns) if place not in self.places]
            if others:
                have = "1 other message has" if len(others) == 1 else f"{len(others):,} other messages have"
                yield f"  {have} the same key {key}; ask `message {key}`"

    def passed(self) -> Iterator[str]:
        """Groups whose owners began behind it, and which therefore never get it."""
        consumed = self._consumed
        for place in self.places:
            stored = next((row for row in self._at(place) if row.text("event") == _E.STORED), None)
            if stored is None:
                continue
            rows = self._trace.select(
                OWNERSHIP,
                event=OwnershipEvent.ACQUIRED.value,
                topic=place.topic,
                broker_name=place.broker_name,
                queue_id=place.queue_id,
                until_ns=self._at_ns,
            )
            first = {row.text("group"): row for row in reversed(rows)}
            for group, row in first.items():
                if row.number("offset") > place.offset and not consumed[group] and row.seq > stored.seq:
                    yield f"  group {group} began behind it, at offset {row.text('offset')}, at {seconds(row.t_ns)}"

    def steps(self) -> Iterator[_MessageStep]:
        """Everything that happened to it."""
        for row in self.rows:
            yield _MessageStep(row.t_ns, row.seq, row.text("node"), _words(row))
            if row.text("event") == _E.CONSUMED:
                yield from self._sent_back(row)

    def _sent_back(self, consumed: TraceRow) -> Iterator[_MessageStep]:
        """A message that a listener could not consume is sent back to be tried again."""
        if not self._trace.level.explains or not consumed.cause:
            return
        after = self._trace.select(
            RPC, code=_SEND_BACK, kind="request", src=consumed.text("node"), cause=consumed.cause
        )
        stored = [self._trace.newest(MESSAGES, cause=row.seq, event=_E.STORED.value) for row in after]
        for row, copy in zip(after, stored, strict=True):
            # A batch of messages has one cause; its messages are sent back in order.
            same = [item for item in self._batch(consumed) if item.seq <= consumed.seq]
            if copy is not None and after.index(row) == len(same) - 1:
                where = "dead letters" if copy.text("topic").startswith(DLQ_TOPIC_PREFIX) else "later"
                text = f"sent it back: stored for {where} as {_place(copy).words}"
                yield _MessageStep(row.t_ns, row.seq, consumed.text("node"), text)

    def _batch(self, consumed: TraceRow) -> list[TraceRow]:
        return self._trace.select(MESSAGES, event=_E.CONSUMED.value, node=consumed.text("node"), cause=consumed.cause)


_FATES = {
    _E.RECALLED.value: "was recalled by its producer",
    _E.DROPPED.value: "was given up, as it could not be delivered",
    _E.LOST.value: "was given up by POP",
    _E.CUT.value: "was cut from the log of a broker, as its master does not have it",
    _E.FILTERED.value: "was left out by a filter",
}
_WORDS = {
    _E.STORED: "stored {place}{tags}",
    _E.CONSUMED: "consumed {place} for group {group}{result}",
    _E.FILTERED: "left {place} out for group {group}, which does not subscribe to tag {tag}",
    _E.DELAYED: "put it aside for {wait}, for {queue}",
    _E.DELIVERED: "delivered it to {place} after its delay",
    _E.RECALLED: "recalled it",
    _E.DROPPED: "gave it up",
    _E.HALF: "stored a half message for {queue}",
    _E.DECIDED: "decided {tag}",
    _E.ENDED: "carried out the {tag}",
    _E.POPPED: "handed {place} out to group {group}, and hid it",
    _E.CHECK_POINT: "check point of a pop by group {group}: {tag}",
    _E.ACKED: "acknowledged for group {group}: {tag}",
    _E.INVISIBLE_CHANGED: "hid it again for group {group}: {tag}",
    _E.REVIVED: "revived it for group {group}: no consumer acknowledged it in time",
    _E.RE_PUT: "could not revive it for group {group}, and will try again: {tag}",
    _E.LOST: "gave it up for group {group}: {tag}",
    _E.CUT: "cut it from the log",
    _E.UNACKNOWLEDGED: "did not hear whether it was stored",
}
"""Mapping event -> what a node did."""


def _words(row: TraceRow) -> str:
    event, tag = _E(row.text("event")), row.text("tags")
    return _WORDS.get(event, event.value).format(
        place=_place(row).words,
        queue=f"{row.text('topic')}/{row.text('broker_name')}/{row.text('queue_id')}",
        group=row.text("group"),
        result=": its listener failed" if _is_failure(row) else "",
        tag=tag or "(none)",
        tags=f", tag {tag}" if tag else "",
        wait=f"{row.number('offset') / 1_000:.3f} s",
    )


def _unknown(trace: TraceRows, requested: MessageQuestion) -> WhyError:
    if requested.at_ns is not None and (later := _MessageRows(trace, MessageQuestion(requested.name)).rows):
        name = requested.name.words if isinstance(requested.name, StoredAt) else requested.name
        return WhyError(f"message {name} came later, at {seconds(later[0].t_ns)}; ask `message {name}`")
    if isinstance(requested.name, StoredAt):
        place = requested.name
        given = {"topic": place.topic, "broker_name": place.broker_name}
        last = trace.newest(MESSAGES, event=_E.STORED.value, queue_id=place.queue_id, **given)
        if last is not None:
            has = f"its last message is {_place(last).words}"
            return WhyError(f"there is no message {place.words}: {has}; ask `message {_place(last).words}`")
        stored = trace.select(MESSAGES, event=_E.STORED.value)
        queues = dict.fromkeys(_place(row).words for row in stored if row.number("offset") == 0)
        return no_question_about("message", place.words, tuple(queues), "message {}")
    keys = tuple(dict.fromkeys(item for (item,) in trace.tuples(MESSAGES, ("key",), event=_WITH_KEYS) if item))
    if keys:
        return no_question_about("message", requested.name, keys, "message {}")
    first = trace.newest(MESSAGES, event=_E.STORED.value)
    ask = "" if first is None else f", such as `message {_place(first).words}`"
    return WhyError(f"no message of this run has a key: ask by place{ask}")


def _original(copied: TraceRow) -> StoredAt | None:
    """The message of which a row records a copy; None: it is not known."""
    match copied.text("key").split():
        case [topic, broker_name, queue_id, offset]:
            return StoredAt(topic, broker_name, int(queue_id), int(offset))
        case _:
            return None


def _has_place(row: TraceRow) -> bool:
    event = row.text("event")
    return event not in (*_OFFSETS, *_HALF_OFFSETS) and row.number("offset") >= 0 and row.number("queue_id") >= 0


def _is_failure(row: TraceRow) -> bool:
    return row.text("event") == _E.CONSUMED and row.text("tags") == ConsumptionResult.LATER


def _is_copy(row: TraceRow) -> bool:
    return row.text("topic").startswith((RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX))


def _place(row: TraceRow) -> StoredAt:
    return StoredAt(row.text("topic"), row.text("broker_name"), row.number("queue_id"), row.number("offset"))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
