"""The entries of a snapshot: what it says of a file and of a run."""

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from emulator.lake.layout import STORED, Stored
from nodes.fields import quoted, shown

_Entry = TypeVar("_Entry", "FileEntry", "RunEntry")
_NUMBER_MAX = 1 << 63


@attrs.frozen
class FileEntry:
    """A file of a dataset."""

    table: str
    file: str
    """Its path in the dataset."""
    rows: int
    bytes: int
    checksum: str
    """See `emulator.trace.seals.checksum`."""
    first_run: str
    last_run: str


@attrs.frozen
class RunEntry:
    """A run of a dataset."""

    run: str
    rows: int
    content: str
    """See `emulator.lake.run_rows.content_of`."""
    digest: str
    """Of the rows; empty: the run has no manifest."""
    release: str
    campaign: str = ""
    """Digest of the campaign that executed it; empty: it belongs to none, or an older release landed it."""
    scenario: str = ""
    """See `emulator.lake.run_rows.scenario_digest`; empty: an older release landed it."""


def entry_of(kind: type[_Entry], plain: Mapping[str, Any], tables: Mapping[str, Stored] = STORED) -> _Entry:
    """An entry that was written as JSON.

    Args:
        kind: of the entry.
        plain: its fields.
        tables: mapping name -> table, of which a file may be.

    Raises:
        KeyError: it lacks a field.
        TypeError: it is none.
        ValueError: a value cannot be of a dataset.
    """
    entry = kind(**plain)
    for field in attrs.fields(kind):
        value = getattr(entry, field.name)
        is_number = isinstance(value, int) and 0 <= value < _NUMBER_MAX
        if not (is_number if field.type is int else isinstance(value, str)):
            raise ValueError(f"{field.name} {shown(repr(value))} of {kind.__name__}")
    table = getattr(entry, "table", None)
    if table is not None and table not in tables:
        raise ValueError(f"there is no table {quoted(table)}")
    return entry
