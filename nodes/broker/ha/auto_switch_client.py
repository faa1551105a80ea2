"""The slave's end of an HA link in controller mode: it compares epochs with the master, cuts its log, and appends."""

from collections.abc import Callable

from nodes.broker.ha.client import HaClient
from nodes.broker.tables.ha.auto_switch_frames import encode_slave_handshake, parse_batch, parse_master_handshake
from nodes.broker.tables.ha.auto_switch_link import (
    MasterHandshake,
    NegativeBatchError,
    RefusedFrameError,
    SlaveEnd,
    SlaveHandshake,
)
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.ha_frames import HAConnectionState
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig
from nodes.host import Channel, Host
from nodes.protocol.command import Command
from nodes.protocol.model import Message


class AutoSwitchHaClient(HaClient):
    """The thread of a slave that replicates its master's log.

    Args:
        broker_id: which replica this is.
        epochs: of this broker.
        on_messages: appends a piece of the master's log.
        truncate: cuts the log at an offset.
        on_epochs_changed: called when the epochs have changed, or the log was cut.
        on_confirmed: called with each confirm offset that the master says, once the piece is appended.

    Mirrors:
        `org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAClient`.
    """

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        store: MessageStore,
        broker_id: int,
        epochs: EpochFile,
        on_messages: Callable[[tuple[Message, ...]], None],
        truncate: Callable[[int], None],
        on_epochs_changed: Callable[[], None],
        on_confirmed: Callable[[int], None],
    ) -> None:
        super().__init__(host, config, store, on_messages)
        self._said = SlaveHandshake(
            broker_id, sync_from_last_file=config.sync_from_last_file, async_learner=config.async_learner
        )
        self._epochs = epochs
        self._truncate = truncate
        self._on_epochs_changed = on_epochs_changed
        self._on_confirmed = on_confirmed
        self._end = SlaveEnd(epochs, store.max_commit_log_offset)
        self._is_blocked = False
        """Whether the connection has delivered a batch that is never understood: what follows it is not read."""
        self._wait_before_close_ms = 0

    def update_master_address(self, address: str | None) -> None:
        """Set the master of the next connection, and connect now if there is none."""
        is_new = address is not None and address != self.master_address
        super().update_master_address(address)
        if is_new:
            self.wake_up()

    async def _connect_master(self) -> bool:
        """Connect, and say who this is."""
        self._is_blocked = False
        self._end = SlaveEnd(self._epochs, self._store.max_commit_log_offset)
        is_connected = await super()._connect_master()
        if is_connected and self._channel is not None:
            self._change_state(HAConnectionState.HANDSHAKE, self._channel.remote_address)
            self._shake_hands(self._channel)
        return is_connected

    async def _wait_before_close(self) -> None:
        """As long as the refusal says; a wake-up before or meanwhile ends this wait, so that the pause is whole."""
        wait_ms, self._wait_before_close_ms = self._wait_before_close_ms, 0
        if wait_ms and not self._is_shut_down():
            await self._running.sleep_ms(wait_ms)

    def _shake_hands(self, channel: Channel) -> None:
        self._last_write_ms = self._now_ms()
        channel.send(encode_slave_handshake(self._said))

    def _report(self, channel: Channel) -> None:
        """Report the end of the log; as long as the master has not answered, say again who this is."""
        if self._end.is_transferring:
            super()._report(channel)
        else:
            self._shake_hands(channel)

    def _is_silent(self) -> bool:
        """Nothing limits a handshake: a frozen master accepts connections and never answers."""
        return self._end.is_transferring and super()._is_silent()

    async def _transfer_from_master(self, channel: Channel) -> bool:
        """As a plain slave does; in the handshake there is no silence to wait for."""
        if not self._end.is_transferring:
            self._last_read_ms = self._now_ms()
        return await super()._transfer_from_master(channel)

    def on_command(self, channel: Channel, command: Command) -> None:
        """Handle the master's epochs, a piece of its log, or a heartbeat."""
        if channel is not self._channel or self._refused:
            return
        self._last_read_ms = self._now_ms()
        if self._is_blocked:
            return
        try:
            answer = parse_master_handshake(command)
            if answer is None:
                self._on_batch(channel, command)
            else:
                self._on_epochs(channel, answer)
        except RefusedFrameError as refusal:
            self._host.log.warning("the HA connection is closed", reason=str(refusal))
            self._refused = True
            self._wait_before_close_ms = refusal.wait_ms
            self._selector.wake()
        except NegativeBatchError as error:
            self._host.log.warning("nothing more of this HA connection is understood", reason=str(error))
            self._is_blocked = True

    def _on_epochs(self, channel: Channel, master_handshake: MasterHandshake) -> None:
        point = self._end.on_handshake(master_handshake, self._store.max_commit_log_offset)
        if point is not None and point < self._store.max_commit_log_offset:
            self._truncate(point)
        self._on_epochs_changed()
        self._reported_offset = self._store.max_commit_log_offset
        self._change_state(HAConnectionState.TRANSFER, channel.remote_address)
        if self._end.due_report(self._reported_offset) is not None:
            self._report(channel)
        self._selector.wake()

    def _on_batch(self, channel: Channel, command: Command) -> None:
        found = parse_batch(command)
        if found is None:
            raise RefusedFrameError("not a frame of a master")
        batch, messages = found
        if command.opaque != self._next_ordinal:
            raise RefusedFrameError("the network lost a piece")
        before = self._epochs.last_epoch
        due = self._end.on_batch(batch, self._store.max_commit_log_offset)
        if self._epochs.last_epoch != before:
            self._on_epochs_changed()
        if messages:
            self._next_ordinal += 1
            self._on_messages(messages)
        self._on_confirmed(self._end.confirm_offset)
        self._reported_offset = self._store.max_commit_log_offset
        if due is not None:
            self._report(channel)
