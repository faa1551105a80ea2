"""What a group was given lately, so that its members do not each divide the whole.

Every member asks the same question about the same queues. A strategy whose
answer takes a look at each queue would be asked members times queues things;
here the first member's question divides the whole and the others look it up.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import attrs

from nodes.protocol.model import MessageQueue

_Division = TypeVar("_Division")
_REMEMBERED_MAX = 32
"""Topics times views that are on many consumers' minds at a time."""


@attrs.define
class Divisions(Generic[_Division]):
    """Remembers the last few divisions of queues among members, latest first.

    Lists are compared, not hashed: members mostly hand over the very same
    queues, for which a comparison only walks along two arrays.
    """

    divide: Callable[[Sequence[MessageQueue], Sequence[str]], _Division]
    """The division itself: a pure function."""
    _known: list[tuple[list[MessageQueue], list[str], _Division]] = attrs.field(factory=list, init=False)

    def of(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> _Division:
        """The division of these queues among these members."""
        queues, members = list(mq_all), list(cid_all)
        for place, known in enumerate(self._known):
            if known[1] == members and known[0] == queues:
                if place:
                    self._known.insert(0, self._known.pop(place))
                return known[2]
        division = self.divide(queues, members)
        self._known.insert(0, (queues, members, division))
        del self._known[_REMEMBERED_MAX:]
        return division
