"""The two ends of an HA link in controller mode, from handshake to transfer, in values instead of bytes.

A slave says who it is, the master answers with its epochs, and the slave cuts what the two logs do not share. The slave
reports where its log ends, and gets the log from there, in batches that bear the label of an epoch.

Mirrors:
    `org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAClient`, `AutoSwitchHAConnection`.
"""

from collections.abc import Sequence

from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import NOTHING_YET, MasterSyncStateSet, NoEpochError, SlaveLink
from nodes.protocol.bodies_controller import EpochEntry
from nodes.values import frozen

# Frames


@frozen
class SlaveHandshake:
    """Slave to master: who it is."""

    broker_id: int
    sync_from_last_file: bool = False
    """Whether a log that is empty begins with the master's last file."""
    async_learner: bool = False


@frozen
class MasterHandshake:
    """Master to slave: its epochs with their starts."""

    log_end: int
    last_epoch: int
    """-1: there is none."""
    entries: tuple[tuple[int, int], ...]


@frozen
class SlaveAck:
    """Slave to master: the end of its log."""

    max_offset: int


@frozen
class LogBatch:
    """Master to slave: a piece of the log; without bytes it is a heartbeat."""

    offset: int
    epoch: int
    epoch_start_offset: int
    confirm_offset: int
    size: int


_STATE_NOT_MATCHED_WAIT_MS = 1
_NO_CONSISTENT_POINT_WAIT_MS = 2_000


class RefusedFrameError(Exception):
    """The connection is closed because of a frame.

    Args:
        wait_ms: how long the slave waits before it closes the connection; a new address of the master that arrived
            before, or meanwhile, ends this wait and not the pause that follows.
    """

    def __init__(self, reason: str, *, wait_ms: int = 0) -> None:
        super().__init__(reason)
        self.wait_ms = wait_ms


class NegativeBatchError(Exception):
    """A batch says that it has fewer than no bytes: the slave never gets past it, and the connection stays open.

    Mirrors:
        `NegativeArraySizeException`, which `HAClientReader#processReadResult` logs and takes for a good read.
    """


# The slave's end


class SlaveEnd:
    """One connection of a slave to its master.

    Args:
        epochs: of this broker.
        max_offset: end of its log.
    """

    def __init__(self, epochs: EpochFile, max_offset: int) -> None:
        self._epochs = epochs
        self.is_transferring = False
        """Whether the handshake is over; as long as it lasts nothing limits it."""
        self.reported_offset = max_offset
        """What the master knows, or would have known after a report."""
        self.received_epoch = NOTHING_YET
        """The label of the last batch."""
        self.confirm_offset = NOTHING_YET
        """Up to where the log may be read."""

    def on_handshake(self, master: MasterHandshake, max_offset: int) -> int | None:
        """Find where the two logs part.

        Args:
            master: what the master says.
            max_offset: end of the own log.

        A log without epochs is new to the master, also one that has data: its end is reported at once.

        Returns:
            Where to cut the own log, which may lie behind its end; None: nowhere, since no epoch is known.

        Raises:
            RefusedFrameError: there was a handshake, or the logs share no epoch.
        """
        if self.is_transferring:
            raise RefusedFrameError("a second handshake", wait_ms=_STATE_NOT_MATCHED_WAIT_MS)
        point, reported_offset = None, 0
        if self._epochs.entries:
            others = EpochFile.of(master.entries).with_end(master.log_end)
            point = self._epochs.with_end(max_offset).consistent_point(others)
            if point is None:
                problem = "the master's log and the own one share no epoch"
                raise RefusedFrameError(problem, wait_ms=_NO_CONSISTENT_POINT_WAIT_MS)
            self._epochs.truncate_from(point)
            reported_offset = point
        self.reported_offset = reported_offset
        self.is_transferring = True
        return point

    def on_batch(self, batch: LogBatch, max_offset: int) -> SlaveAck | None:
        """Take a piece of the log; the caller appends its bytes if it has any.

        Args:
            batch: what the master sends.
            max_offset: end of the own log; an empty log takes any piece.

        Returns:
            The report that is due; None: the log has not grown.

        Raises:
            RefusedFrameError: there was no handshake, or the piece does not fit.
            NegativeBatchError: its size is negative.
        """
        if not self.is_transferring:
            raise RefusedFrameError("a batch before the handshake", wait_ms=_STATE_NOT_MATCHED_WAIT_MS)
        if batch.size < 0:
            raise NegativeBatchError(f"a batch of {batch.size} bytes")
        if max_offset not in (0, batch.offset):
            raise RefusedFrameError(f"the master sends offset {batch.offset}, the own log ends at {max_offset}")
        if batch.epoch != self.received_epoch:
            self.received_epoch = batch.epoch
            self._epochs.append(batch.epoch, batch.epoch_start_offset)
        log_end = batch.offset + batch.size if batch.size else max_offset
        self.confirm_offset = min(batch.confirm_offset, log_end)
        return self.due_report(log_end)

    def due_report(self, max_offset: int) -> SlaveAck | None:
        """The report that is due: only a log that has grown is reported."""
        if max_offset <= self.reported_offset:
            return None
        self.reported_offset = max_offset
        return SlaveAck(max_offset)


# The master's end


class MasterEnd:
    """One connection of a slave, at its master.

    Args:
        epochs: of this broker.
        in_sync: its SyncStateSet.
        ha_transfer_batch_size: bytes in a batch at most.
    """

    def __init__(self, epochs: EpochFile, in_sync: MasterSyncStateSet, *, ha_transfer_batch_size: int) -> None:
        self._epochs = epochs
        self._in_sync = in_sync
        self._batch_size = ha_transfer_batch_size
        self.link = SlaveLink(NOTHING_YET)
        self.sync_from_last_file = False
        self.owes_handshake = False
        """Whether the slave waits for the epochs."""
        self.slave_request_offset = NOTHING_YET
        """The end of the slave's log at its first report, where the transfer starts."""
        self.transfer_epoch = NOTHING_YET
        """The label of the next batch."""
        self.transfer_epoch_end = 0
        """Where that epoch ends; -1: it was the last one when the transfer came to it, which is never checked again."""
        self.next_offset = NOTHING_YET

    @property
    def is_transferring(self) -> bool:
        """Whether the slave has reported the end of its log."""
        return self.slave_request_offset != NOTHING_YET

    def on_handshake(self, slave: SlaveHandshake) -> None:
        """Learn who the slave is."""
        self.link.slave_id = slave.broker_id
        self.link.is_async_learner = slave.async_learner
        self.sync_from_last_file = slave.sync_from_last_file
        self.owes_handshake = True

    def handshake(self, max_offset: int) -> MasterHandshake:
        """Answer a handshake.

        Args:
            max_offset: end of the own log.
        """
        self.owes_handshake = False
        entries = tuple((entry.epoch, entry.start_offset) for entry in self._epochs.entries)
        return MasterHandshake(max_offset, self._epochs.last_epoch, entries)

    def on_ack(self, ack: SlaveAck, *, max_offset: int, now_ms: int) -> Sequence[int] | None:
        """Handle a report of the slave; the first one says where to start.

        Returns:
            The SyncStateSet to report; None: there is nothing to report.

        Raises:
            NoEpochError: as of `MasterSyncStateSet.on_ack`.
        """
        if not self.is_transferring:
            self.slave_request_offset = ack.max_offset
        return self._in_sync.on_ack(self.link, ack.max_offset, max_offset=max_offset, now_ms=now_ms)

    def start_transfer(self, offset: int) -> bool:
        """Begin at an offset.

        Returns:
            False: no epoch holds it. The writer pauses, and then goes on all the same, with no label and an epoch that
            ends at 0: `next_batch` makes a batch of negative size.
        """
        self.next_offset = offset
        entry = self._epochs.at(offset)
        if entry is None:
            return False
        self._label(entry)
        return True

    def heartbeat(self, confirm_offset: int) -> LogBatch:
        """A batch without bytes, with the label of the transfer; before it has one, with that of the first epoch.

        Raises:
            NoEpochError: there is no epoch at all, which ends the writer and the connection.
        """
        label = self._epochs.get(self.transfer_epoch) or next(iter(self._epochs.entries), None)
        if label is None:
            raise NoEpochError("a heartbeat is due, and there is no epoch yet")
        return LogBatch(self.next_offset, label.epoch, label.start_offset, confirm_offset, 0)

    def next_batch(self, *, max_offset: int, confirm_offset: int, now_ms: int) -> LogBatch | None:
        """The next piece of the log, within one epoch.

        The piece that is cut where an epoch ends already bears the next label; where a whole piece ends there, the
        next one is empty.

        Args:
            max_offset: end of the own log.
            confirm_offset: up to where the slave may let its log be read.
            now_ms: wall clock of the master.

        Returns:
            None: there is nothing to send, or the epoch that is sent is in the file no longer: then nothing ever is.
        """
        size = min(max_offset - self.next_offset, self._batch_size)
        if size <= 0:
            self._in_sync.on_idle(self.link, now_ms=now_ms)
            return None
        if self.transfer_epoch_end != NOTHING_YET and self.next_offset + size > self.transfer_epoch_end:
            following = self._epochs.after(self.transfer_epoch)
            if following is None:
                return None
            size = self.transfer_epoch_end - self.next_offset
            self._label(following)
        label = self._epochs.get(self.transfer_epoch)
        if label is None:
            return None
        batch = LogBatch(self.next_offset, label.epoch, label.start_offset, confirm_offset, size)
        self._in_sync.on_batch_sent(self.link, max_offset=max_offset, now_ms=now_ms)
        self.next_offset += size
        return batch

    def _label(self, entry: EpochEntry) -> None:
        self.transfer_epoch = entry.epoch
        self.transfer_epoch_end = NOTHING_YET if entry.epoch == self._epochs.last_epoch else entry.end_offset
