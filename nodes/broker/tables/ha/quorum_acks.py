"""Up to where a majority of a group has a log."""

from collections.abc import Iterable

from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet


class QuorumAcks(MasterSyncStateSet):
    """What a leader knows of its followers' logs; there is no SyncStateSet.

    Args:
        epochs: of this broker: the terms in which it got messages.
        members: how many brokers the group has.

    Mirrors:
        `io.openmessaging.storage.dledger.DLedgerEntryPusher.QuorumAckChecker`.
    """

    def __init__(self, epochs: EpochFile, members: int) -> None:
        super().__init__(epochs, all_ack_in_sync_state_set=False, ha_max_time_slave_not_catchup_ms=0)
        self.majority = members // 2 + 1
        self.leads = False
        """Whether this broker leads, and a majority follows it in its term."""

    def confirm_offset(self, max_offset: int, *, serves: bool = True) -> int:  # noqa: ARG002 - a leader counts
        """Up to where the log may be read: what a majority has; a follower's is what its leader reports."""
        if self.leads:
            self._confirm_offset = max(self._confirm_offset, self._computed_confirm_offset(max_offset))
        return self._confirm_offset

    def _computed_confirm_offset(self, max_offset: int) -> int:
        ends = sorted((max_offset, *(link.ack_offset for link in self.links)), reverse=True)
        return ends[self.majority - 1] if len(ends) >= self.majority else self._confirm_offset

    def _begin(self, epoch: int, max_offset: int) -> None:
        """Begin a term; a leader that was started again, and elected in its own term, goes on with that."""
        if epoch != self._epochs.last_epoch:
            super()._begin(epoch, max_offset)

    def _reported(self, members: Iterable[int]) -> tuple[int, ...]:
        """Nothing is remembered: the members of the group are fixed."""
        return tuple(members)
