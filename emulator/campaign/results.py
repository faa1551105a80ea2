"""What became of a case: one value for each ended run, and its line in a part of the campaign."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import attrs
import pyarrow as pa

from emulator.analysis.report import RulesVerdict, Service
from emulator.campaign.campaign import Case
from emulator.campaign.digest import origin
from emulator.trace.seals import sealed, unsealed


class Outcome(StrEnum):
    """How a case ended."""

    COMPLETE = "complete"
    """The run reached its end and was judged."""
    EXECUTED = "executed"
    """The run reached its end, and its judgement is not in its line: it is in gold, or has not been made yet."""
    CRASHED = "crashed"
    """A node or the emulator raised, or the process was killed."""
    HUNG = "hung"
    """The run had not ended when its time was up."""
    MISSING = "missing"
    """It has not been run, or its line is damaged."""


class ForeignLineError(Exception):
    """A line belongs to another campaign; the text names which, and what was expected."""


@attrs.frozen(kw_only=True)
class CaseResult:
    """What became of a case."""

    case: Case
    outcome: Outcome
    verdict: RulesVerdict = RulesVerdict.UNKNOWN
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
    """Tidy tables of what the judgement found, by name; columns are numbers, booleans, texts, or lists of these."""

    @property
    def ended(self) -> bool:
        """Whether the run came to its end; otherwise a repetition may report more."""
        return self.outcome in (Outcome.COMPLETE, Outcome.EXECUTED)

    @property
    def is_judged(self) -> bool:
        """Whether the run came to its end and was judged."""
        return self.outcome is Outcome.COMPLETE

    def without_judgement(self) -> "CaseResult":
        """A run that came to its end, as its line has it whose judgement gold has; another one is unchanged."""
        if not self.is_judged:
            return self
        return attrs.evolve(
            self, outcome=Outcome.EXECUTED, verdict=RulesVerdict.UNKNOWN, service=None, reasons=(), findings={}
        )

    @property
    def word(self) -> str:
        """The verdict of a run that was judged, else its outcome."""
        return str(self.verdict) if self.is_judged else str(self.outcome)


_CAMPAIGN = "campaign"
_JUDGEMENT = ("verdict", "service", "reasons")
"""What a line of a run lacks that has not been judged, besides its findings."""
WORDS = (*(str(verdict) for verdict in RulesVerdict), *(str(item) for item in Outcome if item is not Outcome.COMPLETE))
"""All values of `CaseResult.word`, from good to bad."""


def line_of(case_result: CaseResult, campaign: str = "") -> str:
    """The line of a case, with the digest of its campaign and its checksum, without the end of the line."""
    without = ("case", "findings", *(_JUDGEMENT if case_result.outcome is Outcome.EXECUTED else ()))
    plain = attrs.asdict(case_result, filter=lambda field, _: field.name not in without)
    if "verdict" in plain:
        plain["findings"] = {name: _written(table) for name, table in case_result.findings.items()}
    return sealed({_CAMPAIGN: campaign, "variant": case_result.case.variant, "seed": case_result.case.seed, **plain})


def read_line(line: bytes, campaign: str = "") -> CaseResult:
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
        return CaseResult(case=case, outcome=outcome, **plain)
    findings = {name: _read(table) for name, table in plain.pop("findings").items()}
    verdict = RulesVerdict(plain.pop("verdict"))
    service, reasons = plain.pop("service"), tuple(plain.pop("reasons"))
    verdicts: dict[str, Any] = {"verdict": verdict, "service": None if service is None else Service(service)}
    return CaseResult(case=case, outcome=outcome, reasons=reasons, findings=findings, **verdicts, **plain)


def better(case_result: CaseResult, other: CaseResult) -> CaseResult:
    """Of two lines of one case the one that counts: that of a judged run, of one that ended, else the first."""
    return other if _weight(other) > _weight(case_result) else case_result


def _weight(case_result: CaseResult) -> tuple[bool, bool]:
    return case_result.is_judged, case_result.ended


def _written(table: pa.Table) -> dict[str, Any]:
    return {
        "types": {field.name: str(field.type) for field in table.schema},
        "columns": table.to_pydict(),
    }


def _read(written: Mapping[str, Any]) -> pa.Table:
    schema = pa.schema([(name, _type(text)) for name, text in written["types"].items()])
    return pa.table(written["columns"], schema=schema)


_LIST, _STRUCT, _END = "list<", "struct<", ">"


def _type(text: str) -> pa.DataType:
    """The Arrow type of its name: `int64`, `list<item: string>`, `list<item: struct<id: string, share: double>>`."""
    if text.startswith(_LIST) and text.endswith(_END):
        return pa.list_(_type(text[len(_LIST) : -len(_END)].partition(": ")[2].removesuffix(" not null")))
    if text.startswith(_STRUCT) and text.endswith(_END):
        # A field of a struct is a plain value.
        fields = (field.partition(": ") for field in text[len(_STRUCT) : -len(_END)].split(", "))
        return pa.struct([(name, _type(of)) for name, _, of in fields])
    return pa.type_for_alias(text)
