"""The HA service of a broker in controller mode: master or slave as the last verdict says, with epochs."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from nodes.beliefs import MessageEvent, MessageRecord, attempt_key
from nodes.broker.context import BrokerContext
from nodes.broker.ha.auto_switch_client import AutoSwitchHaClient
from nodes.broker.ha.auto_switch_connection import AutoSwitchHaConnection
from nodes.broker.ha.connection import HaConnection
from nodes.broker.ha.service import HaService
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet
from nodes.config import BrokerConfig
from nodes.host import Channel
from nodes.protocol.model import MASTER_ID
from nodes.protocol.properties import WAIT_STORE_MSG_OK

EPOCH_FILE = "epochFileCheckpoint"


class AutoSwitchHaService(HaService):
    """A broker's HA service, whose role changes while it runs.

    Args:
        broker: whose log is replicated.
        on_replicated: called with topic and queue id of each message from the master, once it is stored.

    Mirrors:
        `org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAService`.
    """

    _client_class = AutoSwitchHaClient

    def __init__(self, broker: BrokerContext, on_replicated: Callable[[str, int], None]) -> None:
        super().__init__(broker, on_replicated)
        content = broker.host.disk.read(EPOCH_FILE)
        self.epochs = EpochFile(None if content is None else content.decode())
        config = broker.config
        self.in_sync = MasterSyncStateSet(
            self.epochs,
            all_ack_in_sync_state_set=config.all_ack_in_sync_state_set,
            ha_max_time_slave_not_catchup_ms=config.ha_max_time_slave_not_catchup,
        )
        self.report: Callable[[Sequence[int]], None] = lambda _: None
        """Reports the controller another SyncStateSet."""
        broker.store.confirm_offset = lambda: self.confirm_offset

    async def start(self) -> None:
        """Listen; only a verdict makes this broker a slave."""
        self._listen()

    # Readers

    @property
    def confirm_offset(self) -> int:
        """Up to where the log may be read."""
        broker = self._broker
        serves = broker.broker_id == MASTER_ID and not broker.is_fenced
        return self.in_sync.confirm_offset(broker.store.max_commit_log_offset, serves=serves)

    def reput(self) -> None:
        """Let be read what is confirmed by now; RocketMQ's thread looks once a millisecond."""
        for topic, queue_id in self._broker.store.reput():
            self._on_replicated(topic, queue_id)

    # Roles

    def set_sync_state_set(self, members: Iterable[int]) -> None:
        """Adopt a set that the controller confirmed."""
        self.in_sync.set_sync_state_set(members, self._broker.store.max_commit_log_offset)
        self.reput()

    def change_to_master(self, epoch: int) -> None:
        """Close all links and begin an epoch; one that is smaller than the last of the file is refused."""
        end = self._broker.store.max_commit_log_offset
        if epoch < self.epochs.last_epoch:
            self._refuse(epoch)
            return
        self._close_links("this broker becomes master")
        if self._client is not None:
            self._client.shutdown()
            self._client = None
        self.in_sync.change_to_master(epoch, end)
        self.reput()
        self._persist_epochs()

    def stay_master(self, epoch: int) -> None:
        """Begin an epoch; links go on, and never learn of it."""
        if self.in_sync.stay_master(epoch, self._broker.store.max_commit_log_offset):
            self._persist_epochs()
        else:
            self._refuse(epoch)

    def change_to_slave(self, epoch: int, broker_id: int) -> None:
        """Close all links; the address to connect to comes with an answer to a registration."""
        if not self.in_sync.follow(epoch):
            self._refuse(epoch)
            return
        self._close_links("this broker becomes a slave")
        if self._client is not None:
            self._client.shutdown()
        host, config, store = self._host, self._broker.config, self._broker.store
        client = self._client_class(
            host,
            config,
            store,
            broker_id,
            self.epochs,
            self._append,
            self._truncate,
            self._persist_epochs,
            self._follow,
        )
        self._client = client
        client.start()

    def stay_slave(self, epoch: int) -> None:
        """Take part in an epoch; the link goes on."""
        if not self.in_sync.follow(epoch):
            self._refuse(epoch)

    def on_files_deleted(self) -> None:
        """Forget the epochs whose messages are deleted.

        Mirrors:
            `AutoSwitchHAService#truncateEpochFilePrefix`; an epoch that ends where the log begins stays.
        """
        self.epochs.truncate_up_to(self._broker.store.min_commit_log_offset - 1)
        self._persist_epochs()

    def _follow(self, confirm_offset: int) -> None:
        self.in_sync.follow_confirm_offset(confirm_offset)
        self.reput()

    def _truncate(self, offset: int) -> None:
        name = self._broker.broker_name
        for message in self._broker.store.truncate(offset):
            ip, _, _ = message.born_host.rpartition(":")
            place = (message.topic, name, message.queue_id, message.queue_offset)
            key = attempt_key(ip, message.born_timestamp)
            self._host.record(MessageRecord(MessageEvent.CUT, "", *place, "", message.store_timestamp, "", key))

    def _refuse(self, epoch: int) -> None:
        self._host.log.warning("an epoch is refused", epoch=epoch, last=self.epochs.last_epoch)

    def _persist_epochs(self) -> None:
        if self.epochs.text is not None:
            self._host.disk.write(EPOCH_FILE, self.epochs.text.encode())

    # What a message needs

    def ack_nums_to_wait_for(self, properties: Mapping[str, str]) -> int | None:
        """How many replicas must have a message before its sender is answered; None: too few are in sync.

        Mirrors:
            `CommitLog#calcNeedAckNums`.
        """
        config = self._broker.config
        if self._broker.broker_id != MASTER_ID or properties.get(WAIT_STORE_MSG_OK) == "false":
            return 1
        if self.in_sync.in_sync_replicas_nums < config.min_in_sync_replicas:
            return None
        return len(self.in_sync.members) if config.all_ack_in_sync_state_set else config.in_sync_replicas

    def _slave_acks(self) -> list[int]:
        """Of all links; if each member of the SyncStateSet must have a message, of the members alone."""
        links = [link.link for link in self._links()]
        if self._broker.config.all_ack_in_sync_state_set:
            links = [link for link in links if link.slave_id in self.in_sync.members]
        return [link.ack_offset for link in links]

    # Links

    @property
    def _link_config(self) -> BrokerConfig:
        """The options of links to slaves."""
        return self._broker.config

    def _connection(self, channel: Channel) -> HaConnection:
        broker = self._broker
        return AutoSwitchHaConnection(
            self._host,
            self._link_config,
            broker.store,
            channel,
            self.epochs,
            self.in_sync,
            self._send,
            self.reput,
            self._remove_connection,
        )

    def _remove_connection(self, connection: HaConnection) -> None:
        super()._remove_connection(connection)
        if isinstance(connection, AutoSwitchHaConnection):
            members = self.in_sync.on_disconnected(connection.link)
            if members is not None:
                self.report(members)

    def _send(self, members: Sequence[int]) -> None:
        self.report(members)

    def _close_links(self, reason: str) -> None:
        for connection in list(self._connections.values()):
            connection.shutdown(reason)

    def _links(self) -> list[AutoSwitchHaConnection]:
        return [link for link in self._connections.values() if isinstance(link, AutoSwitchHaConnection)]
