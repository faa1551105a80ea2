"""What the analysis of one run found, as one frozen value."""

import json
from enum import StrEnum

import attrs

from emulator.analysis.rows import (
    Agreement,
    Divergence,
    DutySpan,
    FaultSpan,
    Hold,
    Invariants,
    LifeMark,
    Limits,
    Orphan,
    Overlap,
    Phase,
)


class Verdict(StrEnum):
    """What a run proved."""

    VALID = "valid"
    """Nothing diverged for longer than a rebalance round."""
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The trace is incomplete, or holds nothing to judge."""


EXIT_STATUS = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}


@attrs.frozen
class Report:
    """What the analysis of one run found; all rows in order of time."""

    run_id: str
    scenario: str
    seed: int
    mode: str
    digest: str
    end_ns: int
    round_ms: int
    """What lasts no longer than this is baseline."""
    verdict: Verdict
    reasons: tuple[str, ...]
    """Why it is not valid, one sentence each; empty where it is."""
    views: tuple[Divergence, ...]
    """Consumers that allocated from different views: judged."""
    overlaps: tuple[Overlap, ...]
    """Judged."""
    orphans: tuple[Orphan, ...]
    """Judged."""
    invariants: Invariants
    """Judged."""
    limits: Limits
    beliefs: tuple[Divergence, ...]
    """Other beliefs that differed, for explanation; not judged."""
    agreement: tuple[Agreement, ...]
    phases: tuple[Phase, ...]
    duties: tuple[DutySpan, ...]
    """Of broker groups in which it changed; not judged."""
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    marks: tuple[LifeMark, ...]
    names: dict[str, str]
    """Address -> node, to tell people who a client id is."""

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_STATUS[self.verdict]

    def to_json(self) -> str:
        """The whole report as JSON; keys are the names of the attributes."""
        content = attrs.asdict(self) | {"exit_status": self.exit_status}
        return json.dumps(content, indent=1)
