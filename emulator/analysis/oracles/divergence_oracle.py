"""What oracles about values that nodes hold have in common."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, inside
from emulator.analysis.findings.words import count, span_words
from emulator.analysis.inputs.holdings import Divergence, HoldersOfValue
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import Span
from emulator.state.event_lines import value_in_words, with_names


class WhileConnected(Explanation[Divergence]):
    """A node that faults keep from all servers cannot hear on what the others agreed."""

    def covered(self, row: Divergence, inputs: SharedInputs) -> Sequence[Span]:
        """When the others held one value."""
        return inputs.blocked.in_agreement(row)


class OfGroup(WhileConnected):
    """Values about a group, whose subject is group/topic or group."""

    def group(self, row: Divergence) -> str:
        """The consumer group."""
        return row.subject.partition("/")[0]


class DivergenceOracle(Oracle[Divergence, Watcher]):
    """An oracle whose findings are times in which nodes held several values."""

    def order(self, row: Divergence) -> Any:
        """By time, then by what they differed about."""
        return row.start_ns, row.end_ns, row.kind, row.role, row.subject

    def subjects(self, violations: Sequence[Divergence]) -> str:
        """The number of subjects."""
        return count(len(dict.fromkeys(row.subject for row in violations)), self.noun())

    def noun(self) -> str:
        """What a subject is."""
        return "subject"

    def describe(self, row: Divergence, context: Context) -> str:  # noqa: ARG002
        """About what nodes differed, and when."""
        return f"nodes held {row.views_max} different values of {row.kind} {row.subject} {span_words(row)}"

    def questions(self, row: Divergence, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """Why the fewest held their value, then why any did."""
        at, kind = inside(row), row.kind.partition(".")[0]
        few = min(row.holders, key=lambda holder: len(holder.nodes)).nodes[0] if row.holders else ""
        if few:
            yield kind, row.subject, "of", few, "at", at
        yield kind, row.subject, "at", at


class OracleOfKinds(DivergenceOracle):
    """One that counts how often values of each of its kinds differed."""

    nouns: ClassVar[Mapping[str, str]]
    """Mapping kind of the values -> what they are, in the plural."""

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[Divergence]:  # noqa: ARG002
        """When values of these kinds differed."""
        return inputs.holdings.found(*self.nouns)

    def summary(self, rows: Sequence[Divergence]) -> str:
        """How often each differed."""
        times = {kind: sum(row.kind == kind for row in rows) for kind in self.nouns}
        return ", ".join(f"{self.nouns[kind]} differed {number} times" for kind, number in times.items() if number)

    def subjects(self, violations: Sequence[Divergence]) -> str:  # noqa: ARG002
        """The summary counts them."""
        return ""


def values_held(row: Divergence, context: Context) -> str:
    """Who held what: `c1 and c2: value; c3: value`."""
    return with_names("; ".join(_held(row.kind, holder) for holder in row.holders), context.names)


def _held(kind: str, holders: HoldersOfValue) -> str:
    return f"{' and '.join(holders.nodes)}: {value_in_words(kind, json.loads(holders.value))}"
