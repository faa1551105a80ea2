"""What became of a case: one value for each ended run, and its line in a part of the campaign."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs
import pyarrow as pa

from emulator.analysis.report import Service, Verdict
from emulator.campaign.campaign import Case
from emulator.campaign.digest import origin
from emulator.trace.seals import sealed, unsealed


class Outcome(StrEnum):
    """How a case ended."""

    COMPLETE = "complete"
    """The run reached its end and was judged."""
    EXECUTED = "executed"
    """The run reached its end, and has not been judged yet."""
    CRASHED = "crashed"
    """A node or the emulator raised, or the process was killed."""
    HUNG = "hung"
    """The run had not ended when its time was up."""
    MISSING = "missing"
    """It has not been played, or its line is damaged."""


class ForeignLineError(Exception):
    """A line belongs to another campaign; the text names which, and what was expected."""


@attrs.frozen(kw_only=True)
class Played:
    """What became of a case."""

    case: Case
    outcome: Outcome
    verdict: Verdict = Verdict.UNKNOWN
    """Rules."""
    service: Service | None = None
    """None: the run did not come to its end."""
    reasons: tuple[str, ...] = ()
    """Why the run is not valid, one sentence each."""
    digest: str = ""
    """Over all rows of its trace; empty if the run did not end."""
    rows: int = 0
    virtual_s: float = 0.0
    """Emulated seconds."""
    trace: str = ""
    """The run directory, relative to that of the campaign; empty if the trace was not kept."""
    cpu_s: float = 0.0
    """CPU time of its process."""
    wall_s: float = 0.0
    findings: Mapping[str, pa.Table] = attrs.field(factory=dict, eq=False)
    """Tidy tables of what the judgement found, by name."""

    @property
    def ended(self) -> bool:
        """Whether the run came to its end; otherwise a repetition may tell more."""
        return self.outcome in (Outcome.COMPLETE, Outcome.EXECUTED)

    @property
    def is_judged(self) -> bool:
        """Whether the run came to its end and was judged."""
        return self.outcome is Outcome.COMPLETE

    @property
    def word(self) -> str:
        """The verdict of a run that was judged, else its outcome."""
        return str(self.verdict) if self.is_judged else str(self.outcome)


_CAMPAIGN = "campaign"
_JUDGEMENT = ("verdict", "service", "reasons")
"""What a line of a run lacks that has not been judged, besides its findings."""
WORDS = (*(str(verdict) for verdict in Verdict), *(str(it) for it in Outcome if it is not Outcome.COMPLETE))
"""All values of `Played.word`, from good to bad."""


def line_of(played: Played, campaign: str = "") -> str:
    """The line of a case, with the digest of its campaign and its checksum, without the end of the line."""
    without = ("case", "findings", *(_JUDGEMENT if played.outcome is Outcome.EXECUTED else ()))
    plain = attrs.asdict(played, filter=lambda field, _: field.name not in without)
    if "verdict" in plain:
        plain["findings"] = {name: _written(table) for name, table in played.findings.items()}
    return sealed({_CAMPAIGN: campaign, "variant": played.case.variant, "seed": played.case.seed, **plain})


def read_line(line: bytes, campaign: str = "") -> Played:
    """The case of a line.

    Args:
        line: without its end.
        campaign: digest of the campaign; empty: it has none.

    Raises:
        BrokenSealError: the line is damaged.
        ForeignLineError: it is a line of another campaign.
    """
    plain = unsealed(line)
    found = plain.pop(_CAMPAIGN, "")
    if found != campaign:
        raise ForeignLineError(origin(str(found), campaign))
    case, outcome = Case(plain.pop("variant"), plain.pop("seed")), Outcome(plain.pop("outcome"))
    if outcome is Outcome.EXECUTED:
        return Played(case=case, outcome=outcome, **plain)
    findings = {name: _read(table) for name, table in plain.pop("findings").items()}
    verdict = Verdict(plain.pop("verdict"))
    service, reasons = plain.pop("service"), tuple(plain.pop("reasons"))
    verdicts: dict[str, Any] = {"verdict": verdict, "service": None if service is None else Service(service)}
    return Played(case=case, outcome=outcome, reasons=reasons, findings=findings, **verdicts, **plain)


def better(one: Played, other: Played) -> Played:
    """Of two lines of one case the one that counts: that of a judged run, of one that ended, else the first."""
    return other if _weight(other) > _weight(one) else one


def _weight(played: Played) -> tuple[bool, bool]:
    return played.is_judged, played.ended


def _written(table: pa.Table) -> dict[str, Any]:
    return {
        "types": {field.name: str(field.type) for field in table.schema},
        "columns": table.to_pydict(),
    }


def _read(written: Mapping[str, Any]) -> pa.Table:
    schema = pa.schema([(name, _type(text)) for name, text in written["types"].items()])
    return pa.table(written["columns"], schema=schema)


_LIST = ("list<", ">")


def _type(text: str) -> pa.DataType:
    """The Arrow type of its name: `int64`, `list<item: string>`."""
    if text.startswith(_LIST[0]) and text.endswith(_LIST[1]):
        return pa.list_(_type(text[len(_LIST[0]) : -len(_LIST[1])].partition(": ")[2].removesuffix(" not null")))
    return pa.type_for_alias(text)
