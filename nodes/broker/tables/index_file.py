"""Messages by the hash of a key: a hash table in typed arrays, with a chain of entries in each slot.

Mirrors:
    `org.apache.rocketmq.store.index.IndexFile`.
"""

from array import array
from collections.abc import Iterator

_FIRST_SLOTS = 8
_NO_ENTRY = -1


class IndexFile:
    """Hash of topic and key -> rows of the log."""

    def __init__(self) -> None:
        self._slots = array("i", (_NO_ENTRY,)) * _FIRST_SLOTS
        """The newest entry of each slot; as many slots as a power of two."""
        self._hashes = array("I")
        self._rows = array("i")
        self._previous = array("i")
        """The next older entry of the same slot."""

    def rows(self, hashed: int) -> Iterator[int]:
        """The rows with a hash, the newest first."""
        entry = self._slots[self._slot(hashed)]
        while entry != _NO_ENTRY:
            if self._hashes[entry] == hashed:
                yield self._rows[entry]
            entry = self._previous[entry]

    def put(self, hashed: int, row: int) -> None:
        """Add a row."""
        self._hashes.append(hashed)
        self._rows.append(row)
        self._previous.append(_NO_ENTRY)
        if len(self._rows) <= len(self._slots):
            self._link(len(self._rows) - 1)
            return
        self._slots = array("i", (_NO_ENTRY,)) * (2 * len(self._slots))
        for entry in range(len(self._rows)):
            self._link(entry)

    def _link(self, entry: int) -> None:
        slot = self._slot(self._hashes[entry])
        self._previous[entry], self._slots[slot] = self._slots[slot], entry

    def _slot(self, hashed: int) -> int:
        return hashed & (len(self._slots) - 1)
