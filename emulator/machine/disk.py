"""The disk of an emulated machine: it survives a kill; a power loss takes unsynced writes."""

from collections.abc import Callable

import attrs

from emulator.base.hits import Hits
from emulator.time.timeline import Timeline
from nodes.units import NS_PER_MS

Content = bytes | Callable[[], bytes]
"""Content of a file, or a function that returns it, always the same."""


@attrs.define
class _MappedFile:
    """A file that only grows, in the memory of the machine: of its content the disk has the first bytes."""

    content: bytearray = attrs.field(factory=bytearray)
    synced_bytes: int = 0
    cached_bytes: int | None = None
    """Acknowledged as synced by a disk that lies; None: it has not lied."""

    @property
    def has_lied(self) -> bool:
        return self.cached_bytes is not None

    def sync(self) -> None:
        self.synced_bytes, self.cached_bytes = len(self.content), None

    def lie(self) -> None:
        self.cached_bytes = len(self.content)

    def write_cache(self) -> None:
        if self.cached_bytes is not None:
            self.synced_bytes, self.cached_bytes = self.cached_bytes, None

    def lose_power(self) -> None:
        del self.content[self.synced_bytes :]
        self.cached_bytes = None


@attrs.define
class _MappedFiles:
    """Files that are begun one after the other, of which only the last one grows; the oldest are deleted.

    A place among them is the key of a file and a number of bytes in it: everything before it is meant.
    """

    contents: dict[int, bytearray] = attrs.field(factory=dict)
    """By ascending keys."""
    synced: tuple[int, int] = (-1, 0)
    cached: tuple[int, int] | None = None
    """Acknowledged as synced by a disk that lies; None: it has not lied."""

    @property
    def has_lied(self) -> bool:
        return self.cached is not None

    def end(self) -> tuple[int, int]:
        for key in reversed(self.contents):
            return key, len(self.contents[key])
        return self.synced

    def sync(self) -> None:
        self.synced, self.cached = self.end(), None

    def lie(self) -> None:
        self.cached = self.end()

    def write_cache(self) -> None:
        if self.cached is not None:
            self.synced, self.cached = self.cached, None

    def lose_power(self) -> None:
        last, size_bytes = self.synced
        for key in [key for key in self.contents if key > last]:
            del self.contents[key]
        if last in self.contents:
            del self.contents[last][size_bytes:]
        self.cached = None


class EmulatedDisk:
    """Files in memory; implements `nodes.host.Disk`.

    On a slow disk a flush takes time, and writes meanwhile go with the next flush, as in a group commit. A disk that
    lies about syncs keeps them in its cache, which a power loss empties.
    """

    def __init__(self, timeline: Timeline, hits: Hits) -> None:
        self._timeline = timeline
        self._hits = hits
        self._written: dict[str, Content] = {}
        self._synced: dict[str, Content] = {}
        self._cached: dict[str, Content] = {}
        """Files acknowledged as synced that are not on the disk."""
        self._mapped: dict[str, _MappedFile | _MappedFiles] = {}
        self._slow: dict[str, int] = {}
        """Mapping fault id -> ms per flush."""
        self._lying: dict[str, None] = {}
        self._flush_ends_ns = 0
        """End of the flush that is under way, in ns."""
        self._idle_at_ns = 0
        """End of the flush after it, which contains all writes until then, in ns."""

    def write(self, name: str, content: Content, *, sync: bool = True) -> None:
        """Replace a file; without `sync` it survives a kill, but not a power loss.

        A content that is a function is called when the file is read for the first time: big tables are written whole
        with each change, and rarely read.
        """
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

    def map(self, name: str) -> bytearray:
        """The content of a file that grows in memory; it survives a kill, and a power loss up to the last flush."""
        found = self._mapped.setdefault(name, _MappedFile())
        assert isinstance(found, _MappedFile)
        return found.content

    def map_files(self, name: str) -> dict[int, bytearray]:
        """The contents of files that grow in memory one after the other; as with `map`, `flush` syncs them."""
        found = self._mapped.setdefault(name, _MappedFiles())
        assert isinstance(found, _MappedFiles)
        return found.contents

    def flush(self, name: str) -> None:
        """Sync what was appended to a mapped file."""
        if self._slow:
            self._queue()
        file = self._mapped[name]
        if self._lying:
            file.lie()
        else:
            file.sync()

    def _queue(self) -> None:
        for fault_id in self._slow:
            self._hits.count(fault_id)
        now_ns, flush_ns = self._timeline.now_ns, sum(self._slow.values()) * NS_PER_MS
        if now_ns >= self._idle_at_ns:
            self._flush_ends_ns = self._idle_at_ns = now_ns + flush_ns
            return
        if now_ns >= self._flush_ends_ns:
            self._flush_ends_ns = self._idle_at_ns
        self._idle_at_ns = self._flush_ends_ns + flush_ns

    def read(self, name: str) -> bytes | None:
        """Content of a file; None if it does not exist."""
        content = self._written.get(name)
        if content is None or isinstance(content, bytes):
            return content
        encoded = content()
        for files in (self._written, self._synced, self._cached):
            if files.get(name) is content:
                files[name] = encoded
        return encoded

    def busy_ms(self) -> float:
        """Time in ms until all writes are on the disk."""
        return max(0, self._idle_at_ns - self._timeline.now_ns) / NS_PER_MS

    def folder(self, name: str) -> "DiskFolder":
        """A folder of this disk."""
        return DiskFolder(self, name)

    def lose_power(self) -> None:
        """Return every file to its last synced content."""
        if self._cached or any(file.has_lied for file in self._mapped.values()):
            for fault_id in self._lying:
                self._hits.count(fault_id)
        self._written = dict(self._synced)
        self._cached.clear()
        for file in self._mapped.values():
            file.lose_power()
        self._flush_ends_ns = self._idle_at_ns = 0

    def slow_down(self, fault_id: str, flush_ms: int) -> None:
        """Begin a fault that makes each flush take longer."""
        self._slow[fault_id] = flush_ms

    def lie(self, fault_id: str) -> None:
        """Begin a fault that acknowledges syncs without doing them."""
        self._lying[fault_id] = None

    def heal(self, fault_id: str) -> None:
        """End a fault; without a lying fault the cache is written to the disk."""
        self._slow.pop(fault_id, None)
        self._lying.pop(fault_id, None)
        if not self._lying:
            self._synced.update(self._cached)
            self._cached.clear()
            for file in self._mapped.values():
                file.write_cache()


class DiskFolder(EmulatedDisk):
    """A folder of a disk, with files of its own; whatever befalls the disk befalls all of its folders."""

    def __init__(self, disk: EmulatedDisk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._slow, self._lying = disk._slow, disk._lying  # noqa: SLF001 - its faults are those of the disk

    def write(self, name: str, content: Content, *, sync: bool = True) -> None:
        """Replace a file."""
        self._disk.write(self._path(name), content, sync=sync)

    def read(self, name: str) -> bytes | None:
        """Content of a file; None if it does not exist."""
        return self._disk.read(self._path(name))

    def map(self, name: str) -> bytearray:
        """The content of a file that grows in memory."""
        return self._disk.map(self._path(name))

    def map_files(self, name: str) -> dict[int, bytearray]:
        """The contents of files that grow in memory one after the other."""
        return self._disk.map_files(self._path(name))

    def flush(self, name: str) -> None:
        """Sync what was appended to a mapped file."""
        self._disk.flush(self._path(name))

    def busy_ms(self) -> float:
        """Time in ms until all writes to the disk are done."""
        return self._disk.busy_ms()

    def _path(self, name: str) -> str:
        return f"{self._name}/{name}"
