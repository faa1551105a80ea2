"""Texts and numbers as Java has them: order, hashes, the order of hash tables, splitting."""

from collections.abc import Iterable


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Sort as `Collections.sort` sorts strings.

    Mirrors:
        `java.lang.String#compareTo`.
    """
    listed = list(texts)
    if "".join(listed).isascii():
        return sorted(listed)
    return sorted(listed, key=java_compare_key)


def java_compare_key(text: str) -> bytes:
    """The sort key for Java's order of strings: their UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def java_hash(text: str) -> int:
    """The hash of a string, as 32 bits without sign.

    Mirrors:
        `java.lang.String#hashCode`.
    """
    units = java_compare_key(text)
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value


def hash_ordered(texts: Iterable[str], *, buckets: int = 16) -> list[str]:
    """The order in which a Java hash table iterates these keys.

    Args:
        texts: the keys, in the order of insertion.
        buckets: initial size, a power of two; it doubles when three quarters are used.

    Mirrors:
        `java.util.HashMap`, `java.util.concurrent.ConcurrentHashMap`.
    """
    listed = list(texts)
    buckets = buckets_for(len(listed), buckets)
    return sorted(listed, key=lambda text: bucket_of(java_hash(text), buckets))


def long_set(numbers: Iterable[int]) -> tuple[int, ...]:
    """Each number once, in the order in which a Java hash set of `Long` iterates them.

    So numbers from 0 to 11 are in ascending order.

    Args:
        numbers: in the order of insertion.

    Mirrors:
        `java.util.HashSet`, `java.lang.Long#hashCode`.
    """
    listed = list(dict.fromkeys(numbers))
    buckets = buckets_for(len(listed), 16)
    return tuple(sorted(listed, key=lambda number: bucket_of((number ^ number >> 32) & 0xFFFFFFFF, buckets)))


def buckets_for(entries: int, buckets: int) -> int:
    """The size of a hash table with so many entries; it doubles when three quarters are used."""
    while entries > buckets * 3 // 4:
        buckets *= 2
    return buckets


def bucket_of(hashed: int, buckets: int) -> int:
    """The bucket of a hash."""
    return (hashed ^ hashed >> 16) & (buckets - 1)


def java_compare(text: str, other: str) -> int:
    """Below, at or above zero: `text` sorts before, like or after `other`.

    Returns:
        The difference of the first code units that differ, else that of the lengths.

    Mirrors:
        `java.lang.String#compareTo`.
    """
    mine, others = _units(text), _units(other)
    return next((a - b for a, b in zip(mine, others, strict=False) if a != b), len(mine) - len(others))


def _units(text: str) -> list[int]:
    encoded = java_compare_key(text)
    return [high << 8 | low for high, low in zip(encoded[::2], encoded[1::2], strict=True)]


def as_int(value: int) -> int:
    """A number as Java's `int`: the lower 32 bits, with sign."""
    return (value + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000


def as_long(value: int) -> int:
    """A number as Java's `long`: the lower 64 bits, with sign."""
    return (value + 2**63) % 2**64 - 2**63


def java_split(text: str, separator: str) -> list[str]:
    """The parts between separators, without empty ones at the end.

    So `a@b@` has the parts a and b, `@b` an empty one and b, `@` has none, and the empty text has one empty part.

    Mirrors:
        `java.lang.String#split(String)`.
    """
    parts = text.split(separator)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts
