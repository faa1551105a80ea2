"""SipHash-2-4 with the key of Guava, as clients hash message groups.

Mirrors:
    `com.google.common.hash.Hashing#sipHash24`.
"""

_KEY = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_MASK = (1 << 64) - 1
_WORD_BYTES = 8


def sip_hash24(data: bytes) -> int:
    """The hash, from 0 to 2^64 - 1."""
    v0, v1, v2, v3 = (initial ^ _KEY[place % 2] for place, initial in enumerate(_INITIAL))
    padded = data + bytes(-(len(data) + 1) % _WORD_BYTES) + bytes([len(data) & 0xFF])
    for start in range(0, len(padded), _WORD_BYTES):
        word = int.from_bytes(padded[start : start + _WORD_BYTES], "little")
        v0, v1, v2, v3 = _rounds(2, v0, v1, v2, v3 ^ word)
        v0 ^= word
    v0, v1, v2, v3 = _rounds(4, v0, v1, v2 ^ 0xFF, v3)
    return v0 ^ v1 ^ v2 ^ v3


def _rounds(number: int, v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    for _ in range(number):
        v0, v2 = (v0 + v1) & _MASK, (v2 + v3) & _MASK
        v1, v3 = _rotated(v1, 13) ^ v0, _rotated(v3, 16) ^ v2
        v0, v2 = (_rotated(v0, 32) + v3) & _MASK, (v2 + v1) & _MASK
        v1, v3 = _rotated(v1, 17) ^ v2, _rotated(v3, 21) ^ v0
        v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _MASK
