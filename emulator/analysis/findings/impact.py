"""How much of each symptom a run has, where and when it is worst, and which disturbances it came from."""

from collections.abc import Iterable

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.table import FindingTable


@attrs.frozen
class Impact:
    """How much of a symptom, or of a finding about owners, views or offsets, a run has."""

    kind: str
    """`SymptomKind`, or `two owners`, `no owner`, `views that differ`, `offsets that fell`."""
    subject: str
    """Whom it hits: a group, a group and a topic, a producer."""
    amount: float
    """Over the whole run, also below the limit of the symptom."""
    unit: str
    """messages, s, queue-seconds, ..."""
    where: str
    """Where it is worst, where that is a queue: `orders/broker-a/6`; else empty."""
    worst_ns: int
    """When it is worst; -1: it is not known."""
    causes: tuple[CauseShare, ...]
    """The disturbances on its chain, each with its share: `[{"id": ..., "what": ..., "share": ...}, ...]`."""


IMPACTS = FindingTable("impacts", Impact, "how much of a symptom a run has, and which disturbances it came from")


def impact_on(every: Iterable[Impact], kind: str, subject: str) -> Impact | None:
    """The impact of a kind on a subject; None: there is none."""
    return next((item for item in every if (item.kind, item.subject) == (kind, subject)), None)
