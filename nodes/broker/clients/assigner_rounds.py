"""The thread of an assigner that looks at its groups periodically, and not when a member asks."""

from collections.abc import Awaitable, Callable

from nodes.host import Host
from nodes.protocol.model import MessageQueue
from nodes.threads import ScheduledThread
from nodes.values import frozen


@frozen
class SeenGroup:
    """The members of a group and the queues of a topic, as the assigner saw them last."""

    queues: tuple[MessageQueue, ...]
    client_ids: tuple[str, ...]
    """In any order; one per channel."""


Look = Callable[[str, str], Awaitable[SeenGroup | None]]
"""What the broker knows of a group and a topic now; None: it knows no member, or no route."""


class AssignerRounds:
    """Looks at all groups and topics that members have asked for, once a period.

    Args:
        period_ms: from one round to the next.
        look: sees a group and a topic.
        on_changed: called with a group of which the assigner sees something else than before.
    """

    def __init__(self, host: Host, period_ms: int, look: Look, on_changed: Callable[[str], None]) -> None:
        self._look = look
        self._on_changed = on_changed
        self._seen: dict[tuple[str, str], SeenGroup | None] = {}
        self._thread = ScheduledThread(host, "AssignerRebalanceService")
        self._thread.at_fixed_rate("assigner rebalance", self._round, period_ms, period_ms)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._thread.stop()

    def seen(self, group: str, topic: str) -> SeenGroup | None:
        """What the last round saw; None: nothing yet, and the next round looks at it, too."""
        return self._seen.setdefault((group, topic))

    async def _round(self) -> None:
        changed: dict[str, None] = {}
        for group, topic in tuple(self._seen):
            found = await self._look(group, topic)
            if found != self._seen[group, topic]:
                changed[group] = None
            if found is None:
                del self._seen[group, topic]
            else:
                self._seen[group, topic] = found
        for group in changed:
            self._on_changed(group)
