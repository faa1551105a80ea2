"""Questions, and their parser."""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches

import attrs

from emulator.base.errors import UserError
from emulator.base.text import alike, listed, nearest
from emulator.why.forms import FORM_TABLE, FORMS
from nodes.beliefs import BeliefKind
from nodes.fields import LONG_MAX, shown

_NS_PER_UNIT = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_TIME = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(ms|s|m)")
_NUMBER = re.compile(r"[0-9]{1,9}")
_WORD_MAX = 600
_PLACE = re.compile(r"(.+)/([^/]+)/([0-9]{1,9})@([0-9]{1,18})")
_QUEUE, _NODE, _NO, _IN, _OF, _AT = "queue", "node", "no", "in", "of", "at"
_STALL, _STALLED, _STORM, _TRANSACTION, _MESSAGE = "stall", "stalled", "storm", "transaction", "message"
_LAG, _GROUP, _TOPIC, _SENDS = "lag", "group", "topic", "sends"
_LISTED_MAX = 12


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


@attrs.frozen
class LagQuestion:
    """Why messages wait for a group."""

    group: str
    at_ns: int | None = None


@attrs.frozen
class StallQuestion:
    """Why the messages of a queue wait."""

    queue: QueueQuestion

    @property
    def at_ns(self) -> int | None:
        """Instant in ns since the run began; None: the newest row."""
        return self.queue.at_ns


@attrs.frozen
class GroupQuestion:
    """What a group is made of."""

    group: str
    at_ns: int | None = None


@attrs.frozen
class TopicQuestion:
    """Who lists and who serves a topic."""

    topic: str
    at_ns: int | None = None


@attrs.frozen
class TransactionQuestion:
    """What became of a transaction."""

    id: str
    """The unique id of its half message."""
    at_ns: int | None = None


@attrs.frozen
class StoredAt:
    """Where a message is stored."""

    topic: str
    broker_name: str
    queue_id: int
    offset: int

    @property
    def words(self) -> str:
        """`orders/broker-a/3@17`."""
        return f"{self.topic}/{self.broker_name}/{self.queue_id}@{self.offset}"


@attrs.frozen
class MessageQuestion:
    """What became of a message."""

    name: StoredAt | str
    """Where it is stored, or its unique id or one of its keys."""
    at_ns: int | None = None


@attrs.frozen
class StormQuestion:
    """Who asks what far too often, and why."""

    client: str | None = None
    """None: every client."""
    at_ns: int | None = None


@attrs.frozen
class SendsQuestion:
    """Which attempts to send failed, and why."""

    producer: str | None = None
    """The node that sends; None: every one."""
    at_ns: int | None = None


Question = (
    QueueQuestion
    | StallQuestion
    | LagQuestion
    | GroupQuestion
    | TopicQuestion
    | TransactionQuestion
    | MessageQuestion
    | StormQuestion
    | SendsQuestion
    | BeliefQuestion
    | AbsenceQuestion
    | NodeQuestion
)


def question(words: Sequence[str]) -> Question:
    """Parse a question from words, each of which may be a text of several words.

    Raises:
        WhyError: the words are not a question.
    """
    parts = [part for word in words for part in word.split()]
    for part in parts:
        if len(part) > _WORD_MAX:
            raise WhyError(f"expected words of at most {_WORD_MAX} characters, not {shown(part)}")
    requested, at, of = _split(parts)
    at_ns = None if at is None else instant_ns(at)
    match requested:
        case [noun] if noun in _OF_CLIENT:
            return _OF_CLIENT[noun](of, at_ns)
        case [noun, text] if noun in _OF_GROUP:
            return _OF_GROUP[noun](text, of, at_ns)
        case [noun, again, text] if noun in (_STALL, _STALLED) and again == _QUEUE:
            return StallQuestion(_queue(text, of, at_ns))
        case [noun, text] if noun in _BY_NAME and of is None:
            return _BY_NAME[noun](text, at_ns)
        case [noun, item, preposition, *believed] if (noun, preposition) == (_NO, _IN):
            return AbsenceQuestion(item, _belief(believed, of, at_ns))
        case [noun, *_] if noun in _NOUNS:
            raise WhyError(f"expected: {_form_of(noun)}")
        case _:
            return _belief(requested, of, at_ns)


def instant_ns(text: str) -> int:
    """`31.2s`, `31200ms` or `2m` as nanoseconds since the run began.

    Raises:
        WhyError: the text is not a time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise WhyError(f"expected a time such as 31.2s, 31200ms or 2m, not {shown(text)}")
    instant = int(Decimal(match[1]) * _NS_PER_UNIT[match[2]])
    if instant > LONG_MAX:
        raise WhyError(f"expected a time of at most {LONG_MAX // _NS_PER_UNIT['m']}m, not {shown(text)}")
    return instant


def no_such(subject: str, wrong: str, known: Sequence[str]) -> str:
    """A message about an unknown name: `there is no topic ordrs; did you mean orders?`; lists some of many names."""
    if len(known) <= _LISTED_MAX or get_close_matches(shown(wrong), known):
        return nearest(subject, wrong, known)
    return f"there is no {subject} {shown(wrong)}; some of {len(known)} are {', '.join(known[:_LISTED_MAX])}"


def no_question_about(subject: str, wrong: str, known: Sequence[str], ask: str) -> WhyError:
    """An unknown name in a question, with the nearest question that has an answer.

    Args:
        subject: kind of the name: `group`.
        wrong: the name in the question.
        known: names about which the question has an answer; those that RocketMQ made, such as %RETRY%, come last.
        ask: the question, with `{}` where the name stands.
    """
    known = sorted(known, key=lambda name: name.startswith("%"))
    near = alike(wrong, known, 1) or known[:1]
    if not near:
        return WhyError(
            f"there is no {subject} {shown(wrong)}, as this run has no {subject}; ask `storm` or `node NODE`"
        )
    others = "" if alike(wrong, known, 1) else f"; {subject}s are {listed(known[:_LISTED_MAX])}"
    return WhyError(f"there is no {subject} {shown(wrong)}{others}; ask `{ask.format(near[0])}`")


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
        case [subject] if subject not in _NOUNS:
            return BeliefQuestion(None, subject, of, at_ns)
        case [noun, *rest] if noun not in (*_NOUNS, *BeliefKind):
            raise WhyError(_no_such_noun(noun, rest))
        case _:
            raise WhyError(f"expected: {FORMS}")


def _no_such_noun(noun: str, rest: Sequence[str]) -> str:
    near = alike(noun, (*_NOUNS, *(kind.value for kind in BeliefKind)), 1)
    if not near:
        return f"there is no question {shown(noun)}; expected: {FORMS}"
    return f"there is no question {shown(noun)}; did you mean `{shown(' '.join((near[0], *rest)))}`?"


def _form_of(noun: str) -> str:
    """The form of the questions that begin with a noun."""
    noun = _STALL if noun == _STALLED else noun
    return next(form.words for form in FORM_TABLE if form.words.split()[0] == noun)


def _queue(text: str, group: str | None, at_ns: int | None) -> QueueQuestion:
    match text.rsplit("/", 2):
        case [topic, broker_name, number] if topic and broker_name and _NUMBER.fullmatch(number):
            return QueueQuestion(topic, broker_name, int(number), group, at_ns)
        case _:
            raise WhyError(f"expected a queue as TOPIC/BROKER/ID, such as orders/broker-a/3, not {shown(text)}")


def _stall(text: str, group: str | None, at_ns: int | None) -> StallQuestion:
    return StallQuestion(_queue(text, group, at_ns))


def _message(text: str, at_ns: int | None) -> MessageQuestion:
    place = _PLACE.fullmatch(text)
    if place is None:
        return MessageQuestion(text, at_ns)
    return MessageQuestion(StoredAt(place[1], place[2], int(place[3]), int(place[4])), at_ns)


_OF_GROUP: Mapping[str, Callable[[str, str | None, int | None], Question]] = {
    _QUEUE: _queue,
    _STALL: _stall,
    _STALLED: _stall,
}
_BY_NAME: Mapping[str, Callable[[str, int | None], Question]] = {
    _NODE: NodeQuestion,
    _LAG: LagQuestion,
    _GROUP: GroupQuestion,
    _TOPIC: TopicQuestion,
    _TRANSACTION: TransactionQuestion,
    _MESSAGE: _message,
}
_OF_CLIENT: Mapping[str, Callable[[str | None, int | None], Question]] = {
    _STORM: StormQuestion,
    _SENDS: SendsQuestion,
}
_NOUNS = (*_OF_GROUP, *_BY_NAME, *_OF_CLIENT, _NO)
