"""The index of a trace, `trace/index.jsonl`: what reading needs before, or without, a manifest.

Lines are only appended, and each carries its checksum. The first says what was
run. Each of the others describes a closed segment, or gives names of addresses
that were not known before. The last line counts only if it is whole.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.schema import SCHEMA_VERSION, TABLES
from emulator.trace.seals import BrokenSealError, sealed, unsealed

INDEX = "index.jsonl"
"""Name of the file, in the folder of the trace."""


@attrs.frozen
class SegmentEntry:
    """A closed segment, as the index describes it."""

    table: str
    file: str
    """Its path in the folder of the trace."""
    rows: int
    first_seq: int
    last_seq: int
    t_ns: int
    """Emulated time of its last row."""
    bytes: int
    checksum: str
    """Of the file; see `emulator.trace.seals.checksum`."""


@attrs.frozen
class Index:
    """What an index says."""

    head: Mapping[str, Any]
    """What was run: run_id, schema_version, seed, mode, scenario, versions, addresses. Addresses grow with the run."""
    segments: Mapping[str, tuple[SegmentEntry, ...]]
    """Mapping table -> its closed segments in order."""
    damages: tuple[str, ...] = ()
    """Lines that are damaged, a text each."""


class IndexWriter:
    """Writes the index of one run.

    Args:
        trace: folder of the trace, which exists.
        head: what was run.
        files: to write with.

    Raises:
        OSError: the index cannot be written; all methods may raise it.
    """

    def __init__(self, trace: Path, head: Mapping[str, Any], files: RunFiles) -> None:
        self._path = trace / INDEX
        self._files = files
        put_in_place(files, self._path, _line(head))

    def on_segment(self, entry: SegmentEntry) -> None:
        """Append a closed segment, which is in place already."""
        self._files.append(self._path, _line(attrs.asdict(entry)))

    def on_addresses(self, addresses: Mapping[str, str]) -> None:
        """Append names of addresses: a mapping address, or client id of a guest -> node."""
        self._files.append(self._path, _line({"addresses": dict(addresses)}))


def read_index(content: bytes) -> Index:
    """Read the lines of an index."""
    head: dict[str, Any] = {}
    segments: dict[str, list[SegmentEntry]] = {table.name: [] for table in TABLES}
    damages = []
    # What follows the last line break is empty, or a line that a kill has cut off.
    for number, line in enumerate(content.split(b"\n")[:-1]):
        try:
            answer = unsealed(line)
        except BrokenSealError as error:
            damages.append(f"line {number + 1}: {error}")
            continue
        if number == 0:
            head = answer
        elif head.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
            continue  # the reader that opens the run refuses it
        elif "file" in answer:
            segments[answer["table"]].append(SegmentEntry(**answer))
        else:
            head["addresses"] = {**head.get("addresses", {}), **answer["addresses"]}
    if not content.count(b"\n"):
        damages.append("it has no whole line")
    return Index(head, {table: tuple(entries) for table, entries in segments.items()}, tuple(damages))


def _line(content: Mapping[str, Any]) -> bytes:
    return sealed(content).encode() + b"\n"
