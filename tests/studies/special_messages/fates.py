"""What became of every special message of a run, read from its rows as they are recorded.

A message is known by its topic and its key, so producers have to give each message its own. It is delivered when a
listener has consumed it, or a copy of it from a retry topic.
"""

from enum import StrEnum

import attrs

from emulator.history.rows.row_classes import MessageRow
from emulator.spec.model.producers import ProducerSpec
from emulator.spec.model.scenario import Scenario
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent
from nodes.broker.tables.pop.check_point import CK_TAG, REVIVE_TOPIC_PREFIX, PopOutcome
from nodes.broker.tables.store.transaction_messages import HALF_TOPIC
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.model import RETRY_TOPIC_PREFIX

_MS = 1_000_000
_REPORTED = (PopOutcome.STORED, PopOutcome.BUFFERED)
_SKIPPED = ("cause",)
_WANTED = tuple(i for i, column in enumerate(MESSAGES.columns) if column.name not in _SKIPPED)
_UNIQUE_ID_SEPARATOR = "@"
Place = tuple[str, str, int, int]
"""Topic, brokerName, queue id, offset."""


class Kind(StrEnum):
    """What makes a message special."""

    DELAYED = "delayed"
    TIMER = "timer"
    TRANSACTIONAL = "transactional"
    POP = "POP"


@attrs.define
class Fate:
    """What became of one message."""

    kind: Kind
    sent_ns: int
    due_ns: int
    """When its wait was over; of a message in a transaction or a popped one, when it was sent."""
    consumed_ns: list[int] = attrs.Factory(list)
    consumers: list[str] = attrs.Factory(list)
    """Who consumed it, once for each time."""
    released: list[tuple[int, str]] = attrs.Factory(list)
    """When and by which node it was stored for consumers: after its wait, or at the commit of its transaction."""
    halves: list[str] = attrs.Factory(list)
    """Brokers that stored its half message, once for each time."""
    dropped: int = 0
    """How often a wheel gave it up."""
    popped: list[tuple[Place, str]] = attrs.Factory(list)
    """Where it was popped from, and by which broker it was handed out."""
    acked: list[Place] = attrs.Factory(list)
    """Where a broker took its acknowledgement."""
    revived: list[tuple[str, str]] = attrs.Factory(list)
    """Node and outcome of each copy to a retry topic."""
    revived_after_ack: int = 0
    re_put: list[str] = attrs.Factory(list)
    """Outcome of each new check point."""
    lost: list[str] = attrs.Factory(list)
    """Why brokers gave it up."""
    records_dropped: list[str] = attrs.Factory(list)
    """Tags of its check points and acknowledgements that a wheel gave up."""


def kind_of(producer: ProducerSpec) -> Kind:
    """What is special about the messages of a producer."""
    if producer.delay_level:
        return Kind.DELAYED
    if producer.timer_ms:
        return Kind.TIMER
    return Kind.POP if producer.transactions is None else Kind.TRANSACTIONAL


class Fates:
    """Reads rows; `note` is a `RowListener`.

    Args:
        scenario: whose producers each write to a topic of their own, one of them in transactions.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.kinds = {topic: kind_of(producer) for producer in scenario.producers for topic in producer.topics}
        self.of: dict[tuple[str, str], Fate] = {}
        """Mapping topic and key -> fate."""
        self.refused_check_points = 0
        """How often a broker handed messages out whose check point it could not store, each try counted."""
        self._transactional = next((item for item, kind in self.kinds.items() if kind is Kind.TRANSACTIONAL), "")
        self._suffixes = {f"{group.group}_{topic}": topic for group in scenario.consumers for topic in group.topics}
        self._last_key: dict[str, str] = {}
        self._ids: dict[str, Fate] = {}
        self._places: dict[Place, Fate] = {}
        self._pops: dict[tuple[Place, int], list[Fate]] = {}
        """Place of the first message and time of a pop -> what was popped together."""
        self._read = {
            MessageEvent.STORED: self._stored,
            MessageEvent.DELAYED: self._delayed,
            MessageEvent.DELIVERED: self._delivered,
            MessageEvent.DROPPED: self._dropped,
            MessageEvent.CONSUMED: self._consumed,
            MessageEvent.CHECK_POINT: self._check_point,
            MessageEvent.POPPED: self._popped,
            MessageEvent.ACKED: self._acked,
            MessageEvent.REVIVED: self._revived,
            MessageEvent.RE_PUT: self._re_put,
            MessageEvent.LOST: self._lost,
        }

    def note(self, table: TraceTable, values: tuple[int | str, ...]) -> None:
        """Read a row."""
        if table is MESSAGES:
            row = MessageRow._make(values[i] for i in _WANTED)
            read = self._read.get(row.event)  # type: ignore[call-overload]
            if read is not None:
                read(row)

    # --- what is stored -------------------------------------------------------------------

    def _stored(self, row: MessageRow) -> None:
        self._last_key[row.node] = row.key
        if row.topic == HALF_TOPIC:
            fate = self._known(self._transactional, row.key, row.t_ns)
            fate.halves.append(row.node)
            return
        topic = self._topic(row.topic)
        kind = self.kinds.get(topic)
        if kind is Kind.POP:
            self._places[_place(row)] = self._known(topic, row.key, row.t_ns)
        elif kind is Kind.TRANSACTIONAL:
            self._known(topic, row.key, row.t_ns).released.append((row.t_ns, row.node))

    def _known(self, topic: str, key: str, t_ns: int) -> Fate:
        fate = self.of.get((topic, key))
        if fate is None:
            fate = self.of[topic, key] = Fate(self.kinds[topic], t_ns, t_ns)
        return fate

    def _topic(self, topic: str) -> str:
        """The topic that messages of a retry topic were sent to."""
        return self._suffixes.get(topic.removeprefix(RETRY_TOPIC_PREFIX), topic)

    def _delayed(self, row: MessageRow) -> None:
        """It follows the row of the same message at the same broker, which has the key."""
        fate = self._known(row.topic, self._last_key[row.node], row.t_ns)
        fate.due_ns = fate.sent_ns + row.offset * _MS
        self._ids[row.key] = fate

    def _delivered(self, row: MessageRow) -> None:
        if row.key in self._ids:
            self._ids[row.key].released.append((row.t_ns, row.node))

    def _dropped(self, row: MessageRow) -> None:
        if row.key in self._ids:
            self._ids[row.key].dropped += 1
        elif row.topic.startswith(REVIVE_TOPIC_PREFIX):
            self._record_dropped(row.key)

    def _record_dropped(self, unique_id: str) -> None:
        """The id of a check point has the offset of its first message, that of an acknowledgement the only one."""
        topic, queue_id, offset, _group, popped_ms, broker_name, tag = unique_id.split(_UNIQUE_ID_SEPARATOR)
        place = topic, broker_name, int(queue_id), int(offset)
        together = self._pops.get((place, int(popped_ms)), ()) if tag == CK_TAG else [self._places.get(place)]
        for fate in together:
            if fate is not None:
                fate.records_dropped.append(tag)

    def _consumed(self, row: MessageRow) -> None:
        fate = self.of.get((self._topic(row.topic), row.key))
        if fate is not None:
            fate.consumed_ns.append(row.t_ns)
            fate.consumers.append(row.node)

    # --- pops -----------------------------------------------------------------------------

    def _check_point(self, row: MessageRow) -> None:
        self.refused_check_points += row.tags == PopOutcome.REFUSED

    def _popped(self, row: MessageRow) -> None:
        place, handle = _place(row), parse_extra_info(row.key)
        if place in self._places:
            fate = self._places[place]
            fate.popped.append((place, row.node))
            first = (*place[:3], handle.ck_queue_offset)
            self._pops.setdefault((first, handle.pop_time_ms), []).append(fate)

    def _acked(self, row: MessageRow) -> None:
        if row.tags in _REPORTED and _place(row) in self._places:
            self._places[_place(row)].acked.append(_place(row))

    def _revived(self, row: MessageRow) -> None:
        fate = self._places.get(_place(row))
        if fate is not None:
            fate.revived.append((row.node, row.tags))
            fate.revived_after_ack += _place(row) in fate.acked and row.tags != PopOutcome.REFUSED

    def _re_put(self, row: MessageRow) -> None:
        if _place(row) in self._places:
            self._places[_place(row)].re_put.append(row.tags)

    def _lost(self, row: MessageRow) -> None:
        if _place(row) in self._places:
            self._places[_place(row)].lost.append(row.tags)


def _place(row: MessageRow) -> Place:
    return row.topic, row.broker_name, row.queue_id, row.offset
