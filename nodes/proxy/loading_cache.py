"""A cache that loads what it lacks: callers wait for the first value of a key, and reloads run behind them."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from nodes.host import Host
from nodes.proxy.tables.cache import CacheEntry, RefreshingCache
from nodes.proxy.tables.errors import CallError
from nodes.units import NS_PER_MS

ENTRIES_MAX = 20_000
"""Of each cache of a proxy, as shipped."""
_Value = TypeVar("_Value")


class LoadingCache(Generic[_Value]):
    """Values by key.

    Args:
        name: of its thread.
        refresh_seconds: as of `RefreshingCache`.
        expire_seconds: as of `RefreshingCache`.
        load: returns the value of a key, or raises a `CallError`: then the caller fails, or a reload keeps the old one.
        on_loaded: called with the key and the value whenever one was loaded.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        refresh_seconds: int,
        expire_seconds: int,
        load: Callable[[str], Awaitable[_Value]],
        on_loaded: Callable[[str, _Value], None],
    ) -> None:
        self._host = host
        self._name = name
        ns_per_s = 1_000 * NS_PER_MS
        self._cache: RefreshingCache[_Value] = RefreshingCache(
            refresh_seconds * ns_per_s, expire_seconds * ns_per_s, ENTRIES_MAX
        )
        self._load = load
        self._on_loaded = on_loaded
        self._loading: dict[str, trio.Lock] = {}

    async def get(self, key: str) -> _Value:
        """The value of a key.

        Raises:
            CallError: it is not there and could not be loaded.
        """
        entry = self._use(key)
        if entry is not None:
            return entry.value
        lock = self._loading.setdefault(key, trio.Lock())
        async with lock:
            entry = self._use(key)  # another call may have loaded it meanwhile
            if entry is not None:
                return entry.value
            try:
                value = await self._load(key)
            finally:
                if not lock.statistics().tasks_waiting:
                    self._loading.pop(key, None)
            self._put(key, value)
            return value

    def keys(self) -> tuple[str, ...]:
        """The keys of all values."""
        return self._cache.keys()

    def _use(self, key: str) -> CacheEntry[_Value] | None:
        now_ns = self._host.clock.monotonic_ns()
        entry = self._cache.use(key, now_ns)
        if entry is not None and self._cache.begin_reload(entry, now_ns):
            self._host.start_soon(self._reload, key, entry.value, name=self._name)
        return entry

    async def _reload(self, key: str, old: _Value) -> None:
        try:
            value = await self._load(key)
        except CallError as error:
            self._host.log.warning("reload failed", cache=self._name, key=key, error=str(error))
            value = old
        self._put(key, value)

    def _put(self, key: str, value: _Value) -> None:
        self._cache.put(key, value, self._host.clock.monotonic_ns())
        self._on_loaded(key, value)
