"""The epoch file of a broker: which part of its log was written under which master epoch.

The ends are not in the file: an entry ends where the next begins, and the last one is open. So a list in memory may say
more, or less, than the file from which it is read again.

Mirrors:
    `org.apache.rocketmq.store.ha.autoswitch.EpochFileCache`, `org.apache.rocketmq.common.utils.CheckpointFile`.
"""

import zlib
from collections.abc import Iterable

import attrs

from nodes.protocol.bodies_controller import EpochEntry
from nodes.protocol.widths import INT32_MAX, INT64_MAX

OPEN = INT64_MAX
"""The end of an entry that goes on."""
NO_EPOCH = -1


class DamagedEpochFileError(ValueError):
    """The file is not what a broker has written."""


class EpochFile:
    """The entries of one log, by epoch, and what the file holds.

    Args:
        text: of the file; None: there is none.

    Raises:
        DamagedEpochFileError: the text does not match its own count or checksum.
    """

    def __init__(self, text: str | None = None) -> None:
        self.text = text
        """What the file is to hold; None: there is no file. It stays when no entry is left, so a restart reads it."""
        self._entries = {} if text is None else _by_epoch(_read(text))

    @classmethod
    def of(cls, entries: Iterable[tuple[int, int]]) -> "EpochFile":
        """A list of epochs and their starts, in the order in which they are given; each ends where the next begins."""
        made = cls()
        made._entries = _by_epoch(entries)
        made._write()
        return made

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All entries, ordered by epoch."""
        return tuple(self._entries.values())

    @property
    def last(self) -> EpochEntry | None:
        """The entry of the greatest epoch; None: there is no entry."""
        return self.entries[-1] if self._entries else None

    @property
    def last_epoch(self) -> int:
        """The greatest epoch; -1: there is no entry."""
        return NO_EPOCH if self.last is None else self.last.epoch

    def get(self, epoch: int) -> EpochEntry | None:
        """The entry of an epoch."""
        return self._entries.get(epoch)

    def after(self, epoch: int) -> EpochEntry | None:
        """The entry of the next greater epoch."""
        return next((entry for entry in self.entries if entry.epoch > epoch), None)

    def at(self, offset: int) -> EpochEntry | None:
        """The first entry that holds an offset."""
        return next((entry for entry in self.entries if entry.start_offset <= offset < entry.end_offset), None)

    def append(self, epoch: int, start_offset: int) -> bool:
        """Begin an epoch, which ends the last one.

        Returns:
            Whether it began: neither its number nor its start may be at or below those of the last.
        """
        last = self.last
        if last is not None:
            if last.epoch >= epoch or last.start_offset >= start_offset:
                return False
            self._entries[last.epoch] = attrs.evolve(last, end_offset=start_offset)
        self._entries[epoch] = EpochEntry(epoch, start_offset, OPEN)
        self._write()
        return True

    def begin(self, epoch: int, start_offset: int) -> bool:
        """Begin an epoch as a new master does: what the file says of this and later epochs is forgotten first."""
        if self.last_epoch >= epoch:
            self.truncate_from_epoch(epoch)
        return self.append(epoch, start_offset)

    def truncate_from_epoch(self, epoch: int) -> None:
        """Drop this epoch and all later ones; the last that stays keeps its end."""
        self._keep(entry for entry in self.entries if entry.epoch < epoch)

    def truncate_from(self, offset: int) -> None:
        """Drop the epochs that begin at an offset or behind it; the last that stays keeps its end."""
        self._keep(entry for entry in self.entries if entry.start_offset < offset)

    def truncate_up_to(self, offset: int) -> None:
        """Drop the epochs that end at an offset or before it, whose files have expired."""
        self._keep(entry for entry in self.entries if entry.end_offset > offset)

    def end_last(self, log_end: int) -> None:
        """End the last entry where the log ends, unless it begins behind that."""
        last = self.last
        if last is not None and log_end >= last.start_offset:
            self._entries[last.epoch] = attrs.evolve(last, end_offset=log_end)

    def with_end(self, log_end: int) -> "EpochFile":
        """A copy, in which each entry ends where the next begins, and the last one where the log ends."""
        copy = EpochFile.of((entry.epoch, entry.start_offset) for entry in self.entries)
        copy.end_last(log_end)
        return copy

    def consistent_point(self, master: "EpochFile") -> int | None:
        """Up to where two logs agree: the smaller end of the greatest epoch that begins at one offset in both.

        Args:
            master: of the other log; both have ends, see `with_end`.

        Returns:
            An offset, which may lie behind the end of this log; None: there is no such epoch.

        Mirrors:
            `org.apache.rocketmq.store.ha.autoswitch.EpochFileCache#findConsistentPoint`.
        """
        for mine in reversed(self.entries):
            other = master.get(mine.epoch)
            if other is not None and other.start_offset == mine.start_offset:
                return min(mine.end_offset, other.end_offset)
        return None

    def _keep(self, entries: Iterable[EpochEntry]) -> None:
        self._entries = {entry.epoch: entry for entry in entries}
        self._write()

    def _write(self) -> None:
        if self._entries:
            lines = "".join(f"{entry.epoch}-{entry.start_offset}\n" for entry in self.entries)
            self.text = f"{len(self._entries)}\n{_checksum(lines)}\n{lines}"


def _by_epoch(entries: Iterable[tuple[int, int]]) -> dict[int, EpochEntry]:
    listed = list(entries)
    ends = [start for _, start in listed[1:]] + [OPEN] if listed else []
    made = (EpochEntry(epoch, start, end) for (epoch, start), end in zip(listed, ends, strict=True))
    return {entry.epoch: entry for entry in sorted(made, key=lambda entry: entry.epoch)}


def _read(text: str) -> list[tuple[int, int]]:
    count, _, rest = text.partition("\n")
    checksum, _, lines = rest.partition("\n")
    if count != str(lines.count("\n")) or checksum != str(_checksum(lines)):
        raise DamagedEpochFileError(f"epoch file: {count} entries with checksum {checksum} do not match what follows")
    pairs = (line.split("-") for line in lines.splitlines())
    return [(int(epoch), int(start)) for epoch, start in pairs]


def _checksum(lines: str) -> int:
    """Without the sign bit, as Java's `int`."""
    return zlib.crc32(lines.encode()) & INT32_MAX
