"""Java's order of strings: by UTF-16 code unit, where Python goes by code point."""

from collections.abc import Iterable


def java_sorted(texts: Iterable[str]) -> list[str]:
    """Sort as `Collections.sort` sorts strings.

    Mirrors:
        `java.lang.String#compareTo`.
    """
    listed = list(texts)
    if "".join(listed).isascii():
        return sorted(listed)
    return sorted(listed, key=_utf_16)


def _utf_16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
