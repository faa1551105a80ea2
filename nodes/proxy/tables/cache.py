"""Values that are reloaded when they are used after a time, and forgotten when they are not used for a longer one.

Mirrors:
    A `LoadingCache` of Caffeine or Guava with `refreshAfterWrite` and `expireAfterAccess`.
"""

from typing import Generic, TypeVar

import attrs

_Value = TypeVar("_Value")


@attrs.define
class CacheEntry(Generic[_Value]):
    """A value."""

    value: _Value
    written_ns: int
    used_ns: int
    is_reloading: bool = False


class RefreshingCache(Generic[_Value]):
    """Values by key.

    Args:
        refresh_ns: age from which a use starts a reload, and still returns the old value.
        expire_ns: time without use after which a value is gone.
        entries_max: the value that was used longest ago makes room.
    """

    def __init__(self, refresh_ns: int, expire_ns: int, entries_max: int) -> None:
        self._refresh_ns = refresh_ns
        self._expire_ns = expire_ns
        self._entries_max = entries_max
        self._entries: dict[str, CacheEntry[_Value]] = {}

    def use(self, key: str, now_ns: int) -> CacheEntry[_Value] | None:
        """The value of a key; None: it has to be loaded. This use puts its end off."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now_ns - entry.used_ns >= self._expire_ns:
            del self._entries[key]
            return None
        entry.used_ns = now_ns
        return entry

    def keys(self) -> tuple[str, ...]:
        """The keys of all values, those included that are to be forgotten at their next use."""
        return tuple(self._entries)

    def begin_reload(self, entry: CacheEntry[_Value], now_ns: int) -> bool:
        """Whether this use is the one that starts a reload."""
        if entry.is_reloading or now_ns - entry.written_ns < self._refresh_ns:
            return False
        entry.is_reloading = True
        return True

    def put(self, key: str, value: _Value, now_ns: int) -> None:
        """Store what was loaded, or the old value if a reload has failed: both count as written now."""
        self._entries.pop(key, None)
        while len(self._entries) >= self._entries_max:
            del self._entries[min(self._entries, key=lambda known: self._entries[known].used_ns)]
        self._entries[key] = CacheEntry(value, now_ns, now_ns)
