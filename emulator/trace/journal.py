"""The journal of a trace: the rows that wait for a segment, in one file to which frames are only appended.

A frame holds rows of all tables. Its header says how long it is and carries two
checksums, so a frame that a kill has cut off (the last one, shorter than its
header says) is told from a damaged one. When a segment closes, a new journal with
what still waits is renamed over the old one.

    header:  length of the payload (8 bytes, big-endian), checksum of the payload (16), checksum of both (8)
    payload: msgpack array of [table, rows as packed by `Batch`]
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from struct import Struct

import attrs
import msgpack

from emulator.trace.batches import Row, unpacked
from emulator.trace.schema import TABLES

JOURNAL = "waiting.rows"
"""Name of the file, in the folder of the trace."""
_LENGTH = Struct(">Q")
_SUM_BYTES, _HEADER_SUM_BYTES = 16, 8
_BYTES_FOLLOW, _BIN_32 = Struct(">BI"), 0xC6
_packer = msgpack.Packer()
_HEADER_BYTES = _LENGTH.size + _SUM_BYTES + _HEADER_SUM_BYTES


@attrs.frozen
class Journal:
    """What a journal holds."""

    rows: Mapping[str, list[Row]]
    """Mapping table -> rows in order."""
    damage: str
    """Where it is damaged; empty: all frames are whole."""
    read_bytes: int
    """How long its whole frames are; what follows is a frame of which not all has been written."""


def frame(parts: Sequence[tuple[str, bytes]]) -> bytes:
    """A frame with packed rows.

    Args:
        parts: (table, packed rows) each.
    """
    payload = [_packer.pack_array_header(len(parts))]
    for table, packed in parts:
        payload += _packer.pack_array_header(2), _packer.pack(table), _BYTES_FOLLOW.pack(_BIN_32, len(packed)), packed
    payload_sum = blake2b(digest_size=_SUM_BYTES)
    for part in payload:
        payload_sum.update(part)
    header = _LENGTH.pack(sum(map(len, payload))) + payload_sum.digest()
    # Joined once: msgpack would copy all rows several times.
    return b"".join((header, _header_sum(header), *payload))


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
        header = content[at : begin - _HEADER_SUM_BYTES]
        if content[begin - _HEADER_SUM_BYTES : begin] != _header_sum(header):
            return Journal(rows, f"the frame at byte {offset + at} is damaged", at)
        end = begin + _LENGTH.unpack_from(header)[0]
        if end > len(content):
            break
        payload = content[begin:end]
        if blake2b(payload, digest_size=_SUM_BYTES).digest() != header[_LENGTH.size :]:
            return Journal(rows, f"the frame at byte {offset + at} is damaged", at)
        for table, packed in msgpack.unpackb(payload):
            rows[table] += unpacked(packed)
        at = end
    return Journal(rows, "", at)


def _header_sum(header: bytes) -> bytes:
    return blake2b(header, digest_size=_HEADER_SUM_BYTES).digest()
