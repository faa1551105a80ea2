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
        entry = self._slots[hashed & (len(self._slots) - 1)]
        while entry != _NO_ENTRY:
            if self._hashes[entry] == hashed:
                yield self._rows[entry]
            entry = self._previous[entry]

    def put(self, hashed: int, row: int) -> None:
        """Add a row."""
        if len(self._rows) == len(self._slots):
            self._grow()
        slot = hashed & (len(self._slots) - 1)
        self._hashes.append(hashed)
        self._previous.append(self._slots[slot])
        self._slots[slot] = len(self._rows)
        self._rows.append(row)

    def _grow(self) -> None:
        """Twice as many slots."""
        self._slots = slots = array("i", (_NO_ENTRY,)) * (2 * len(self._slots))
        for entry, hashed in enumerate(self._hashes):
            slot = hashed & (len(slots) - 1)
            self._previous[entry], slots[slot] = slots[slot], entry
