"""V16: messages of transactions, from their half messages to what consumers see."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.attribution.explanation import of_chains
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import about_topic, about_transaction
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import count
from emulator.analysis.inputs.half_messages import HalfMessageSenders
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.row_classes import MessageRow
from emulator.history.rows.sweeps import Sweeps
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent, TransactionEnd
from nodes.units import NS_PER_MS, NS_PER_S

_COMMIT, _ROLLBACK = TransactionEnd
_LATER = (MessageEvent.DECIDED, MessageEvent.ENDED, MessageEvent.DISCARDED)
"""What happens to a half message after it was stored."""


@attrs.frozen
class TransactionFinding(JudgedFinding):
    """The transactions of a topic whose half messages one broker group stored first (V16)."""

    broker_name: str
    topic: str
    start_ns: int
    """When the first half message was stored."""
    end_ns: int
    """When the last message was committed; if none was, the start."""
    transactions: int
    """Each counted once, however many brokers have its half message."""
    committed: int
    """Of these: were stored for consumers, once or more often."""
    rolled_back: int
    """Of these: were not, because their producers have rolled them back."""
    lost: int
    """Of these: were not, although their producers have said commit, and no broker will ask again."""
    open: int
    """All others: their producers have not decided, or a broker will ask."""
    again: int
    """How often a message was stored for consumers once more."""
    unasked: int
    """Committed although their producers have never said so."""
    late_ns: int
    """Longest time from the first half message to the first commit."""
    both: int
    """How many were rolled back and, earlier or later, committed: their messages were delivered."""
    both_rolled_back_ns: int
    """When the first of these was rolled back; -1: there is none."""
    both_committed_ns: int
    """When it was committed."""
    put_aside: int
    """Of the committed ones: a copy of the half message, stored again before the commit, was checked and put aside."""
    put_aside_ns: int
    """When the first of these was put aside; -1: there is none."""
    put_aside_id: str
    """Its unique id; empty: there is none."""
    by_another: int
    """Of the committed ones: a producer of their group said commit that sends no half messages of this topic."""
    by_another_ns: int
    """When the first of these was committed; -1: there is none."""
    by_another_id: str
    """Its unique id; empty: there is none."""
    wrong_clock: bool
    """Whether a fault had moved a wall clock."""


class TransactionSweep:
    """One transaction, known by the unique id that its producer gave to the half message.

    The producer decides, at once or when a broker asks, and every commit that reaches a broker stores the message. So
    three rows are compared: `half`, which a broker writes whenever it stores the half message, also before each
    question; `decided` of the producer; `ended` of the broker.
    """

    def __init__(self) -> None:
        self.first: MessageRow | None = None
        """The first row of its half message; None: there was none before."""
        self.half: MessageRow | None = None
        """The last row of its half message."""
        self.decided_ns: dict[str, int] = {}
        """Decision -> when its producer made it last."""
        self.committed_ns: list[int] = []
        self.rolled_back_ns: list[int] = []
        self.put_aside_ns: list[int] = []
        """When it was put aside although it had been committed."""
        self.unasked = False
        self.committed_by = ""
        """The first producer that said commit."""

    def feed(self, row: MessageRow) -> None:
        """The half message was stored or discarded, or the transaction decided or ended."""
        if row.event == MessageEvent.HALF:
            self.first = self.first or row
            self.half = row
        elif row.event == MessageEvent.DECIDED:
            self.decided_ns[row.tags] = row.t_ns
            if row.tags == _COMMIT:
                self.committed_by = self.committed_by or row.node
        elif row.event == MessageEvent.DISCARDED:
            self.put_aside_ns += [row.t_ns] if self.committed_ns else []
        elif row.tags == _ROLLBACK:
            self.rolled_back_ns.append(row.t_ns)
        else:
            self.unasked |= bool(self.decided_ns) and _COMMIT not in self.decided_ns
            self.committed_ns.append(row.t_ns)

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:
        """Nothing is open."""


class TransactionSweeps(Sweeps[str, TransactionSweep]):
    """All transactions.

    Args:
        node_of: the node of an address.
    """

    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.HALF, *_LATER)

    def __init__(self, node_of: Callable[[str], str]) -> None:
        super().__init__(lambda _: TransactionSweep())
        self._senders = HalfMessageSenders(node_of)

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        is_later = row.event in _LATER and row.key in self.of
        if row.event == MessageEvent.HALF or is_later:
            self.sweep(row.key).feed(row)
        if row.event == MessageEvent.HALF:
            self._senders.feed(row)

    def is_committed_by_another(self, item: TransactionSweep) -> bool:
        """Whether only another application of its producer group said commit."""
        half = item.first
        return (
            half is not None
            and bool(item.committed_ns)
            and self._senders.is_of_another(item.committed_by, half.topic, half.key)
        )


class TransactionOracle(Oracle[TransactionFinding, TransactionSweeps]):
    """V16: a committed transaction is delivered, and no other."""

    id: ClassVar[str] = "V16"
    title: ClassVar[str] = "a committed transaction is delivered, and no other"
    definition: ClassVar[str] = (
        "A producer said commit, no broker stored the message for consumers, and the broker that stored the half "
        "message last has run its special services for longer than two rounds of questions without asking once more "
        "(lost); or a message was stored for consumers although its producer never said so (unasked; producers outside "
        "of the emulator record no decisions). Both are violations, unless a fault has moved a wall clock. A message "
        "that is stored twice is to be expected: RocketMQ promises at least once."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.SERVICES, Input.DISTURBANCES)
    table = FindingTable("transactions", TransactionFinding, "the transactions of a topic, by broker group")

    def watch(self, inputs: SharedInputs) -> TransactionSweeps:
        """A sweep for each transaction."""
        return TransactionSweeps(inputs.facts.node_of)

    def find(self, inputs: SharedInputs, watched: TransactionSweeps) -> Iterable[TransactionFinding]:
        """What became of all transactions, by broker group and topic."""
        served, end_ns = inputs.served(), inputs.facts.end_ns
        asks_within_ns = inputs.facts.bounds.asks_ms * NS_PER_MS
        """After so long a broker that works has asked about a half message once more."""

        def is_lost(transaction_sweep: TransactionSweep) -> bool:
            if (
                transaction_sweep.half is None
                or transaction_sweep.committed_ns
                or transaction_sweep.rolled_back_ns
                or _COMMIT not in transaction_sweep.decided_ns
            ):
                return False
            half, since_ns = (
                transaction_sweep.half,
                max(transaction_sweep.half.t_ns, transaction_sweep.decided_ns[_COMMIT]),
            )
            return served.between_ns(half.broker_name, half.node, since_ns, end_ns) > asks_within_ns

        groups: dict[tuple[str, str], list[TransactionSweep]] = {}
        for item in watched.of.values():
            if item.first is not None:
                groups.setdefault((item.first.broker_name, item.first.topic), []).append(item)
        moves_clock = inputs.disturbances.moves_clock
        return [_sums(place, found, watched, is_lost, moves_clock=moves_clock) for place, found in groups.items()]

    def causes(self, row: TransactionFinding, attribution: Attribution) -> Causes:
        """Why transactions ended twice."""
        if not row.both:
            return ()
        first_ns, last_ns = sorted((row.both_rolled_back_ns, row.both_committed_ns))
        return of_chains(((attribution.fates.ended_twice(row.broker_name, (first_ns, last_ns)), row.both),))

    def order(self, row: TransactionFinding) -> Any:
        """By broker group and topic."""
        return row.broker_name, row.topic

    def is_notable(self, row: TransactionFinding) -> bool:
        """Whether anything is wrong."""
        return bool(row.lost or row.unasked or row.again or row.both or row.put_aside or row.by_another)

    def summary(self, rows: Sequence[TransactionFinding]) -> str:
        """How many, and what is wrong."""
        lost, unasked, again = (sum(getattr(row, kind) for row in rows) for kind in ("lost", "unasked", "again"))
        both = sum(row.both for row in rows)
        ends = f", {both} rolled back and committed" if both else ""
        put_aside = sum(row.put_aside for row in rows)
        aside = f", {put_aside} put aside after their commit" if put_aside else ""
        return f"{lost} lost, {unasked} unasked, {again} once more{ends}{aside}"

    def amount(self, row: TransactionFinding) -> float:
        """Lost and unasked ones."""
        return row.lost + row.unasked

    def describe(self, row: TransactionFinding, context: Context) -> str:  # noqa: ARG002
        """Where, and how many."""
        text = (
            f"topic {row.topic} of {row.broker_name}: of {row.transactions:,} transactions {row.lost:,} were committed "
        )
        return f"{text}and are lost, and {row.unasked:,} came although no producer had committed them"

    def symptoms(self, rows: Sequence[TransactionFinding], context: Context) -> Iterator[Symptom]:
        """Transactions with both ends, those that were delivered twice, and those checked although committed."""
        for row in rows:
            yield from _checked(row, context)
            yield from _committed_by_another(row)
            if row.both:
                text = (
                    f"{count(row.both, 'transaction')} of {row.topic} had both ends carried out: the first was rolled "
                    f"back at {row.both_rolled_back_ns / NS_PER_S:.1f} s and committed at "
                    f"{row.both_committed_ns / NS_PER_S:.1f} s, and its message was delivered"
                )
                severity = 1.0 + row.both
                question = about_topic(row.topic)
                yield Symptom(SymptomKind.TRANSACTIONS, severity, row.both_committed_ns, text, row.topic, question)
            again_per_mille = 1_000 * row.again / row.transactions
            if row.again >= context.limits.again_messages:
                why = ", while a wall clock was wrong" if row.wrong_clock else ""
                text = f"{count(row.again, 'transaction')} of {row.topic} were delivered once more{why}"
                severity = again_per_mille / context.limits.again_per_mille
                yield Symptom(SymptomKind.AGAIN, severity, row.end_ns, text, row.topic, about_topic(row.topic))


def _checked(row: TransactionFinding, context: Context) -> Iterator[Symptom]:
    """Half messages that were checked until they were put aside; nothing is lost, since their messages came."""
    if row.put_aside:
        were = "was" if row.put_aside == 1 else "were"
        text = (
            f"{count(row.put_aside, 'half message')} of {row.topic} {were} checked although committed, and put aside "
            f"after the last check, the first at {row.put_aside_ns / NS_PER_S:.1f} s; nothing is lost: it is a copy "
            "that was put aside, stored for a check before the broker had written down the commit"
        )
        severity = 1.0 + row.put_aside / context.limits.given_up_messages
        if row.put_aside < context.limits.given_up_messages:
            severity = 0.0
        severity, question = min(severity, float(context.limits.paging_times)), about_transaction(row.put_aside_id)
        yield Symptom(SymptomKind.CHECKED, severity, row.put_aside_ns, text, row.topic, question)


def _committed_by_another(row: TransactionFinding) -> Iterator[Symptom]:
    if row.by_another:
        were = "was" if row.by_another == 1 else "were"
        text = (
            f"{count(row.by_another, 'transaction')} of {row.topic} {were} committed by a producer of their group that "
            f"sends none of this topic, from {row.by_another_ns / NS_PER_S:.1f} s on"
        )
        severity, question = 1.0 + row.by_another, about_transaction(row.by_another_id)
        yield Symptom(SymptomKind.COMMITTED_BY_ANOTHER, severity, row.by_another_ns, text, row.topic, question)


def _by_another(found: Sequence[TransactionSweep], watched: TransactionSweeps) -> dict[str, Any]:
    every = [item for item in found if watched.is_committed_by_another(item)]
    first = min(every, key=lambda item: item.committed_ns[0], default=None)
    if first is None or first.first is None:
        return {"by_another": 0, "by_another_ns": -1, "by_another_id": ""}
    return {"by_another": len(every), "by_another_ns": first.committed_ns[0], "by_another_id": first.first.key}


def _put_aside(found: Sequence[TransactionSweep]) -> dict[str, Any]:
    every = [item for item in found if item.put_aside_ns]
    first = min(every, key=lambda item: item.put_aside_ns[0], default=None)
    if first is None or first.first is None:
        return {"put_aside": 0, "put_aside_ns": -1, "put_aside_id": ""}
    return {"put_aside": len(every), "put_aside_ns": first.put_aside_ns[0], "put_aside_id": first.first.key}


def _both(found: Sequence[TransactionSweep]) -> dict[str, Any]:
    both = [item for item in found if item.committed_ns and item.rolled_back_ns]
    first = min(both, key=lambda item: item.rolled_back_ns[0], default=None)
    ends = (-1, -1) if first is None else (first.rolled_back_ns[0], first.committed_ns[0])
    return {"both": len(both), "both_rolled_back_ns": ends[0], "both_committed_ns": ends[1]}


def _sums(
    place: tuple[str, str],
    found: Sequence[TransactionSweep],
    watched: TransactionSweeps,
    is_lost: Callable[[TransactionSweep], bool],
    *,
    moves_clock: bool,
) -> TransactionFinding:
    firsts = {id(item): item.first for item in found if item.first is not None}
    done = [item for item in found if item.committed_ns]
    rolled_back = sum(bool(item.rolled_back_ns) and not item.committed_ns for item in found)
    lost, unasked = sum(map(is_lost, found)), sum(item.unasked for item in found)
    start_ns = min(row.t_ns for row in firsts.values())
    return TransactionFinding(
        *place,
        start_ns,
        max((at_ns for item in done for at_ns in item.committed_ns), default=start_ns),
        transactions=len(found),
        committed=len(done),
        rolled_back=rolled_back,
        lost=lost,
        open=len(found) - len(done) - rolled_back - lost,
        again=sum(len(item.committed_ns) - 1 for item in done),
        unasked=unasked,
        **(_both(found) | _put_aside(found) | _by_another(found, watched)),
        wrong_clock=moves_clock,
        late_ns=max((item.committed_ns[0] - firsts[id(item)].t_ns for item in done), default=0),
        violation=bool(lost or unasked) and not moves_clock,
    )


TRANSACTIONS = TransactionOracle()
