"""The slave's end of an HA link: connects, reports the end of its log, appends what the master sends."""

from collections.abc import Callable

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.tables.ha.ha_frames import HAConnectionState, encode_report, parse_transfer, refuse_transfer
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig
from nodes.host import Channel, ChannelHandler, ConnectError, Host
from nodes.protocol.command import Command
from nodes.protocol.model import Message
from nodes.threads import WakeUp

CONNECT_TIMEOUT_MS = 5_000
PAUSE_MS = 5_000
"""After a failed attempt to connect, and after a connection that was closed by the master or sent bad frames."""
_SELECT_MS = 1_000
"""How long the thread waits for the master before it looks up."""


class HaClient(ChannelHandler):
    """The thread of a slave that replicates its master's log.

    As in RocketMQ, the first report waits until 5 s have passed since the last one, whichever
    connection that was for, and the master sends nothing before it. After 20 s of silence the thread
    reconnects at once, which the kernel of a frozen master accepts.

    Args:
        on_messages: appends a piece of the master's log.

    Emits:
        HA_STATE of "master".

    Mirrors:
        `org.apache.rocketmq.store.ha.DefaultHAClient`.
    """

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        store: MessageStore,
        on_messages: Callable[[tuple[Message, ...]], None],
    ) -> None:
        self._host = host
        self._config = config
        self._store = store
        self._on_messages = on_messages
        self.state = HAConnectionState.READY
        self._master_address: str | None = None
        self._channel: Channel | None = None
        self._next_ordinal = 0
        self._refused = False
        """Whether the connection has delivered a bad frame."""
        self._reported_offset = 0
        self._last_read_ms = self._last_write_ms = host.clock.now_ms()
        self._running = WakeUp(host)
        self._selector = WakeUp(host)

    def start(self) -> None:
        """Start the thread."""
        self._change_state(HAConnectionState.READY, "")
        self._host.start_soon(self._run, name="HAClient")

    def update_master_address(self, address: str | None) -> None:
        """Set the master of the next connection."""
        self._master_address = address

    @property
    def master_address(self) -> str | None:
        """The master of the next connection."""
        return self._master_address

    def wake_up(self) -> None:
        """End the pause before the next attempt to connect."""
        self._running.wake()

    @property
    def join_ms(self) -> int:
        """How long the caller that ends the thread waits for it.

        It looks up once a second, at once if anything comes; so a link that is silent holds up its end, and one that
        carries messages, or was closed, does not.
        """
        silent_ms = self._now_ms() - self._last_read_ms
        is_deaf = self._channel is not None and not self._channel.closed and silent_ms >= _SELECT_MS
        return _SELECT_MS - silent_ms % _SELECT_MS if is_deaf else 0

    def shutdown(self) -> None:
        """End the thread."""
        self._leave(HAConnectionState.SHUTDOWN)
        self._running.wake()
        self._selector.wake()

    # --- the thread ---------------------------------------------------------------

    async def _run(self) -> None:
        while not self._is_shut_down():
            if self._channel is None:
                if not await self._connect_master():
                    await self._pause()
                continue
            is_good = await self._transfer_from_master(self._channel)
            if self._is_shut_down():
                return
            if not is_good:
                await self._wait_before_close()
                self._leave(HAConnectionState.READY)
                await self._pause()
            elif self._is_silent():
                self._host.begin_cause("HAClient housekeeping")
                self._host.log.warning("no word from the HA master, the connection is closed")
                self._leave(HAConnectionState.READY)

    async def _wait_before_close(self) -> None:
        """Wait between a bad frame and the close of the connection; a plain slave does not."""

    async def _pause(self) -> None:
        if not self._is_shut_down() and not await self._running.sleep_ms(PAUSE_MS):
            self._host.begin_cause("HAClient")

    async def _connect_master(self) -> bool:
        """Connect to the present master; returns whether that worked."""
        address, channel = self._master_address, None
        if address is not None:
            try:
                channel = await self._host.connect(address, self, CONNECT_TIMEOUT_MS)
            except ConnectError as error:
                self._host.log.warning("no HA connection", error=str(error))
        if channel is not None and self._is_shut_down():
            channel.close()
            return False
        self._reported_offset = self._store.max_commit_log_offset
        self._last_read_ms = self._now_ms()
        if channel is not None:
            self._channel = channel
            self._change_state(HAConnectionState.TRANSFER, channel.remote_address)
        return channel is not None

    async def _transfer_from_master(self, channel: Channel) -> bool:
        """Report if it is time, and wait for the next event; returns whether the connection is still usable."""
        interval_ms = self._config.ha_send_heartbeat_interval
        now_ms = self._now_ms()
        if now_ms - self._last_write_ms > interval_ms:
            self._host.begin_cause("HAClient report")
            self._report(channel)
        report_due_ms = self._last_write_ms + interval_ms + 1
        silent_ms = self._last_read_ms + self._config.ha_housekeeping_interval + 1
        if self._is_good(channel):
            await self._selector.sleep_ms(max(0, min(report_due_ms, silent_ms) - now_ms))
        return self._is_good(channel)

    def _is_good(self, channel: Channel) -> bool:
        return not channel.closed and not self._refused

    def _is_silent(self) -> bool:
        return self._now_ms() - self._last_read_ms > self._config.ha_housekeeping_interval

    def _is_shut_down(self) -> bool:
        return self.state is HAConnectionState.SHUTDOWN

    def _report(self, channel: Channel) -> None:
        self._last_write_ms = self._now_ms()
        channel.send(encode_report(self._reported_offset))

    def _leave(self, state: HAConnectionState) -> None:
        """Close the connection, if there is one."""
        address = ""
        if self._channel is not None:
            address = self._channel.remote_address
            self._channel.close()
            self._channel = None
        self._next_ordinal = 0
        self._refused = False
        self._change_state(state, address)

    def _change_state(self, state: HAConnectionState, address: str) -> None:
        self.state = state
        value = {"state": state.value, "max_offset": self._store.max_commit_log_offset}
        self._host.record(Belief(BeliefKind.HA_STATE, "master", value, address))

    def _now_ms(self) -> int:
        return self._host.clock.now_ms()

    # --- what arrives -------------------------------------------------------------

    def on_open(self, channel: Channel) -> None:
        """Never called: a client accepts no connection."""

    def on_command(self, channel: Channel, command: Command) -> None:
        """Handle a piece of the master's log, or a heartbeat."""
        if channel is not self._channel or self._refused:
            return
        transfer = parse_transfer(command)
        end = self._store.max_commit_log_offset
        refusal = refuse_transfer(transfer, expected_ordinal=self._next_ordinal, max_phy_offset=end)
        if transfer is None or refusal is not None:
            self._host.log.warning("the HA connection is closed", reason=refusal)
            self._refused = True
            self._selector.wake()
            return
        self._last_read_ms = self._now_ms()
        if transfer.messages:
            self._next_ordinal += 1
            self._on_messages(transfer.messages)
            self._reported_offset = self._store.max_commit_log_offset
            self._report(channel)

    def on_close(self, channel: Channel) -> None:
        """Note that the master has closed the connection."""
        if channel is self._channel:
            self._selector.wake()
