"""Whose queues have changed hands since somebody looked."""

from emulator.queue_owners import GroupQueue, QueueOwners
from emulator.spec import Scenario


class ChangedOwners(QueueOwners):
    """The owners of each queue, and which of them may have changed.

    Args:
        scenario: whose queues have no owner at first.
    """

    def __init__(self, scenario: Scenario | None = None) -> None:
        super().__init__(scenario)
        self._since: dict[GroupQueue, None] = dict.fromkeys(self._owners)

    def take_changed(self) -> tuple[GroupQueue, ...]:
        """Queues whose owners may have changed since this was asked before, ordered; at first all."""
        changed, self._since = sorted(self._since), {}
        return tuple(changed)

    def _changed(self, queue: GroupQueue, t_ns: int) -> None:  # noqa: ARG002 - when does not matter here
        self._since[queue] = None
