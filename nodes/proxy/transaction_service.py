"""Transactions of the clients of a proxy: where their half messages are, and heartbeats so that brokers send checks.

Mirrors:
    `org.apache.rocketmq.proxy.service.transaction.ClusterTransactionService`,
    `org.apache.rocketmq.proxy.service.client.ProxyClientRemotingProcessor`,
    `org.apache.rocketmq.proxy.processor.TransactionProcessor`.
"""

from collections.abc import Hashable

from nodes.broker.tables.clients.producers import ProducerManager
from nodes.config.proxy import ProxyConfig
from nodes.host import Channel, Host
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers import EndTransactionRequestHeader
from nodes.protocol.headers_message import CheckTransactionStateRequestHeader
from nodes.protocol.model import MASTER_ID, BrokerData, HeartbeatData, Message, ProducerData
from nodes.protocol.properties import PRODUCER_GROUP
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.protocol.v2.enums import Code, TransactionResolution
from nodes.protocol.v2.service import RecoverOrphanedTransactionCommand, TelemetryCommand
from nodes.proxy.broker_calls import MQClientAPIFactory
from nodes.proxy.grpc_channels import GrpcChannelManager, GrpcClientChannel
from nodes.proxy.remoting_channels import RemotingChannel, RemotingChannelManager
from nodes.proxy.tables.converter import build_message
from nodes.proxy.tables.errors import CallError, ProxyExceptionError
from nodes.proxy.tables.transactions import TransactionData, TransactionDataManager
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.rpc.client import Sign
from nodes.threads import ScheduledThread

TRANS_HEARTBEAT_CLIENT_ID = "rmq-proxy-producer-client"
"""The same for all proxies, which brokers distinguish by their connections."""
_MS_PER_S = 1_000
_ENDS = {
    TransactionResolution.COMMIT: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
    TransactionResolution.ROLLBACK: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
}


class TransactionService:
    """Sends heartbeats for the producers of transactional topics, and passes checks on to one of them.

    Args:
        nameservers: of its own remoting client, over which brokers send their checks.
        producers: the producers of this proxy.
        messaging: sends the ends of transactions.
        sign: signs what its own client sends; None: it is not signed.
    """

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        routes: TopicRouteService,
        producers: ProducerManager,
        channels: GrpcChannelManager,
        remoting: RemotingChannelManager,
        messaging: MQClientAPIFactory,
        nameservers: tuple[str, ...],
        sign: Sign | None,
    ) -> None:
        self._host = host
        self._config = config
        self._routes = routes
        self._producers = producers
        self._channels = channels
        self._remoting = remoting
        self._messaging = messaging
        self._client = MQClientAPIFactory(host, "ClusterTransaction", nameservers, 1, self._on_request, sign=sign)
        self._data = TransactionDataManager(config.transaction_data_max_num)
        self._clusters: dict[str, dict[str, None]] = {}
        """Producer group -> clusters of its topic."""
        self._broker_names: dict[str, str] = {}
        """Address -> name of the brokers of the last heartbeats."""
        self._heartbeats = ScheduledThread(host, "TxHeartbeatServiceThread")
        self._cleaner = ScheduledThread(host, "TransactionDataCleaner")

    def start(self) -> None:
        """Start heartbeats and the scan for data that is too old."""
        period_ms = self._config.transaction_heartbeat_period_second * _MS_PER_S
        self._heartbeats.with_fixed_delay("scanProducerHeartBeat", self._scan, period_ms, period_ms)
        scan_ms = self._config.transaction_data_expire_scan_period_millis
        self._cleaner.with_fixed_delay("cleanExpireTransactionData", self._clean, scan_ms, scan_ms)
        self._heartbeats.start()
        self._cleaner.start()

    async def shutdown(self) -> None:
        """Wait until the transactions that are known have ended, or are too old."""
        self._heartbeats.stop()
        now_ms = self._host.clock.now_ms()
        self._data.clean_expired(now_ms)
        left_ms = min(self._data.latest_expire_time_ms - now_ms, self._config.transaction_data_max_wait_clear_millis)
        if left_ms > 0:
            await self._host.sleep_ms(left_ms)
        self._client.close()

    # --- subscriptions and heartbeats -----------------------------------------------

    async def add_subscription(self, group: str, topic: str) -> None:
        """Send heartbeats for a group to the clusters of its topic from now on."""
        try:
            route = await self._routes.route(topic)
        except CallError as error:
            self._host.log.warning("no heartbeats for transactions", group=group, error=str(error))
            return
        clusters = self._clusters.setdefault(group, {})
        clusters.update(dict.fromkeys(data.cluster for data in route.broker_datas))

    def remove_subscription(self, group: str) -> None:
        """Send no more heartbeats for a group."""
        self._clusters.pop(group, None)

    async def _scan(self) -> None:
        groups_of: dict[str, list[ProducerData]] = {}
        for group, clusters in list(self._clusters.items()):
            if not clusters or not self._producers.group_online(group):
                del self._clusters[group]
                continue
            for cluster in clusters:
                groups_of.setdefault(cluster, []).append(ProducerData(group))
        if not groups_of:
            return
        names: dict[str, str] = {}
        batch = self._config.transaction_heartbeat_batch_num
        for cluster, groups in groups_of.items():
            for first in range(0, len(groups), batch):
                data = HeartbeatData(TRANS_HEARTBEAT_CLIENT_ID, tuple(groups[first : first + batch]))
                await self._heartbeat(cluster, data, names)
        self._broker_names = names

    async def _heartbeat(self, cluster: str, data: HeartbeatData, names: dict[str, str]) -> None:
        try:
            route = await self._routes.route(cluster)
            for broker in route.broker_datas:
                address = self._select_address(broker)
                names[address] = broker.broker_name
                self._client.oneway(address, RequestCode.HEART_BEAT, None, data)
        except CallError as error:
            self._host.log.warning("no heartbeat for transactions", cluster=cluster, error=str(error))

    def _select_address(self, broker: BrokerData) -> str:
        address = broker.broker_addrs.get(MASTER_ID)
        if address is not None:
            return address
        members = sorted(broker.broker_addrs)
        return broker.broker_addrs[members[self._host.rng("transaction heartbeats").randrange(len(members))]]

    # --- data ------------------------------------------------------------------------

    def add(
        self,
        group: str,
        broker_name: str,
        topic: str,
        tran_state_table_offset: int,
        commit_log_offset: int,
        transaction_id: str,
    ) -> TransactionData:
        """Remember where the half message of a transaction is."""
        data = TransactionData(
            broker_name,
            topic,
            tran_state_table_offset,
            commit_log_offset,
            transaction_id,
            self._host.clock.now_ms(),
            self._config.transaction_data_expire_millis,
        )
        self._data.add(group, data)
        return data

    async def _clean(self) -> None:
        self._data.clean_expired(self._host.clock.now_ms())

    async def end(
        self,
        group: str,
        topic: str,
        message_id: str | None,
        transaction_id: str,
        resolution: TransactionResolution,
        *,
        from_transaction_check: bool,
    ) -> None:
        """Send a broker the end of a transaction, oneway: nothing reports whether it arrives.

        Args:
            group: of the producer; of one of RocketMQ 5 the name of the topic.

        Raises:
            CallError: this proxy does not know the transaction, or not any more, or not its broker.
        """
        data = self._data.poll(group, transaction_id, self._host.clock.now_ms())
        if data is None:
            raise ProxyExceptionError(Code.INTERNAL_SERVER_ERROR, "cannot found transaction data")
        try:
            address = await self._routes.master_address(data.broker_name)
        except CallError as error:
            raise ProxyExceptionError(Code.BAD_REQUEST, f"cannot find broker {data.broker_name}") from error
        header = EndTransactionRequestHeader(
            group,
            data.tran_state_table_offset,
            data.commit_log_offset,
            _ENDS.get(resolution, MessageSysFlag.TRANSACTION_NOT_TYPE),
            from_transaction_check=from_transaction_check,
            msg_id=message_id,
            transaction_id=transaction_id,
            topic=topic,
        )
        self._messaging.oneway(address, RequestCode.END_TRANSACTION, header)

    # --- checks ----------------------------------------------------------------------

    def _on_request(self, channel: Channel, request: Command) -> None:
        """Handle a check of a broker; other requests are ignored."""
        if request.code != RequestCode.CHECK_TRANSACTION_STATE:
            return
        (message,) = decode_body(PullMessageResponseBody, request.body).messages
        group = message.properties.get(PRODUCER_GROUP)
        if group is None:
            return
        producer = self._producers.available_channel(group, _is_reachable)
        if producer is None:
            self._host.log.warning("no producer for the check of a transaction", group=group)
            return
        self._check(producer, group, channel.remote_address, request, message)

    def _check(
        self,
        producer: Hashable,
        group: str,
        broker_address: str,
        request: Command,
        message: Message,
    ) -> None:
        header = decode_header(CheckTransactionStateRequestHeader, request.ext_fields)
        broker_name = self._broker_names.get(broker_address)
        if broker_name is None or header.transaction_id is None:
            return
        offsets = header.tran_state_table_offset, header.commit_log_offset
        self.add(group, broker_name, message.topic, *offsets, header.transaction_id)
        if isinstance(producer, RemotingChannel):
            named = CheckTransactionStateRequestHeader(*offsets, message.topic, header.msg_id, header.transaction_id)
            self._remoting.check_transaction(producer, named, request.body)
        elif isinstance(producer, GrpcClientChannel):
            command = RecoverOrphanedTransactionCommand(
                build_message(message, self._host.clock.now_ms()), header.transaction_id
            )
            self._channels.write_command(producer, TelemetryCommand(recover_orphaned_transaction_command=command))


def _is_reachable(channel: Hashable) -> bool:
    return isinstance(channel, GrpcClientChannel | RemotingChannel) and channel.is_active
