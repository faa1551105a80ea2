"""Every request code of RocketMQ 5.3.3: the processes that answer it there, the nodes that answer it here."""

import csv
from collections.abc import Iterator, Sequence

import attrs
from rich.console import Group, RenderableType

from emulator.base.rich_texts import TextTable
from emulator.fidelity.ledger import shipped
from emulator.guests.not_emulated import reason
from nodes.protocol.exchange import AnswerDepth, NodeRole
from nodes.protocol.registry import EXCHANGES

_NONE = "none"


@attrs.frozen
class RequestCodeRow:
    """A request code."""

    code: int
    name: str
    real: tuple[str, ...]
    """Processes of RocketMQ 5.3.3 that answer it; empty: none does."""
    ours: tuple[str, ...]
    """Nodes that answer it here."""
    how: str
    """How much stands behind the answer here, of `AnswerDepth`; empty: no node answers it."""
    why: str
    """Why a process of RocketMQ answers it, and no node here; empty: it is answered, or nowhere."""

    @property
    def is_missing(self) -> bool:
        """Whether a process of RocketMQ answers it, and no node here of that kind."""
        return any(role not in self.ours for role in self.real)


def request_codes() -> tuple[RequestCodeRow, ...]:
    """All of them, by number."""
    lines = [line for line in shipped("request_codes.csv").splitlines() if not line.startswith("#")]
    return tuple(map(_row, csv.DictReader(lines)))


def _row(fields: dict[str, str]) -> RequestCodeRow:
    code, by = int(fields["code"]), fields["answered_by"]
    real = () if by == _NONE else tuple(by.split("+"))
    exchange = EXCHANGES.get(code)  # type: ignore[call-overload]
    ours = () if exchange is None else tuple(_roles(exchange.answered_by))
    missing = any(role not in ours for role in real)
    how = "" if exchange is None else exchange.depth.value
    return RequestCodeRow(code, fields["name"], real, ours, how, reason(code) if missing else "")


def _roles(roles: NodeRole) -> Iterator[str]:
    for role in NodeRole:
        if role in roles:
            yield str(role.name).lower()


def summary(rows: Sequence[RequestCodeRow]) -> str:
    """`140 codes that a process of RocketMQ 5.3.3 answers, 140 of them here, 133 wholly; 18 that none answers`."""
    real = [row for row in rows if row.real]
    here = [row for row in real if not row.is_missing]
    whole = sum(row.how == AnswerDepth.WHOLE for row in here)
    return (
        f"{len(real)} codes that a process of RocketMQ 5.3.3 answers, {len(here)} of them here, {whole} wholly; "
        f"{len(rows) - len(real)} that none answers"
    )


def render(rows: Sequence[RequestCodeRow]) -> RenderableType:
    """A table for a terminal."""
    table = TextTable(box=None, pad_edge=False)
    for column in ("code", "request", "answered in RocketMQ by", "answered here by", "how", "why not"):
        table.add_column(column)
    for row in rows:
        table.add_row(str(row.code), row.name, ", ".join(row.real) or "-", ", ".join(row.ours) or "-", row.how, row.why)
    return Group(table, "", summary(rows))
