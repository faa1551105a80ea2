"""What the sections of the page were before: every change, as far back as fits into memory."""

import json
from collections import deque
from collections.abc import Mapping

import attrs

from emulator.web.sections import Entries, apply

CHARS_MAX = 8_000_000
"""Changes of so many characters are retained; heartbeats of a dozen nodes fill that in a day."""
BLOCK_CHANGES = 1_000
"""To find an instant, at most so many changes are made."""
_State = dict[str, Entries]


@attrs.frozen
class _Change:
    """Changes of one section at one instant."""

    t_ms: int
    section: str
    changes: Entries


@attrs.define
class _Block:
    """Consecutive changes, and the sections before the first of them."""

    before: _State
    changes: list[_Change] = attrs.Factory(list)
    chars: int = 0


class History:
    """The sections at each instant since `from_ms`; older changes are forgotten.

    Args:
        chars_max: how many characters of changes are retained, and perhaps a block more.
        block_changes: how many changes are forgotten at once.
    """

    def __init__(self, chars_max: int = CHARS_MAX, block_changes: int = BLOCK_CHANGES) -> None:
        self._chars_left = chars_max
        self._block_changes = block_changes
        self._now: _State = {}
        self._blocks = deque([_Block({})])
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
                self._add(_Change(t_ms, section, entries))
        while self._chars_left < 0 and len(self._blocks) > 1:
            oldest = self._blocks.popleft()
            self._chars_left += oldest.chars
            self.from_ms = oldest.changes[-1].t_ms

    def _add(self, change: _Change) -> None:
        block = self._blocks[-1]
        if len(block.changes) >= self._block_changes:
            block = _Block(_copy(self._now))
            self._blocks.append(block)
        block.changes.append(change)
        chars = len(json.dumps(change.changes))
        block.chars += chars
        self._chars_left -= chars
        _make(self._now, change)

    def at(self, t_ms: int) -> Mapping[str, Entries]:
        """Mapping section -> its entries at an instant; before `from_ms` those of `from_ms`."""
        t_ms = max(t_ms, self.from_ms)
        begun = [block for block in self._blocks if block.changes and block.changes[0].t_ms <= t_ms]
        block = begun[-1] if begun else self._blocks[0]
        found = _copy(block.before)
        for change in block.changes:
            if change.t_ms > t_ms:
                break
            _make(found, change)
        return found


def _copy(state: _State) -> _State:
    return {section: dict(entries) for section, entries in state.items()}


def _make(state: _State, change: _Change) -> None:
    apply(state.setdefault(change.section, {}), change.changes)
