"""The disk of an emulated machine: survives a kill; power loss takes what was not synced."""

from emulator.base.hits import Hits
from emulator.time.timeline import Timeline

_NS_PER_MS = 1_000_000


class EmulatedDisk:
    """Named files in memory; implements `nodes.host.Disk`.

    A slow disk takes its time for a flush, and what is written meanwhile goes with the next one, as in a group
    commit; one that lies about syncs keeps them in its cache, which a loss of power empties.
    """

    def __init__(self, timeline: Timeline, hits: Hits) -> None:
        self._timeline = timeline
        self._hits = hits
        self._written: dict[str, bytes] = {}
        self._synced: dict[str, bytes] = {}
        self._cached: dict[str, bytes] = {}
        """Acknowledged as synced, and not on the disk."""
        self._slow: dict[str, int] = {}
        """Fault -> milliseconds a flush."""
        self._lying: dict[str, None] = {}
        self._flush_ends_ns = 0
        """When the flush that is under way ends,"""
        self._idle_at_ns = 0
        """and the one behind it, which takes all that is written until then."""

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        """Replace a file; without `sync` it is safe from a kill only."""
        self._written[name] = content
        if self._slow:
            self._queue()
        if not sync:
            return
        if self._lying:
            self._cached[name] = content
        else:
            self._synced[name] = content
            self._cached.pop(name, None)

    def _queue(self) -> None:
        for fault_id in self._slow:
            self._hits.count(fault_id)
        now_ns, flush_ns = self._timeline.now_ns, sum(self._slow.values()) * _NS_PER_MS
        if now_ns >= self._idle_at_ns:
            self._flush_ends_ns = self._idle_at_ns = now_ns + flush_ns
            return
        if now_ns >= self._flush_ends_ns:
            self._flush_ends_ns = self._idle_at_ns
        self._idle_at_ns = self._flush_ends_ns + flush_ns

    def read(self, name: str) -> bytes | None:
        """Content of the file, None where there is none."""
        return self._written.get(name)

    def busy_ms(self) -> float:
        """How long until all that was written is there."""
        return max(0, self._idle_at_ns - self._timeline.now_ns) / _NS_PER_MS

    def lose_power(self) -> None:
        """Every file falls back to what was synced last."""
        if self._cached:
            for fault_id in self._lying:
                self._hits.count(fault_id)
        self._written = dict(self._synced)
        self._cached.clear()
        self._flush_ends_ns = self._idle_at_ns = 0

    def slow_down(self, fault_id: str, flush_ms: int) -> None:
        """Each flush takes longer."""
        self._slow[fault_id] = flush_ms

    def lie(self, fault_id: str) -> None:
        """Syncs are acknowledged, and not done."""
        self._lying[fault_id] = None

    def heal(self, fault_id: str) -> None:
        """End a fault; a cache that need not lie any more is written."""
        self._slow.pop(fault_id, None)
        self._lying.pop(fault_id, None)
        if not self._lying:
            self._synced.update(self._cached)
            self._cached.clear()
