"""The HA service of a broker: its port, its links to slaves, its link to the master, and senders that wait."""

from collections.abc import Callable, Iterable, Mapping

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.context import BrokerContext
from nodes.broker.files import append_to_commit_log
from nodes.broker.ha.client import HaClient
from nodes.broker.ha.connection import HaConnection
from nodes.broker.part import Part
from nodes.broker.tables.ha.ha_frames import HAConnectionState
from nodes.broker.tables.ha.ha_in_sync import STATE_CHECK_PERIOD_MS, HaWait, ack_nums_to_wait_for, need_handle_ha
from nodes.host import Channel, ChannelHandler, Host
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message
from nodes.threads import WakeUp
from nodes.units import NS_PER_MS


class HaService(ChannelHandler, Part):
    """A broker's HA service; implements `nodes.host.ChannelHandler` for its HA port.

    Slaves listen, too: every connection is replicated to.

    Args:
        broker: whose log is replicated.
        on_replicated: called with topic and queue id of each message from the master, once it is stored.

    Emits:
        HA_STATE of every link; null when a master has removed its end.

    Mirrors:
        `org.apache.rocketmq.store.ha.DefaultHAService`, `HAConnectionStateNotificationService`.
    """

    def __init__(self, broker: BrokerContext, on_replicated: Callable[[str, int], None]) -> None:
        self._broker = broker
        self._host = broker.host
        self._on_replicated = on_replicated
        self._port = int(broker.ha_address.rpartition(":")[2])
        self._client: HaClient | None = None
        self._connections: dict[Channel, HaConnection] = {}
        self._started_ns = 0
        self._wait: HaWait | None = None
        self._wait_settled = WakeUp(broker.host)
        self._group_transfer = GroupTransferService(broker.host, self._slave_acks)
        self.alive_replicas = broker.config.total_replicas
        """Members of the group as last polled, this one included; `totalReplicas` before the first poll."""

    async def start(self) -> None:
        """Listen; a slave also starts to connect to its master.

        Raises:
            OSError: the HA port is taken.
        """
        broker = self._broker
        self._listen()
        if broker.broker_id != MASTER_ID:
            self._client = HaClient(self._host, broker.config, broker.store, self._append)
            self._client.start()

    def _listen(self) -> None:
        self._started_ns = self._host.clock.monotonic_ns()
        self._host.listen(self._port, self)

    async def stop(self) -> None:
        """Close the port and every link."""
        if self._client is not None:
            self._client.shutdown()
        self._host.close_listener(self._port)
        for connection in list(self._connections.values()):
            connection.shutdown("the HA service stops")

    def update_master_address(self, address: str | None) -> None:
        """Set the master of the next connection; a live link goes on, and a broker without client ignores the call.

        Mirrors:
            `DefaultHAService#updateHaMasterAddress`.
        """
        if self._client is not None:
            self._client.update_master_address(address)

    def wake_up(self) -> None:
        """Let a slave without link connect now instead of after up to 5 s."""
        if self._client is not None:
            self._client.wake_up()

    def on_files_deleted(self) -> None:
        """The oldest files of the log are deleted: only in controller mode is there something to forget then."""

    def on_stored(self) -> None:
        """Wake the links: the log has grown."""
        for connection in self._connections.values():
            connection.on_stored()

    def in_sync_replicas(self, master_put_where: int) -> int:
        """How many brokers have the log up to an offset, this one included; slaves within the allowed lag count.

        Mirrors:
            `DefaultHAService#inSyncReplicasNums`; a slave that has not reported yet lags by the whole log.
        """
        limit = self._broker.config.ha_max_gap_not_in_sync
        return 1 + sum(master_put_where - ack < limit for ack in self._slave_acks())

    def ack_nums_to_wait_for(self, properties: Mapping[str, str]) -> int | None:
        """How many replicas must have a message before its sender is answered, this one included.

        Args:
            properties: of the message.

        Returns:
            None if too few replicas are in sync: the message is refused.
        """
        broker = self._broker
        if not need_handle_ha(broker.config, broker.broker_id, properties):
            return 1
        linked = self.in_sync_replicas(broker.store.max_commit_log_offset)
        return ack_nums_to_wait_for(broker.config, alive=self.alive_replicas, linked=linked)

    @property
    def late_answer(self) -> tuple[ResponseCode, str | None]:
        """What a sender is answered if its message is not on enough replicas in time; it is stored all the same."""
        return ResponseCode.FLUSH_SLAVE_TIMEOUT, None

    @property
    def ack_timeout_ms(self) -> int:
        """How long a sender waits for replicas."""
        return self._broker.config.slave_timeout

    async def wait_for_acks(self, next_offset: int, ack_nums: int) -> bool:
        """Send the log now, and wait until `ack_nums` replicas have it up to an offset; False: not in time.

        Mirrors:
            `CommitLog#handleHA`.
        """
        for connection in self._connections.values():
            connection.transfer_now()
        return await self._group_transfer.wait_for_acks(next_offset, ack_nums, self.ack_timeout_ms)

    @property
    def acks(self) -> tuple[tuple[str, int], ...]:
        """For each link to a slave: its `ip:port`, and the end of the slave's log."""
        return tuple((link.channel.remote_address, link.slave_ack_offset) for link in self._connections.values())

    @property
    def master_address(self) -> str | None:
        """The address that a slave replicates from."""
        return None if self._client is None else self._client.master_address

    @property
    def join_ms(self) -> int:
        """How long it takes to end the link to the master, where there is one."""
        return 0 if self._client is None else self._client.join_ms

    @property
    def is_linked(self) -> bool:
        """Whether a slave has a link to its master."""
        return self._client is not None and self._client.state is HAConnectionState.TRANSFER

    def _slave_acks(self) -> list[int]:
        return [connection.slave_ack_offset for connection in self._connections.values()]

    # --- waiting for a link -------------------------------------------------------

    async def wait_transfer(self, host: str) -> bool:
        """Wait until a link with a host is in TRANSFER.

        A master compares only IP addresses; a slave checks its own client, whichever broker that is connected
        to. The check runs once a second. The wait ends with False after 10 s without a connection, when a
        master loses a connection with that host, and when another wait begins.

        Args:
            host: IP address of the other end.
        """
        self._settle_wait(self._wait, result=False)
        wait = self._wait = HaWait(host, self._host.clock.now_ms())
        settled = self._wait_settled = WakeUp(self._host)
        while wait.result is None:
            await settled.sleep_ms(self._until_next_check_ms())
            if wait.result is None:
                self._check(wait)
        return wait.result

    def _until_next_check_ms(self) -> float:
        """RocketMQ's thread sleeps for one second each time; its ticks count from its start."""
        passed_ms = (self._host.clock.monotonic_ns() - self._started_ns) / NS_PER_MS
        return STATE_CHECK_PERIOD_MS - passed_ms % STATE_CHECK_PERIOD_MS

    def _check(self, wait: HaWait) -> None:
        now_ms = self._host.clock.now_ms()
        if self._client is not None:
            wait.check_client(self._client.state, now_ms)
        else:
            wait.check_connections([connection.remote_ip for connection in self._connections.values()], now_ms)

    def _settle_wait(self, wait: HaWait | None, *, result: bool) -> None:
        if wait is not None and wait.result is None:
            wait.result = result
            self._wait_settled.wake()

    # --- the links ----------------------------------------------------------------

    def on_open(self, channel: Channel) -> None:
        """A slave has connected (`AcceptSocketService`)."""
        connection = self._connection(channel)
        self._connections[channel] = connection
        connection.start()

    def _connection(self, channel: Channel) -> HaConnection:
        broker = self._broker
        return HaConnection(self._host, broker.config, broker.store, channel, self._remove_connection)

    def on_command(self, channel: Channel, command: Command) -> None:
        """Handle a report of a slave."""
        connection = self._connections.get(channel)
        if connection is not None:
            connection.on_command(command)
            self._group_transfer.notify_transfer_some()

    def on_close(self, channel: Channel) -> None:
        """Handle the end of a slave's connection."""
        connection = self._connections.get(channel)
        if connection is not None:
            connection.shutdown("the slave closed it")

    def _remove_connection(self, connection: HaConnection) -> None:
        if self._wait is not None and self._wait.remote_ip == connection.remote_ip:
            self._settle_wait(self._wait, result=False)
        del self._connections[connection.channel]
        self._host.record(Belief(BeliefKind.HA_STATE, connection.channel.remote_address, None))

    def _append(self, messages: tuple[Message, ...]) -> None:
        append_to_commit_log(self._broker.store, messages, self._broker.flush.on_appended)
        self.on_stored()
        for message in messages:
            for topic, queue_id in self._broker.store.queues_of(message):
                self._on_replicated(topic, queue_id)


class GroupTransferService:
    """Lets senders wait until enough replicas have their message.

    RocketMQ's service checks one request after the other; since slaves acknowledge their whole log, each wait ends
    here at the same time as there.

    Args:
        slave_acks: the last reported end of each linked slave's log.

    Mirrors:
        `org.apache.rocketmq.store.ha.GroupTransferService`.
    """

    def __init__(self, host: Host, slave_acks: Callable[[], Iterable[int]]) -> None:
        self._host = host
        self._slave_acks = slave_acks
        self._waiting: dict[WakeUp, None] = {}

    def notify_transfer_some(self) -> None:
        """Wake the senders: a slave has reported the end of its log."""
        for waiter in self._waiting:
            waiter.wake()

    async def wait_for_acks(self, next_offset: int, ack_nums: int, timeout_ms: int) -> bool:
        """Wait until `ack_nums` logs reach an offset, the master's included; False: not within the time-out."""
        now_ns = self._host.clock.monotonic_ns
        deadline_ns = now_ns() + timeout_ms * NS_PER_MS
        waiter = WakeUp(self._host)
        self._waiting[waiter] = None
        try:
            while 1 + sum(ack >= next_offset for ack in self._slave_acks()) < ack_nums:
                left_ns = deadline_ns - now_ns()
                if left_ns <= 0:
                    return False
                await waiter.sleep_ms(left_ns / NS_PER_MS)
        finally:
            del self._waiting[waiter]
        return True
