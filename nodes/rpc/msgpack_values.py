"""How many values msgpack makes of bytes, counted before it makes any.

A byte may become a list of 56 bytes, and five bytes may announce a list for which msgpack takes memory at once.
"""

from typing import Final

VALUES_MAX: Final = 200_000
"""Most values of a frame, and of its body; a topic in a body has about twenty, and takes 10 us."""
FEW_BYTES: Final = 4_096
"""Of so many bytes msgpack makes little, whatever they are."""
_ONE_BYTE_MAX, _MAP_MAX, _LIST_MAX, _TEXT_MAX = 0x7F, 0x8F, 0x9F, 0xBF
"""The last first byte of a small number, map, list and text; small negative numbers are the highest bytes."""
_NEGATIVE_MIN = 0xE0
_BYTES_AHEAD = {
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xD4: 2,
    0xD5: 3,
    0xD6: 5,
    0xD7: 9,
    0xD8: 17,
}
"""First byte -> bytes behind it, for numbers and short extensions."""
_LENGTH_BYTES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""First byte -> bytes of a length, for bytes, extensions and texts."""
_NUMBER_BYTES = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""First byte -> bytes of the number of entries, for lists and maps."""
_MAPS = (0xDE, 0xDF)
_EXTENSIONS = (0xC7, 0xC8, 0xC9)


def has_many_values(content: bytes | memoryview) -> bool:
    """Whether bytes have more values than are read; an entry counts where it is announced, and where it is.

    Bytes that are not msgpack may pass: who reads them refuses them.
    """
    return len(content) > FEW_BYTES and _exceeds(content)


def _exceeds(content: bytes | memoryview) -> bool:
    at, end, left = 0, len(content), VALUES_MAX
    while at < end:
        first = content[at]
        at += 1
        if first <= _ONE_BYTE_MAX or first >= _NEGATIVE_MIN:
            left -= 1
        elif first <= _LIST_MAX:
            left -= 1 + (2 * (first - _ONE_BYTE_MAX - 1) if first <= _MAP_MAX else first - _MAP_MAX - 1)
        elif first <= _TEXT_MAX:
            at += first & 0x1F
            left -= 1
        elif first in _LENGTH_BYTES:
            size = _LENGTH_BYTES[first]
            at += size + int.from_bytes(content[at : at + size]) + (first in _EXTENSIONS)
            left -= 1
        elif first in _NUMBER_BYTES:
            size = _NUMBER_BYTES[first]
            entries = int.from_bytes(content[at : at + size])
            at += size
            left -= 1 + (2 * entries if first in _MAPS else entries)
        else:
            at += _BYTES_AHEAD.get(first, 0)
            left -= 1
        if left < 0:
            return True
    return False
