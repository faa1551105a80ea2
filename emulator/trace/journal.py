"""The journal of a trace: the rows that wait for a segment, in one file to which frames are only appended.

A frame holds rows of all tables. Its header says how long it is and carries two
checksums, so a frame that a kill has cut off (the last one, shorter than its
header says) is distinguished from a damaged one. When a segment closes, a new journal with
what still waits is renamed over the old one.

    header:  length of the payload (8 bytes, big-endian), its CRC-32 (4), the CRC-32 of both (4)
    payload: msgpack array of [table, rows, values], the two as in `Packed`
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from struct import Struct
from typing import BinaryIO
from zlib import crc32

import attrs
import msgpack

from emulator.base.files import open_regular
from emulator.trace.batches import Packed, Row, unpacked
from emulator.trace.schema import TABLES

JOURNAL = "waiting.rows"
"""Name of the file, in the folder of the trace."""
_LENGTH_AND_SUM = Struct(">QI")
_HEADER_SUM = Struct(">I")
_BYTES_FOLLOW, _BIN_32 = Struct(">BI"), 0xC6
_packer = msgpack.Packer()
_HEADER_BYTES = _LENGTH_AND_SUM.size + _HEADER_SUM.size


@attrs.frozen
class Journal:
    """What a journal holds."""

    rows: Mapping[str, list[Row]]
    """Mapping table -> rows in order."""
    damage: str
    """Where it is damaged; empty: all frames are whole."""
    read_bytes: int
    """How long its whole frames are; what follows is a frame of which not all has been written."""


def frame(parts: Sequence[tuple[str, Packed]]) -> bytes:
    """A frame with rows.

    Args:
        parts: (table, packed rows) each.
    """
    payload = [_packer.pack_array_header(len(parts))]
    for table, packed in parts:
        payload += _packer.pack_array_header(1 + len(packed)), _packer.pack(table)
        for content in packed:
            payload += _BYTES_FOLLOW.pack(_BIN_32, len(content)), content
    payload_sum = reduce(lambda value, part: crc32(part, value), payload, 0)
    header = _LENGTH_AND_SUM.pack(sum(map(len, payload)), payload_sum)
    # Joined once: msgpack would copy all rows several times.
    return b"".join((header, _HEADER_SUM.pack(crc32(header)), *payload))


def read_journal(content: bytes, offset: int = 0) -> Journal:
    """Read all whole frames, up to the first that is damaged or cut off.

    Args:
        content: of the journal, from a frame on.
        offset: of that frame in the file, in bytes.
    """
    rows: dict[str, list[Row]] = {table.name: [] for table in TABLES}
    at = 0
    while len(content) - at >= _HEADER_BYTES:
        begin = at + _HEADER_BYTES
        header = content[at : at + _LENGTH_AND_SUM.size]
        if content[at + len(header) : begin] != _HEADER_SUM.pack(crc32(header)):
            return Journal(rows, f"the frame at byte {offset + at} is damaged", at)
        length, payload_sum = _LENGTH_AND_SUM.unpack(header)
        end = begin + length
        if end > len(content):
            break
        payload = content[begin:end]
        if crc32(payload) != payload_sum:
            return Journal(rows, f"the frame at byte {offset + at} is damaged", at)
        for table, *packed in msgpack.unpackb(payload):
            rows[table] += unpacked(Packed(*packed))
        at = end
    return Journal(rows, "", at)


class JournalFile:
    """The journal of a run under way: each frame is read once, however often somebody looks.

    Args:
        path: of the journal; a run that has ended has none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._read_bytes = 0
        with suppress(FileNotFoundError):
            self._file = open_regular(path)

    @property
    def is_there(self) -> bool:
        """Whether there was a journal, and it has not been closed here."""
        return self._file is not None

    def is_replaced(self) -> bool:
        """Whether the run has another journal by now, or none any more."""
        if self._file is None:
            return False
        # The number of a file that is open is given to no other file.
        try:
            return self._path.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return True

    def read(self) -> Journal:
        """The rows of the frames that came since the last call."""
        if self._file is None:
            return Journal({table.name: [] for table in TABLES}, "", 0)
        self._file.seek(self._read_bytes)
        found = read_journal(self._file.read(), self._read_bytes)
        self._read_bytes += found.read_bytes
        return found

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None
