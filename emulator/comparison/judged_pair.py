"""Two runs as the judge sees them: verdicts side by side, and the phases of both, aligned by what disturbed them."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import attrs

from emulator.analysis.measures.phases import PHASES, RunPhase
from emulator.analysis.report import Report
from emulator.analysis.run_measures import MEASURES, Measure


@attrs.frozen
class PhasePair:
    """A phase of both runs that begins with the same disturbances, or one that only one of them has."""

    first: RunPhase | None
    second: RunPhase | None

    @property
    def what(self) -> tuple[str, ...]:
        """The disturbances; empty for the first phase."""
        either = self.first or self.second
        return () if either is None else either.what


@attrs.frozen
class JudgedPair:
    """The reports about two runs."""

    first: Report
    second: Report

    @property
    def phases(self) -> tuple[PhasePair, ...]:
        """The phases of both, in order."""
        return aligned(self.first.of(PHASES), self.second.of(PHASES))

    def measures(self) -> Iterator[tuple[Measure, float, float]]:
        """(measure, value of the first run, value of the second) for each that is not 0 in both."""
        for measure in MEASURES:
            pair = measure.of(self.first), measure.of(self.second)
            if any(pair):
                yield measure, *pair


def aligned(first: Sequence[RunPhase], second: Sequence[RunPhase]) -> tuple[PhasePair, ...]:
    """Pair the phases that begin with the same disturbances, as many as keep their order; the others stay alone."""
    return tuple(_aligned(first, second))


def _aligned(first: Sequence[RunPhase], second: Sequence[RunPhase]) -> Iterator[PhasePair]:
    matcher = SequenceMatcher(None, [item.what for item in first], [item.what for item in second], autojunk=False)
    for tag, begin, end, other_begin, other_end in matcher.get_opcodes():
        if tag == "equal":
            yield from map(PhasePair, first[begin:end], second[other_begin:other_end])
        else:
            alone = [PhasePair(item, None) for item in first[begin:end]]
            alone += [PhasePair(None, item) for item in second[other_begin:other_end]]
            yield from sorted(alone, key=_start_ns)


def _start_ns(pair: PhasePair) -> int:
    either = pair.first or pair.second
    return 0 if either is None else either.start_ns
