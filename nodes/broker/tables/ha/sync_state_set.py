"""The SyncStateSet as the master of a group keeps it: who joins, who leaves, and up to where all have the log.

The master reports what it wants and goes on with its old set until an answer comes; until then both count.

Mirrors:
    `org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAService`, `AutoSwitchHAConnection`;
    `org.apache.rocketmq.store.CommitLog#getConfirmOffset`.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.protocol.java import long_set

NOTHING_YET = -1
"""An offset that no one has said."""


class NoEpochError(LookupError):
    """A slave acknowledges before the master has begun its first epoch."""


@attrs.define(eq=False)
class SlaveLink:
    """One HA connection of a slave, at the master."""

    slave_id: int
    is_async_learner: bool = False
    """Never joins the SyncStateSet."""
    ack_offset: int = NOTHING_YET
    """The end of the slave's log, as it last said."""
    last_master_max_offset: int = NOTHING_YET
    """The end of the master's log when the last batch was sent."""
    last_transfer_ms: int = 0


class MasterSyncStateSet:
    """The set of one broker.

    Args:
        epochs: of this broker.
        all_ack_in_sync_state_set: whether a message needs every member.
        ha_max_time_slave_not_catchup_ms: for how long a member may be behind.
    """

    def __init__(
        self, epochs: EpochFile, *, all_ack_in_sync_state_set: bool, ha_max_time_slave_not_catchup_ms: int
    ) -> None:
        self._epochs = epochs
        self._all_ack = all_ack_in_sync_state_set
        self._not_catchup_ms = ha_max_time_slave_not_catchup_ms
        self.broker_id: int | None = None
        """Of this broker, as the controller knows it; None: it has none yet."""
        self.local: tuple[int, ...] = ()
        """As the controller last confirmed it."""
        self.remote: tuple[int, ...] = ()
        """As this broker last reported it."""
        self.synchronizing = False
        """Whether a report has no good answer yet; one that failed stays so."""
        self.links: list[SlaveLink] = []
        self._caught_up_ms: dict[int, int] = {}
        self._confirm_offset = NOTHING_YET
        self.state_machine_version = 0
        """The master epoch in which this broker takes part."""

    @property
    def caught_up_ms(self) -> Mapping[int, int]:
        """Slave id -> when it last had all that there was; nothing is ever removed."""
        return MappingProxyType(self._caught_up_ms)

    @property
    def members(self) -> tuple[int, ...]:
        """Whose acknowledgement counts: while a report is unanswered the old set and the reported one."""
        return long_set((*self.local, *self.remote)) if self.synchronizing else self.local

    @property
    def in_sync_replicas_nums(self) -> int:
        """How many count as in sync: of the old and the reported set the larger."""
        return max(len(self.local), len(self.remote)) if self.synchronizing else len(self.local)

    # Slaves

    def on_ack(self, link: SlaveLink, offset: int, *, max_offset: int, now_ms: int) -> tuple[int, ...] | None:
        """Handle the end of a slave's log.

        Args:
            link: the connection.
            offset: what the slave says.
            max_offset: end of the own log.
            now_ms: wall clock of the master.

        Returns:
            The set to report; None: there is nothing to report.

        Raises:
            NoEpochError: there is no epoch yet in which the slave could have caught up.
        """
        link.ack_offset = offset
        report = None
        if not link.is_async_learner and offset >= link.last_master_max_offset:
            self._caught_up(link.slave_id, now_ms if offset == max_offset else link.last_transfer_ms)
            report = self._expanded(link.slave_id, offset, max_offset)
        if link.slave_id in self.local:
            self._confirm_offset = self._computed_confirm_offset(max_offset)
        return report

    def on_batch_sent(self, link: SlaveLink, *, max_offset: int, now_ms: int) -> None:
        """Remember the end of the own log at the last batch to a slave."""
        link.last_master_max_offset, link.last_transfer_ms = max_offset, now_ms

    def on_idle(self, link: SlaveLink, *, now_ms: int) -> None:
        """Count a slave as caught up since there is nothing to send, whatever it acknowledges."""
        self._caught_up(link.slave_id, now_ms)

    def on_disconnected(self, link: SlaveLink) -> tuple[int, ...] | None:
        """Forget a connection.

        Returns:
            The set to report; None: its slave is no member. A slave that has long reconnected is removed all the same.
        """
        self.links = [other for other in self.links if other is not link]
        if link.slave_id not in self.local:
            return None
        return self._reported(member for member in self.local if member != link.slave_id)

    def maybe_shrink(self, now_ms: int) -> tuple[int, ...]:
        """The members that are not behind for too long, and that have ever caught up; the master itself stays."""
        retained = tuple(member for member in self.local if self._keeps_up(member, now_ms))
        return retained if retained == self.local else self._reported(retained)

    def _caught_up(self, slave_id: int, at_ms: int) -> None:
        self._caught_up_ms[slave_id] = max(self._caught_up_ms.get(slave_id, 0), at_ms)

    def _keeps_up(self, member: int, now_ms: int) -> bool:
        caught_up_ms = self._caught_up_ms.get(member)
        if caught_up_ms is None:
            return member == self.broker_id
        return now_ms - caught_up_ms <= self._not_catchup_ms

    def _expanded(self, slave_id: int, offset: int, max_offset: int) -> tuple[int, ...] | None:
        if slave_id in self.local or offset < self.confirm_offset(max_offset):
            return None
        epoch = self._epochs.last
        if epoch is None:
            raise NoEpochError(f"slave {slave_id} acknowledges {offset}, and there is no epoch yet")
        return self._reported((*self.local, slave_id)) if offset >= epoch.start_offset else None

    def _reported(self, members: Iterable[int]) -> tuple[int, ...]:
        self.remote, self.synchronizing = long_set(members), True
        return self.remote

    # The controller's verdicts

    def set_sync_state_set(self, members: Iterable[int], max_offset: int) -> None:
        """Adopt a set that the controller confirmed."""
        self.local, self.synchronizing = long_set(members), False
        self._confirm_offset = self._computed_confirm_offset(max_offset)

    def change_to_master(self, epoch: int, max_offset: int) -> bool:
        """Begin an epoch as a new master; the caller has closed all connections.

        Returns:
            False: the epoch is older than the last of the file, and nothing has changed.
        """
        if epoch < self._epochs.last_epoch:
            return False
        self.links.clear()
        self._confirm_offset = self._computed_confirm_offset(max_offset)
        self._begin(epoch, max_offset)
        self.state_machine_version = epoch
        return True

    def stay_master(self, epoch: int, max_offset: int) -> bool:
        """Begin an epoch as the master that this broker is already; connections go on, and never learn of it.

        Returns:
            As above.
        """
        if epoch < self._epochs.last_epoch:
            return False
        self._epochs.begin(epoch, max_offset)
        self.state_machine_version = epoch
        return True

    def _begin(self, epoch: int, max_offset: int) -> None:
        self._epochs.begin(epoch, max_offset)

    def follow(self, epoch: int) -> bool:
        """Take part in an epoch as a slave.

        Returns:
            As above.
        """
        if epoch < self._epochs.last_epoch:
            return False
        self.state_machine_version = epoch
        return True

    # Confirm offset

    @property
    def stored_confirm_offset(self) -> int:
        """As last computed, or as the master said; -1: never."""
        return self._confirm_offset

    def follow_confirm_offset(self, offset: int) -> None:
        """Adopt what the master says of the log."""
        self._confirm_offset = offset

    def confirm_offset(self, max_offset: int, *, serves: bool = True) -> int:
        """Up to where the log may be read.

        A master's is the end of its log, unless all members must have a message; a slave's is what its master says.

        Args:
            max_offset: end of the own log.
            serves: whether this broker is a master, and not fenced.

        Mirrors:
            `CommitLog#getConfirmOffset`.
        """
        if serves:
            if len(self.local) == 1 or not self._all_ack:
                return max_offset
            if self._confirm_offset < 0:
                self._confirm_offset = self._computed_confirm_offset(max_offset)
        return self._confirm_offset

    def _computed_confirm_offset(self, max_offset: int) -> int:
        """The smallest end of all members that have said one; as it was if a member has no connection."""
        linked = {link.slave_id for link in self.links}
        if any(member not in linked and member != self.broker_id for member in self.members):
            return self._confirm_offset
        acks = (link.ack_offset for link in self.links if link.slave_id in self.members and link.ack_offset > 0)
        return min((max_offset, *acks))
