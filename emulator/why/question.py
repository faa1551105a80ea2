"""Questions, and their parser."""

import re
from collections.abc import Sequence
from decimal import Decimal
from difflib import get_close_matches

import attrs

from emulator.base.errors import UserError
from emulator.base.text import nearest
from nodes.beliefs import BeliefKind
from nodes.fields import LONG_MOST, shown

_NS_PER_UNIT = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_TIME = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(ms|s|m)")
_NUMBER = re.compile(r"[0-9]{1,9}")
_WORD_MOST = 600
_QUEUE, _NODE, _NO, _IN, _OF, _AT = "queue", "node", "no", "in", "of", "at"
_LISTED_MAX = 12
FORMS = (
    "queue TOPIC/BROKER/ID [of GROUP] [at T], KIND SUBJECT [of NODE] [at T], no ITEM in KIND SUBJECT [of NODE] [at T], "
    "or node NODE [at T]"
)


class WhyError(UserError):
    """A question cannot be parsed or answered; the text says in one line what was expected."""


@attrs.frozen
class QueueQuestion:
    """Who owns a queue, and why."""

    topic: str
    broker_name: str
    queue_id: int
    group: str | None = None
    """None: every group that consumes it."""
    at_ns: int | None = None
    """Instant in ns since the run began; None: the newest row."""

    @property
    def queue(self) -> str:
        """`orders/broker-a/3`."""
        return f"{self.topic}/{self.broker_name}/{self.queue_id}"


@attrs.frozen
class BeliefQuestion:
    """Why a node believes something."""

    kind: BeliefKind | None
    """None: the only kind that has this subject."""
    subject: str
    node: str | None = None
    """None: the node that changed its belief last."""
    at_ns: int | None = None


@attrs.frozen
class NodeQuestion:
    """Why a process is in its current stage."""

    node: str
    at_ns: int | None = None


@attrs.frozen
class AbsenceQuestion:
    """Why a belief lacks something."""

    item: str
    """A node, an address, a client id or a brokerName."""
    belief: BeliefQuestion
    """Node None: whichever node lacks it since last."""

    @property
    def at_ns(self) -> int | None:
        """Instant in ns since the run began; None: the newest row."""
        return self.belief.at_ns


Question = QueueQuestion | BeliefQuestion | AbsenceQuestion | NodeQuestion


def question(words: Sequence[str]) -> Question:
    """Parse a question from words, each of which may be a text of several words.

    Raises:
        WhyError: the words are not a question.
    """
    parts = [part for word in words for part in word.split()]
    for part in parts:
        if len(part) > _WORD_MOST:
            raise WhyError(f"expected words of at most {_WORD_MOST} characters, not {shown(part)}")
    asked, at, of = _split(parts)
    at_ns = None if at is None else instant_ns(at)
    match asked:
        case [noun, text] if noun == _QUEUE:
            return _queue(text, of, at_ns)
        case [noun, name] if noun == _NODE and of is None:
            return NodeQuestion(name, at_ns)
        case [noun, item, preposition, *believed] if (noun, preposition) == (_NO, _IN):
            return AbsenceQuestion(item, _belief(believed, of, at_ns))
        case [noun, *_] if noun == _NO:
            raise WhyError(f"expected: {FORMS}")
        case _:
            return _belief(asked, of, at_ns)


def instant_ns(text: str) -> int:
    """`31.2s`, `31200ms` or `2m` as nanoseconds since the run began.

    Raises:
        WhyError: the text is not a time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise WhyError(f"expected a time such as 31.2s, 31200ms or 2m, not {shown(text)}")
    instant = int(Decimal(match[1]) * _NS_PER_UNIT[match[2]])
    if instant > LONG_MOST:
        raise WhyError(f"expected a time of at most {LONG_MOST // _NS_PER_UNIT['m']}m, not {shown(text)}")
    return instant


def no_such(what: str, wrong: str, known: Sequence[str]) -> str:
    """A message about an unknown name: `there is no topic ordrs; did you mean orders?`; lists some of many names."""
    if len(known) <= _LISTED_MAX or get_close_matches(shown(wrong), known):
        return nearest(what, wrong, known)
    return f"there is no {what} {shown(wrong)}; some of {len(known)} are {', '.join(known[:_LISTED_MAX])}"


def _split(words: list[str]) -> tuple[list[str], str | None, str | None]:
    """(other words, word after `at`, word after `of`)."""
    behind: dict[str, str] = {}
    while len(words) > 2 and words[-2] in (_AT, _OF) and words[-2] not in behind:
        behind[words[-2]] = words[-1]
        words = words[:-2]
    if words[1:] and words[-1] in (_AT, _OF):
        raise WhyError(f"expected {'a time' if words[-1] == _AT else 'a name'} behind {words[-1]}: {FORMS}")
    return words, behind.get(_AT), behind.get(_OF)


def _belief(words: Sequence[str], of: str | None, at_ns: int | None) -> BeliefQuestion:
    match words:
        case [kind, subject] if kind in tuple(BeliefKind):
            return BeliefQuestion(BeliefKind(kind), subject, of, at_ns)
        case [kind, _] if kind != _NODE:
            nouns = (_QUEUE, _NODE, *(kind.value for kind in BeliefKind))
            raise WhyError(no_such("kind of belief", kind, nouns))
        case [subject] if subject not in (_QUEUE, _NODE):
            return BeliefQuestion(None, subject, of, at_ns)
        case _:
            raise WhyError(f"expected: {FORMS}")


def _queue(text: str, group: str | None, at_ns: int | None) -> QueueQuestion:
    match text.rsplit("/", 2):
        case [topic, broker_name, number] if topic and broker_name and _NUMBER.fullmatch(number):
            return QueueQuestion(topic, broker_name, int(number), group, at_ns)
        case _:
            raise WhyError(f"expected a queue as TOPIC/BROKER/ID, such as orders/broker-a/3, not {shown(text)}")
