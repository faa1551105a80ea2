"""What the sections of the page were before: every change, as far back as fits into memory."""

import json
from collections import deque
from collections.abc import Mapping

import attrs

from emulator.web.sections import Entries, apply

CHARS_MOST = 16_000_000
"""Changes of so many characters are kept; a quiet cluster of a dozen nodes fills that in days."""


@attrs.frozen
class _Change:
    """Changes of one section at one instant."""

    t_ms: int
    section: str
    changes: Entries
    chars: int


class History:
    """The sections at each instant since `from_ms`; older changes are forgotten.

    Args:
        chars_most: how many characters of changes are kept.
    """

    def __init__(self, chars_most: int = CHARS_MOST) -> None:
        self._chars_left = chars_most
        self._before: dict[str, Entries] = {}
        """The sections at `from_ms`."""
        self._changes: deque[_Change] = deque()
        self.from_ms = 0
        """The first instant that is known."""

    def note(self, t_ms: int, changes: Mapping[str, Entries]) -> None:
        """Keep changes.

        Args:
            t_ms: not before that of the last call.
            changes: mapping section -> entries that changed; None removes one.
        """
        for section, entries in changes.items():
            if entries:
                chars = len(json.dumps(entries))
                self._changes.append(_Change(t_ms, section, entries, chars))
                self._chars_left -= chars
        while self._chars_left < 0:
            oldest = self._changes.popleft()
            self._chars_left += oldest.chars
            self.from_ms = oldest.t_ms
            _apply(self._before, oldest)

    def at(self, t_ms: int) -> Mapping[str, Entries]:
        """Mapping section -> its entries at an instant; before `from_ms` those of `from_ms`."""
        found = {section: dict(entries) for section, entries in self._before.items()}
        for change in self._changes:
            if change.t_ms > max(t_ms, self.from_ms):
                break
            _apply(found, change)
        return found


def _apply(state: dict[str, Entries], change: _Change) -> None:
    apply(state.setdefault(change.section, {}), change.changes)
