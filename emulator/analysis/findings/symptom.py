"""Symptoms: what would page the people who operate the cluster, the most severe first.

A symptom has a measure that healthy runs do not exceed, and its severity is how many times it is above that; lost
messages are more severe than anything. Symptoms are not judged: RocketMQ as shipped has some of them after each fault.
"""

from enum import StrEnum

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.cause_words import cause_words
from emulator.analysis.findings.questions import Words


class SymptomKind(StrEnum):
    """What would page somebody."""

    LOST = "lost messages"
    TOPIC_LOST = "lost topic"
    DEAD_LETTERS = "dead letters"
    DISCARDED = "discarded messages"
    EXPIRED = "expired messages"
    SKIPPED = "skipped messages"
    MISSED = "missed messages"
    TRANSACTIONS = "transactions ended twice"
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
    CHURN = "churn"
    SPREAD = "uneven queues"
    IDLE = "idle members"
    STALE_ROUTES = "stale routes"
    FAN_OUT = "notify fan-out"


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
    """The question of `rmqemu why` that explains why; empty: there is none."""
    amount: float = 0.0
    """How much of it there is in the whole run, in `unit`."""
    unit: str = ""
    """messages, s, queue-seconds, ..."""
    causes: tuple[CauseShare, ...] = ()
    """The disturbances on its chain, each with its share."""

    @property
    def cause(self) -> str:
        """Its causes on one line; empty: none is known."""
        return cause_words(self.causes, self.amount, self.unit)
