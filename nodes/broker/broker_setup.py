"""What an operator sets up a broker with, and its tables before its first start."""

from collections.abc import Callable, Mapping

import attrs

from nodes.broker.context import BrokerContext, VersionedTable
from nodes.broker.files import CONSUME_QUEUE_FILE, TIMER_LOG_FILE
from nodes.broker.registration.nameserver_list import nameservers_of
from nodes.broker.tables.auth.auth_tables import AuthTables, auth_tables
from nodes.broker.tables.clients.client_tables import ClientTables, client_tables
from nodes.broker.tables.clients.plain_access import NO_ACCOUNTS, PlainPermissionManager
from nodes.broker.tables.metadata.lmq import LmqSubscriptionGroupManager, LmqTopicConfigManager
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.broker.tables.pop.pop_tables import PopTables, pop_tables
from nodes.broker.tables.store.commit_log import COMMIT_LOG_FILE
from nodes.broker.tables.store.message_store import MessageStore
from nodes.broker.tables.store.multi_dispatch import MultiDispatch
from nodes.broker.tables.store.readable_end import ReadableEnd
from nodes.broker.tables.timer.delay_offsets import DelayOffsets, TimerCheckPoint, TimerProgress
from nodes.broker.tables.timer.timer_store import TimerStore
from nodes.broker.tables.timer.timer_tables import TimerTables
from nodes.config import BrokerConfig
from nodes.config.accounts import PlainAccessConfig
from nodes.config.auth import AuthConfig
from nodes.host import Host
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MASTER_ID, DataVersion, SubscriptionGroupConfig, TopicConfig
from nodes.values import frozen

NO_PEERS: Mapping[str, str] = {}


@frozen
class BrokerSetup:
    """The identity of a broker, and what it knows before its first start."""

    cluster_name: str
    broker_name: str
    broker_id: int
    nameservers: tuple[str, ...]
    topics: tuple[TopicConfig, ...] = ()
    """Served from the first start on; later starts read them from the broker's files."""
    orderly_groups: tuple[str, ...] = ()
    """Groups that consume in order from the first start on (`consumeMessageOrderly`)."""
    single_active_groups: tuple[str, ...] = ()
    """Groups of whose consumers only one gets the messages of a queue; RocketMQ has none."""
    request_modes: tuple[SetMessageRequestModeRequestBody, ...] = ()
    """Whether groups pull or pop, as an operator has set it before the first start."""
    controllers: tuple[str, ...] = ()
    """Addresses, for a broker in controller mode."""
    dledger_peers: Mapping[str, str] = NO_PEERS
    """Member, such as `n0` -> `ip:port` of the broker, for a broker with a DLedger log."""
    access: PlainPermissionManager = NO_ACCOUNTS
    """Which account has which permissions by ACL 1.0."""
    accounts: tuple[PlainAccessConfig, ...] = ()
    """Those that options of ACL 2.0 name, and that may become users."""

    def account(self, access_key: str) -> PlainAccessConfig:
        """The account of an access key.

        Raises:
            KeyError: there is none.
        """
        return {account.access_key: account for account in self.accounts}[access_key]

    def tables(self, host: Host, config: BrokerConfig, *, in_container: bool = False) -> "BrokerTables":
        """All tables of a process that starts now, as configured; brokers of a container have no ACL 2.0."""
        if in_container:
            config = attrs.evolve(config, **attrs.asdict(AuthConfig(), recurse=False))
        core, now_ms = self._context(host, config), host.clock.now_ms()
        clients = client_tables(config, single_active_groups=self.single_active_groups, now_ms=now_ms)
        for request_mode in self.request_modes:
            clients.request_modes.set_mode(request_mode)
        auth = auth_tables(config, self.cluster_name)
        tables = BrokerTables(core, clients, pop_tables(config, now_ms=now_ms), _timer_tables(core), auth)
        core.versions.follow(tables.versions())
        return tables

    def _nameservers(self, host: Host, config: BrokerConfig) -> tuple[str, ...]:
        """The nameservers that it knows at its start."""
        if config.namesrv_addr:
            return nameservers_of(host, config)
        return () if config.fetch_namesrv_addr_by_address_server else self.nameservers

    def _context(self, host: Host, config: BrokerConfig) -> BrokerContext:
        now_ms = host.clock.now_ms()
        context = BrokerContext(
            host,
            config,
            self.cluster_name,
            self.broker_name,
            self.broker_id + 1 if config.enable_d_leger_commit_log else self.broker_id,
            self._nameservers(host, config),
            (LmqTopicConfigManager if config.enable_lmq else TopicConfigManager)(
                now_ms=now_ms,
                cluster=self.cluster_name,
                broker_name=self.broker_name,
                auto_create_topic_enable=config.auto_create_topic_enable,
                default_topic_queue_nums=config.default_topic_queue_nums,
                enable_split_registration=config.enable_split_registration,
                trace_topic=config.msg_trace_topic_name if config.trace_topic_enable else None,
                limits=config,
            ),
            (LmqSubscriptionGroupManager if config.enable_lmq else SubscriptionGroupManager)(
                now_ms=now_ms,
                auto_create_subscription_group=config.auto_create_subscription_group,
                max_groups=config.max_groups,
            ),
            MessageStore(
                f"{config.broker_ip1 or host.ip}:{config.listen_port}",
                host.disk.map_files(COMMIT_LOG_FILE),
                config.commit_log_file_bytes,
                # Only with elections a log may have an end that no one may read yet.
                ReadableEnd(host.disk.map(CONSUME_QUEUE_FILE)) if config.is_elected else None,
                MultiDispatch(enable_lmq=config.enable_lmq, enable_multi_dispatch=config.enable_multi_dispatch)
                if config.enable_lmq or config.enable_multi_dispatch
                else None,
            ),
        )
        for topic in self.topics:
            context.topics.update_topic_config(topic, now_ms=now_ms)
        for group in self.orderly_groups:
            orderly = SubscriptionGroupConfig(group, consume_message_orderly=True)
            context.groups.update_subscription_group_config(orderly, now_ms=now_ms)
        return context


@frozen(eq=False)
class BrokerTables:
    """What all parts of a broker share, and the tables of each family of parts.

    Only what makes the parts takes all of them; a part takes the core and the tables that it uses.
    """

    core: BrokerContext
    clients: ClientTables
    pop: PopTables
    timer: TimerTables
    auth: AuthTables

    def versions(self) -> Mapping[VersionedTable, Callable[[], DataVersion | None]]:
        """The versions of the tables that other brokers copy."""
        core, offsets, timer = self.core, self.clients.offsets, self.timer
        return {
            VersionedTable.TOPICS: lambda: core.topics.data_version,
            VersionedTable.CONSUMER_OFFSETS: lambda: offsets.data_version,
            VersionedTable.SUBSCRIPTION_GROUPS: lambda: core.groups.data_version,
            VersionedTable.DELAY_OFFSETS: lambda: timer.delay_offsets.data_version,
            VersionedTable.TIMER_CHECK_POINT: lambda: timer.version,
        }


def _timer_tables(broker: BrokerContext) -> TimerTables:
    host, config, now_ms = broker.host, broker.config, broker.host.clock.now_ms()
    delay_offsets = DelayOffsets(
        now_ms=now_ms, delay_offset_update_version_step=config.delay_offset_update_version_step
    )
    if not config.timer_wheel_enable:
        return TimerTables(delay_offsets, None)
    wheel = TimerStore(
        broker.store,
        TimerProgress(TimerCheckPoint(data_version=DataVersion(timestamp=now_ms))),
        lambda: broker.config,
        host.disk.map(TIMER_LOG_FILE),
        lambda: broker.broker_id == MASTER_ID,
        now_ms=now_ms,
    )
    return TimerTables(delay_offsets, wheel)
