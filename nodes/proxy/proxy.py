"""A proxy process in cluster mode.

Mirrors:
    `org.apache.rocketmq.proxy.ProxyStartup`, `org.apache.rocketmq.proxy.processor.DefaultMessagingProcessor`.
"""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.config.proxy import ProxyConfig
from nodes.host import Channel, Host
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.command import Command
from nodes.proxy.ack_message_activity import AckMessageActivity
from nodes.proxy.application import UNAVAILABLE, GrpcMessagingApplication, grpc_error
from nodes.proxy.auth_pipelines import RequestPipeline
from nodes.proxy.broker_calls import MQClientAPIFactory
from nodes.proxy.call_pools import CallPools
from nodes.proxy.client_activity import ClientActivity
from nodes.proxy.client_manager import ClientManager
from nodes.proxy.consumer_processor import ConsumerProcessor
from nodes.proxy.grpc_channels import GrpcChannelManager
from nodes.proxy.heartbeat_syncer import HeartbeatSyncer, StartError
from nodes.proxy.metadata_service import MetadataService
from nodes.proxy.producer_processor import ProducerProcessor
from nodes.proxy.receipt_handle_manager import ReceiptHandleManager
from nodes.proxy.receive_message_activity import ReceiveMessageActivity
from nodes.proxy.remoting.consumer_manager import ConsumerManagerActivity
from nodes.proxy.remoting.forwarder import RequestForwarder
from nodes.proxy.remoting.messages import RemotingMessages
from nodes.proxy.remoting.server import RemotingProtocolServer, RemotingThreadPools
from nodes.proxy.remoting_channels import RemotingChannelManager
from nodes.proxy.route_activity import RouteActivity
from nodes.proxy.send_message_activity import SendMessageActivity
from nodes.proxy.tables.settings import ClientSettings
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.proxy.transaction_service import TransactionService
from nodes.rpc.server import RpcServer

_MS_PER_S = 1_000


class Proxy:
    """Serves clients of RocketMQ 5, and those of RocketMQ 4 on a port of its own; all that it knows is in memory.

    A proxy that cannot create the topic of its heartbeats ends at once: no nameserver knows its cluster.

    Args:
        config: its options.
        nameservers: addresses of all nameservers.
        credentials: with which it signs its requests to nameservers and brokers; None: it does not.

    Emits:
        DENIED, ROUTE, TOPIC_TYPE, GROUP_CONFIG, PROXY_MEMBERS, CLIENT_SETTINGS, and what its consumer of heartbeats
        emits.
    """

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        nameservers: tuple[str, ...],
        credentials: SessionCredentials | None = None,
    ) -> None:
        self._host = host
        self._config = config
        self._stopping = trio.Event()
        self._server = RpcServer(host, refusal=self._refusal)
        sign = None if credentials is None else credentials.sign
        self._remoting = RpcServer(
            host,
            on_channel_closed=self._on_remoting_closed,
            executors=RemotingThreadPools(host, config) if config.processing_times else None,
        )
        self._operations = MQClientAPIFactory(host, "OperationClient", nameservers, 1, sign=sign)
        self._messaging = MQClientAPIFactory(
            host, "ClusterMQClient", nameservers, config.rocketmq_m_q_client_num, sign=sign
        )
        routes = self._routes = TopicRouteService(host, config, self._operations)
        metadata = MetadataService(host, config, routes, self._operations)
        consumers = ConsumerProcessor(host, routes, self._messaging)
        self._handles = ReceiptHandleManager(host, config, metadata, consumers)
        channels = GrpcChannelManager(self._server.calls, host.log.warning)
        remoting = RemotingChannelManager(self._remoting.calls)
        settings = ClientSettings(config)
        self._clients = ClientManager(
            host, config, channels, remoting, settings, self._handles.on_left, self._on_group_unregister
        )
        registered = self._clients.producers
        self._transactions = TransactionService(
            host, config, routes, registered, channels, remoting, self._messaging, nameservers, sign
        )
        self._syncer = HeartbeatSyncer(host, config, routes, self._operations, self._clients, nameservers, credentials)
        producers = ProducerProcessor(host, config, routes, metadata, self._messaging, self._transactions)
        clients = ClientActivity(host, self._clients, metadata, self._transactions)
        pipeline = RequestPipeline(host, config, metadata)
        application = GrpcMessagingApplication(
            host,
            pipeline,
            CallPools(host, config),
            RouteActivity(config, routes, metadata),
            clients,
            SendMessageActivity(host, config, routes, producers, self._transactions),
            ReceiveMessageActivity(host, config, routes, clients, channels, consumers, self._handles),
            AckMessageActivity(config, channels, consumers, self._handles),
        )
        self._server.serve(application.handlers())
        forwarder = RequestForwarder(routes, self._messaging)
        protocol_server = RemotingProtocolServer(
            host,
            config,
            pipeline,
            routes,
            self._clients,
            ConsumerManagerActivity(self._clients, forwarder),
            RemotingMessages(host, self._clients, producers, self._transactions, forwarder),
        )
        self._remoting.serve(protocol_server.handlers())
        if config.enable_remoting_local_proxy_grpc:
            self._remoting.serve(application.handlers())

    async def main(self) -> None:
        """Start in RocketMQ's order, serve, shut down."""
        try:
            self._routes.start()
            self._clients.start()
            self._transactions.start()
            await self._syncer.start()
        except StartError as error:
            self._host.record(Lifecycle.start_failed(error))
            return
        self._handles.start(self._clients)
        self._host.listen(self._config.grpc_server_port, self._server)
        self._host.listen(self._config.remoting_listen_port, self._remoting)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    async def _shutdown(self) -> None:
        """Close the remoting port with its connections, refuse calls, and wait for streams, and for transactions."""
        self._host.record(Lifecycle(LifecycleEvent.STOPPING))
        self._host.close_listener(self._config.remoting_listen_port)
        self._remoting.shutdown()
        self._host.close_listener(self._config.grpc_server_port)
        for _ in range(self._config.grpc_shutdown_time_seconds):
            if not self._clients.channels.has_stream():
                break
            await self._host.sleep_ms(_MS_PER_S)
        self._server.shutdown()
        await self._handles.shutdown()
        await self._syncer.shutdown()
        await self._transactions.shutdown()
        self._routes.shutdown()
        self._messaging.close()
        self._operations.close()

    def _refusal(self, _channel: Channel, request: Command) -> Command | None:
        if not self._stopping.is_set():
            return None
        return grpc_error(request, UNAVAILABLE, "the server ends")

    def _on_remoting_closed(self, channel: Channel) -> None:
        self._clients.on_connection_closed(channel)

    def _on_group_unregister(self, group: str) -> None:
        self._transactions.remove_subscription(group)
