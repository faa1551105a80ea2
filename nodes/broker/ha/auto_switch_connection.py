"""The master's end of an HA link in controller mode: handshake, reports, and batches with the label of an epoch."""

from collections.abc import Callable, Sequence

import attrs

from nodes.broker.ha.connection import HaConnection
from nodes.broker.tables.ha.auto_switch_frames import encode_batch, encode_master_handshake, parse_slave_handshake
from nodes.broker.tables.ha.auto_switch_link import LogBatch, MasterEnd, SlaveAck, SlaveHandshake
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.ha_frames import HAConnectionState, parse_report, start_position
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet, NoEpochError, SlaveLink
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig
from nodes.host import Channel, Host
from nodes.protocol.command import Command

_NO_EPOCH_PAUSE_MS = 500
Report = Callable[[Sequence[int]], None]
"""Reports the controller a SyncStateSet."""


class AutoSwitchHaConnection(HaConnection):
    """A connection that a slave has opened.

    Args:
        epochs: of this broker.
        in_sync: its SyncStateSet.
        report: notifies the controller another SyncStateSet.
        on_acknowledged: called when more of the log may be confirmed.
        on_shutdown: called once, when the connection ends.

    Mirrors:
        `org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAConnection`.
    """

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        store: MessageStore,
        channel: Channel,
        epochs: EpochFile,
        in_sync: MasterSyncStateSet,
        report: Report,
        on_acknowledged: Callable[[], None],
        on_shutdown: Callable[[HaConnection], None],
    ) -> None:
        super().__init__(host, config, store, channel, on_shutdown)
        self.state = HAConnectionState.HANDSHAKE
        self._epochs = epochs
        self._in_sync = in_sync
        self._report = report
        self._on_acknowledged = on_acknowledged
        self._end = MasterEnd(epochs, in_sync, ha_transfer_batch_size=config.ha_transfer_batch_size)

    @property
    def link(self) -> SlaveLink:
        """Who the slave is, and what it has."""
        return self._end.link

    def on_command(self, command: Command) -> None:
        """Handle a handshake or a report of the slave."""
        answer = parse_slave_handshake(command)
        if answer is not None:
            self._on_handshake(answer)
            return
        offset = parse_report(command)
        if offset is None:
            self.shutdown("not a frame of a slave")
            return
        self._last_read_ms = self._now_ms()
        self._on_report(offset)

    def _on_handshake(self, slave: SlaveHandshake) -> None:
        """Answer by the writer: a handshake that repeats one without answer, such as at a frozen master, gets none."""
        self._last_read_ms = self._now_ms()
        is_repeated = self._end.owes_handshake
        self._end.on_handshake(slave)
        if self._end.link not in self._in_sync.links:
            self._in_sync.links.append(self._end.link)
        if not is_repeated:
            self._host.start_soon(self._answer_handshake, name="WriteSocketService")

    async def _answer_handshake(self) -> None:
        if self._is_open():
            self.channel.send(encode_master_handshake(self._end.handshake(self._store.max_commit_log_offset)))

    def _on_report(self, offset: int) -> None:
        is_first = not self._end.is_transferring
        self.slave_ack_offset = offset
        end = self._store.max_commit_log_offset
        try:
            members = self._end.on_ack(SlaveAck(offset), max_offset=end, now_ms=self._now_ms())
        except NoEpochError as error:
            self._host.log.warning("an acknowledgement is not understood", error=str(error))
            members = None
        self._on_acknowledged()
        if is_first:
            self.state = HAConnectionState.TRANSFER
            self._next_transfer_from_where = self._start(offset, end)
            self._believe()
            self._host.start_soon(self._write_socket_service, name="WriteSocketService")
        if members is not None:
            self._report(members)

    def _start(self, offset: int, end: int) -> int:
        """Where the transfer starts: an empty log begins with the first file, or with the last if it wants that."""
        if offset == 0 and not self._end.sync_from_last_file:
            return self._store.min_commit_log_offset
        return start_position(offset, max_phy_offset=end, mapped_file_size=self._config.commit_log_file_bytes)

    def _send_heartbeat_if_needed(self) -> None:
        """Without an epoch whose label it can bear the writer ends, and with it the connection."""
        if self._now_ms() - self._last_write_ms <= self._config.ha_send_heartbeat_interval:
            return
        self._host.begin_cause("HAConnection heartbeat")
        try:
            self._send(self._end.heartbeat(self._in_sync.confirm_offset(self._store.max_commit_log_offset)))
        except NoEpochError as error:
            self.shutdown(str(error))

    async def _start_transfer(self) -> None:
        """Wait for the first message, and find its epoch; without one the transfer begins all the same."""
        while self._is_open() and not self._end.start_transfer(self._next_transfer_from_where):
            self._host.log.error("no epoch holds the offset of a slave", offset=self._next_transfer_from_where)
            self._send_heartbeat_if_needed()
            await self._writing.sleep_ms(_NO_EPOCH_PAUSE_MS)
            if self._store.max_commit_log_offset:
                return

    async def _write_socket_service(self) -> None:
        interval_ms = self._config.ha_send_heartbeat_interval
        await self._start_transfer()
        while self._is_open():
            self._send_heartbeat_if_needed()
            end, now_ms = self._store.max_commit_log_offset, self._now_ms()
            confirmed = self._in_sync.confirm_offset(end)
            batch = self._end.next_batch(max_offset=end, confirm_offset=confirmed, now_ms=now_ms)
            if batch is None:
                await self._wait_for_more(self._last_write_ms + interval_ms + 1 - now_ms)
            elif batch.size:
                self._send(batch)

    def _send(self, batch: LogBatch) -> None:
        """Send whole messages: RocketMQ cuts them anywhere, and the slave waits for the second half."""
        data = None if batch.size <= 0 else self._store.commit_log_data(batch.offset, batch.size)
        if data is not None:
            batch = attrs.evolve(batch, size=data.next_offset - batch.offset)
            self._end.next_offset = data.next_offset
        self.channel.send(encode_batch(self._transfers, batch, () if data is None else data.messages))
        self._transfers += data is not None
        self._next_transfer_from_where = self._end.next_offset
        self._last_write_ms = self._now_ms()
