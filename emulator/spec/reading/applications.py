"""What the application of a producer does, in its table: keys, choice of queues, delays, local transactions."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import attrs

from emulator.spec.model.producers import ProducerSpec
from emulator.spec.tables.mistakes import SpecError
from emulator.spec.tables.section import Section, keys_of, written
from faults.words import WordsError, duration_ms
from nodes.client.producer.keys import KeyDistribution, MessageKeys, TopicPartitions
from nodes.client.producer.local_transactions import LocalTransactions, LocalTransactionState
from nodes.client.tables.queue_selectors import SelectorName
from nodes.fields import SWITCH, TEXT, Rule, checked, choice, flag, shown, span, text

_TRANSACTIONAL = "transactional"
_STATE, _CHECK = "local_transaction", "check_local_transaction"
_TRANSACTION_KEYS = (_STATE, f"{_STATE}_s", f"{_STATE}_ms", _CHECK)
_KEYS, _DISTRIBUTION, _SELECT = "keys", "distribution", "select"
_PARTITIONS, _BY = "partitions", "by"
_LEVEL, _TIMER = "delay_level", "timer"


@attrs.frozen
class ApplicationKeys:
    """The keys of a `[[producer]]` that say what its application does."""

    keys: Mapping[str, Any] | None = checked(Rule("a table", lambda value: isinstance(value, Mapping)), None)
    """Keys of its messages, `[producer.keys]`; if none are given, messages have no keys."""
    partitions: Mapping[str, Any] | None = checked(Rule("a table", lambda value: isinstance(value, Mapping)), None)
    """Topics of which each message goes to one, by its key, `[producer.partitions]`; if none, all go to `topic`."""
    select: SelectorName | None = choice(SelectorName, None)
    """How it chooses the queue of a message; if none is given, queues take turns."""
    timer: str | None = text(None)
    """How much later its messages are delivered, as timed messages: `90s`, `500ms`."""
    transactional: bool = flag(default=False)
    """Send in transactions."""
    local_transaction: LocalTransactionState | None = choice(LocalTransactionState, None)
    """The result of its local transactions, which makes it transactional; if none is given, `commit`."""
    local_transaction_ms: int = span(0)
    """Duration of a local transaction."""
    check_local_transaction: LocalTransactionState | None = choice(LocalTransactionState, None)
    """The answer to checks of its group's transactions; if none is given, `local_transaction`."""


APPLICATION_KEYS = keys_of(ApplicationKeys)
_Choice = TypeVar("_Choice", bound=StrEnum)


def read_application(section: Section) -> Mapping[str, Any]:
    """Fields of a producer that are no plain values: mapping field -> value.

    Raises:
        SpecError: a value is unknown or out of bounds, or a key needs another one with it.
    """
    return {
        "keys": section.attempt(lambda: _read_keys(section), None),
        "partitions": section.attempt(lambda: _read_partitions(section), None),
        "select": section.attempt(lambda: _read_select(section), None),
        "transactions": section.attempt(lambda: _read_transactions(section), None),
        "timer_ms": section.attempt(lambda: _read_timer(section), 0),
    }


def write_application(producer: ProducerSpec) -> dict[str, Any]:
    """The keys from which `read_application` reads equal fields."""
    answer: dict[str, Any] = {}
    if producer.keys is not None:
        answer[_KEYS] = {**written(producer.keys), _DISTRIBUTION: producer.keys.distribution.value}
    if producer.partitions is not None:
        answer[_PARTITIONS] = {**written(producer.partitions), _BY: producer.partitions.by.value}
    if producer.select is not None:
        answer[_SELECT] = producer.select.value
    if producer.timer_ms:
        answer[_TIMER] = f"{producer.timer_ms}ms"
    return answer | _write_transactions(producer.transactions)


def _one_of(section: Section, key: str, kind: type[_Choice]) -> _Choice:
    text = section.get(key, TEXT)
    try:
        return kind(text)
    except ValueError:
        raise SpecError(section.at(key), f'expected one of {", ".join(kind)}, not "{shown(text)}"') from None


def _read_select(section: Section) -> SelectorName | None:
    return _one_of(section, _SELECT, SelectorName) if _SELECT in section.values else None


def _read_keys(section: Section) -> MessageKeys | None:
    if _KEYS not in section.values:
        return None
    table = section.table(_KEYS, (_DISTRIBUTION, *keys_of(MessageKeys)))
    distribution = KeyDistribution.UNIFORM
    if _DISTRIBUTION in table.values:
        distribution = _one_of(table, _DISTRIBUTION, KeyDistribution)
    return table.build(MessageKeys, distribution=distribution)


def _read_partitions(section: Section) -> TopicPartitions | None:
    if _PARTITIONS not in section.values:
        return None
    return section.table(_PARTITIONS, keys_of(TopicPartitions)).build(TopicPartitions)


def _read_timer(section: Section) -> int:
    """How much later messages are delivered; a message waits for one thing only."""
    waits = [key for key in (_LEVEL, _TIMER, _TRANSACTIONAL, _STATE) if section.values.get(key)]
    if waits == [_TRANSACTIONAL, _STATE]:
        waits.pop()  # one says that there are transactions, the other how they end
    if len(waits) > 1:
        raise SpecError(section.at(waits[1]), f"expected no {waits[0]} with it: RocketMQ heeds one of them only")
    if _TIMER not in section.values:
        return 0
    try:
        delay_ms = duration_ms(section.get(_TIMER, TEXT))
    except WordsError as error:
        raise SpecError(section.at(_TIMER), str(error)) from None
    if not delay_ms:
        raise SpecError(section.at(_TIMER), "expected a time above 0")
    return delay_ms


def _read_transactions(section: Section) -> LocalTransactions | None:
    if not section.get(_TRANSACTIONAL, SWITCH, default=_STATE in section.values):
        for key in _TRANSACTION_KEYS:
            if key in section.values:
                problem = f"expected {_TRANSACTIONAL} or {_STATE} with it: this producer has no transactions"
                raise SpecError(section.at(key), problem)
        return None
    state = LocalTransactionState.COMMIT
    if _STATE in section.values:
        state = _one_of(section, _STATE, LocalTransactionState)
    check_state = _one_of(section, _CHECK, LocalTransactionState) if _CHECK in section.values else None
    return LocalTransactions(state, section.span_ms(_STATE) or 0, check_state)


def _write_transactions(transactions: LocalTransactions | None) -> dict[str, Any]:
    if transactions is None:
        return {}
    answer: dict[str, Any] = {_STATE: transactions.state.value}
    if transactions.duration_ms:
        answer[f"{_STATE}_ms"] = transactions.duration_ms
    if transactions.check_state is not None:
        answer[_CHECK] = transactions.check_state.value
    return answer
