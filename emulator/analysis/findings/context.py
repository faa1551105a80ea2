"""What sentences about findings need of a run besides them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from emulator.spec.model.service_limits import ServiceLimits
from emulator.trace.schema import TraceTable


class StoredRow(Protocol):
    """A row of a trace, looked up."""

    @property
    def t_ns(self) -> int:
        """Instant of the row."""

    def text(self, column: str) -> str:
        """The value of a text column."""

    def number(self, column: str) -> int:
        """The value of an integer column."""


class RowLookup(Protocol):
    """Looks rows up by their values."""

    def select(self, table: TraceTable, /, **wanted: Any) -> Sequence[StoredRow]:
        """The rows of a table with these values, in order."""


@attrs.frozen
class Context:
    """What sentences about findings need of a run besides them."""

    end_ns: int
    names: Mapping[str, str]
    """Mapping address, or client id of a guest -> node."""
    consumed: Mapping[str, int]
    """Mapping group -> messages that it consumed, each counted once."""
    limits: ServiceLimits = ServiceLimits()
    """From which amounts on something is a symptom."""
    rows: RowLookup | None = None
    """Looks up rows; None: nothing asks for questions."""
