"""The master's end of an HA link: receives the end of a slave's log, and sends what follows it."""

from collections.abc import Callable

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.tables.ha.ha_frames import HAConnectionState, Transfer, encode_transfer, parse_report, start_position
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig
from nodes.host import Channel, Host
from nodes.protocol.command import Command
from nodes.protocol.model import Message
from nodes.threads import WakeUp
from nodes.units import NS_PER_MS

POLL_PERIOD_MS = 100
"""How often a writer that has sent everything checks for more."""
_UNKNOWN = -1


class HaConnection:
    """A connection that a slave has opened, with its two threads; in TRANSFER from the start.

    The writer checks for new messages at its own 100 ms ticks; ticks without new messages are not emulated.

    Args:
        on_shutdown: called once, when the connection ends.

    Emits:
        HA_STATE of the slave's `ip:port`.

    Mirrors:
        `org.apache.rocketmq.store.ha.DefaultHAConnection`, its `ReadSocketService` and `WriteSocketService`.
    """

    def __init__(
        self,
        host: Host,
        config: BrokerConfig,
        store: MessageStore,
        channel: Channel,
        on_shutdown: Callable[["HaConnection"], None],
    ) -> None:
        self._host = host
        self._config = config
        self._store = store
        self._on_shutdown = on_shutdown
        self.channel = channel
        self.remote_ip = channel.remote_address.rpartition(":")[0]
        self.state = HAConnectionState.TRANSFER
        self.slave_ack_offset = _UNKNOWN
        """Last reported end of the slave's log."""
        self._next_transfer_from_where = _UNKNOWN
        self._transfers = 0
        self._last_read_ms = self._last_write_ms = self._now_ms()
        self._reading = WakeUp(host)
        self._writing = WakeUp(host)
        self._hurry = WakeUp(host)

    def start(self) -> None:
        """Start to receive reports; the writer starts with the first one."""
        self._believe()
        self._host.start_soon(self._read_socket_service, name="ReadSocketService")

    def on_command(self, command: Command) -> None:
        """Handle a report of the slave."""
        offset = parse_report(command)
        if offset is None:
            self.shutdown("not a frame of a slave")
            return
        self._last_read_ms = self._now_ms()
        self.slave_ack_offset = offset
        if self._next_transfer_from_where == _UNKNOWN:
            self._next_transfer_from_where = start_position(
                offset,
                max_phy_offset=self._store.max_commit_log_offset,
                mapped_file_size=self._config.commit_log_file_bytes,
            )
            self._believe()
            self._host.start_soon(self._write_socket_service, name="WriteSocketService")

    def on_stored(self) -> None:
        """Wake the writer: there is more to send."""
        self._writing.wake()

    def transfer_now(self) -> None:
        """Send without waiting for the next tick: a sender waits for the acknowledgement."""
        self._hurry.wake()
        self._writing.wake()

    def shutdown(self, reason: str) -> None:
        """Close the connection and end both threads."""
        if not self._is_open():
            return
        self.state = HAConnectionState.SHUTDOWN
        self._host.log.info("HA connection ended", slave=self.channel.remote_address, reason=reason)
        self._believe()
        self.channel.close()
        self._reading.wake()
        self._writing.wake()
        self._on_shutdown(self)

    async def _read_socket_service(self) -> None:
        interval_ms = self._config.ha_housekeeping_interval
        while self._is_open():
            await self._reading.sleep_ms(max(0, self._last_read_ms + interval_ms + 1 - self._now_ms()))
            if self._now_ms() - self._last_read_ms > interval_ms:
                self._host.begin_cause("HAConnection housekeeping")
                self.shutdown("silence")

    async def _write_socket_service(self) -> None:
        interval_ms = self._config.ha_send_heartbeat_interval
        while self._is_open():
            if self._now_ms() - self._last_write_ms > interval_ms:
                self._host.begin_cause("HAConnection heartbeat")
                self._transfer(())
            data = self._store.commit_log_data(self._next_transfer_from_where, self._config.ha_transfer_batch_size)
            if data is None:
                await self._wait_for_more(self._last_write_ms + interval_ms + 1 - self._now_ms())
            else:
                self._transfer(data.messages)
                self._next_transfer_from_where = data.next_offset

    async def _wait_for_more(self, duration_ms: int) -> None:
        """Wait for the first tick with more to send, for `transfer_now`, or for the end of the given time."""
        now_ns = self._host.clock.monotonic_ns
        period_ns = POLL_PERIOD_MS * NS_PER_MS
        idle_since_ns = now_ns()
        if await self._writing.sleep_ms(duration_ms) and self._is_open():
            waited_ns = now_ns() - idle_since_ns
            await self._hurry.sleep_ms(-waited_ns % period_ns / NS_PER_MS)

    def _transfer(self, messages: tuple[Message, ...]) -> None:
        self.channel.send(encode_transfer(Transfer(self._transfers, self._next_transfer_from_where, messages)))
        self._transfers += bool(messages)
        self._last_write_ms = self._now_ms()

    def _is_open(self) -> bool:
        return self.state is not HAConnectionState.SHUTDOWN

    def _believe(self) -> None:
        value = {
            "state": self.state.value,
            "slave_ack_offset": self.slave_ack_offset,
            "next_transfer_from_where": self._next_transfer_from_where,
        }
        address = self.channel.remote_address
        self._host.record(Belief(BeliefKind.HA_STATE, address, value, address))

    def _now_ms(self) -> int:
        return self._host.clock.now_ms()
