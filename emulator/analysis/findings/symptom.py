"""Symptoms: what would page the people who operate the cluster, the most severe first.

A symptom has a measure that healthy runs do not exceed, and its severity is how many times it is above that; lost
messages are more severe than anything. Symptoms are not judged: RocketMQ as shipped has some of them after each fault.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.cause_words import cause_words
from emulator.analysis.findings.questions import Words, about_group, about_node, about_topic


class SymptomKind(StrEnum):
    """What would page somebody."""

    LOST = "lost messages"
    TOPIC_LOST = "lost topic"
    DEAD_LETTERS = "dead letters"
    DISCARDED = "discarded messages"
    ROLLED_BACK = "rolled back by another producer"
    COMMITTED_BY_ANOTHER = "committed by another producer"
    EXPIRED = "expired messages"
    SKIPPED = "skipped messages"
    MISSED = "missed messages"
    TRANSACTIONS = "transactions ended twice"
    CHECKED = "checked although committed"
    BUSY = "broker busy"
    STORM = "request storm"
    DENIED = "denied requests"
    NOT_STARTED = "failed starts"
    WITHOUT_PROXY = "no proxy"
    UNWRITABLE = "no writable queue"
    LAG = "consumer lag"
    LATENCY = "late messages"
    DELIVERY = "late deliveries"
    FAILED_SENDS = "failed sends"
    STALLED = "stalled queues"
    FAILING = "failing listener"
    AGAIN = "messages consumed again"
    POPPED_AGAIN = "popped messages consumed again"
    OUT_OF_ORDER = "out of order"
    CHURN = "churn"
    SPREAD = "uneven queues"
    IDLE = "idle members"
    STALE_ROUTES = "stale routes"
    FAN_OUT = "notify fan-out"


class SubjectKind(StrEnum):
    """Whom a symptom hits."""

    GROUP = "group"
    """A consumer group; where a topic follows it, one topic of the group."""
    TOPIC = "topic"
    USER = "user"
    NODE = "node"
    """A process; where a pool of its threads follows it, that pool."""
    PRODUCER = "producer"
    SERVER = "server"
    """One that clients ask; the request follows."""
    ENDPOINTS = "access point"
    CLUSTER = "cluster"


_SUBJECTS: Mapping[SymptomKind, SubjectKind] = MappingProxyType(
    {
        SymptomKind.TOPIC_LOST: SubjectKind.TOPIC,
        SymptomKind.DISCARDED: SubjectKind.TOPIC,
        SymptomKind.ROLLED_BACK: SubjectKind.TOPIC,
        SymptomKind.COMMITTED_BY_ANOTHER: SubjectKind.TOPIC,
        SymptomKind.EXPIRED: SubjectKind.GROUP,
        SymptomKind.TRANSACTIONS: SubjectKind.TOPIC,
        SymptomKind.CHECKED: SubjectKind.TOPIC,
        SymptomKind.BUSY: SubjectKind.NODE,
        SymptomKind.STORM: SubjectKind.SERVER,
        SymptomKind.DENIED: SubjectKind.USER,
        SymptomKind.NOT_STARTED: SubjectKind.NODE,
        SymptomKind.WITHOUT_PROXY: SubjectKind.ENDPOINTS,
        SymptomKind.UNWRITABLE: SubjectKind.TOPIC,
        SymptomKind.DELIVERY: SubjectKind.TOPIC,
        SymptomKind.FAILED_SENDS: SubjectKind.PRODUCER,
        SymptomKind.STALE_ROUTES: SubjectKind.TOPIC,
        SymptomKind.FAN_OUT: SubjectKind.CLUSTER,
    }
)
"""Of all other kinds it is a group."""


@attrs.frozen
class Symptom:
    """One symptom."""

    kind: SymptomKind
    """What it is, such as `request storm`."""
    severity: float
    """How many times it is above the limit of healthy runs."""
    start_ns: int
    """When it was most severe, or began; the end, if it is counted over a time."""
    text: str
    """A sentence with what, who, when and how much."""
    subject: str = ""
    """Whom it hits: a group, a group and a topic, a producer; as in the table `impacts`."""
    question: Words = ()
    """The question of `rmqemu why` that explains why."""
    amount: float = 0.0
    """How much of it there is in the whole run, in `unit`."""
    unit: str = ""
    """messages, s, queue-seconds, ..."""
    causes: tuple[CauseShare, ...] = ()
    """The disturbances on its chain, each with its share."""

    @property
    def hits(self) -> tuple[SubjectKind, str]:
        """Whom it hits: the kind, and the name; of a group and a topic, the group."""
        subject_kind = _SUBJECTS.get(self.kind, SubjectKind.GROUP)
        name, _, topic = self.subject.partition(" ")
        if subject_kind is SubjectKind.TOPIC and topic:
            return SubjectKind.GROUP, name
        if subject_kind is SubjectKind.GROUP and self.question[:1] == (SubjectKind.TOPIC.value,):
            return SubjectKind.TOPIC, name
        return subject_kind, name

    @property
    def questions(self) -> tuple[Words, ...]:
        """The question that explains why, then a more general one; the first that the trace can answer is asked."""
        subject_kind, name = self.hits
        about = _GENERAL.get(subject_kind)
        *_, word, at = ("", "", *self.question)
        general = () if about is None or not name else (about(name, at if word == "at" else ""),)
        return tuple(dict.fromkeys((*((self.question,) if self.question else ()), *general)))

    @property
    def cause(self) -> str:
        """Its causes on one line; empty: none is known."""
        return cause_words(self.causes, self.amount, self.unit)


_GENERAL: Mapping[SubjectKind, Callable[[str, str], Words]] = MappingProxyType(
    {SubjectKind.GROUP: about_group, SubjectKind.TOPIC: about_topic, SubjectKind.NODE: about_node}
)


@attrs.frozen
class SymptomsOfKind:
    """All symptoms of one kind."""

    worst: Symptom
    others: tuple[Symptom, ...]
    """The most severe first."""

    @property
    def more(self) -> str:
        """How many others are hit: `1 more group (audit)`, `3 more topics of billing`; empty: none."""
        noun, name = self.worst.hits
        others = dict.fromkeys(item.hits[1] for item in self.others)
        others.pop(name, None)
        own = {
            item.subject: None for item in self.others if item.hits[1] == name and item.subject != self.worst.subject
        }
        again = sum(item.subject == self.worst.subject for item in self.others)
        parts = [_more(tuple(others), str(noun))] if others else []
        parts += (
            [_more(tuple(subject.partition(" ")[2] for subject in own), _PARTS.get(noun, "part"), name)] if own else []
        )
        parts += [f"{again} more {'time' if again == 1 else 'times'}"] if again else []
        return " and ".join(parts)

    @property
    def text(self) -> str:
        """The worst in words, and how many others are hit."""
        return f"{self.worst.text.rstrip('.')}, and {self.more}" if self.more else self.worst.text


_PARTS: Mapping[SubjectKind, str] = MappingProxyType(
    {SubjectKind.GROUP: "topic", SubjectKind.SERVER: "request", SubjectKind.NODE: "pool"}
)
"""What follows the name of a subject."""
_NAMED_MAX = 2


def _more(names: tuple[str, ...], noun: str, of: str = "") -> str:
    named = ", ".join((*names[:_NAMED_MAX], *(["…"] if len(names) > _NAMED_MAX else [])))
    return f"{len(names)} more {noun}{'' if len(names) == 1 else 's'}{f' of {of}' if of else ''} ({named})"
