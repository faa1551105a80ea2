"""The remoting port of a proxy: its threads, which part answers each request, and what becomes of errors.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.RemotingProtocolServer`, `MultiProtocolRemotingServer`,
    `org.apache.rocketmq.proxy.remoting.activity.GetTopicRouteActivity`, `AbstractRemotingActivity#processRequest`.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial

from nodes.broker.tables.auth.errors import AuthError
from nodes.config.proxy import ProxyConfig
from nodes.config.request_pools import ProxyPool, remoting_pool
from nodes.config.requests import ProxyRequestConfig
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError
from nodes.protocol.headers import GetRouteInfoRequestHeader
from nodes.protocol.properties import MSG_REGION, TRACE_SWITCH
from nodes.protocol.registry import decode_header
from nodes.proxy.auth_pipelines import RequestPipeline
from nodes.proxy.client_manager import ClientManager
from nodes.proxy.remoting.client_manager import ClientManagerActivity
from nodes.proxy.remoting.consumer_manager import ConsumerManagerActivity
from nodes.proxy.remoting.messages import RemotingMessages
from nodes.proxy.tables.errors import CallError
from nodes.proxy.tables.remoting import response_of, route_through
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.thread_pools import QueueScan, ThreadPools
from nodes.rpc.typed import success

_SCAN_PERIOD_MS = 10_000
_Activity = Callable[[Channel, Command], Awaitable[Command | None]]


class RemotingProtocolServer:
    """Answers RocketMQ 4's clients, to whom the proxy is the nameserver and each broker; each request has a task.

    A pop comes to the part for pulls, which cannot read it, and acknowledgements to one that does not know them, as in
    5.3.3: so clients cannot pop here.
    """

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        pipeline: RequestPipeline,
        routes: TopicRouteService,
        clients: ClientManager,
        consumers: ConsumerManagerActivity,
        messages: RemotingMessages,
    ) -> None:
        self._config = config
        self._pipeline = pipeline
        self._routes = routes
        ip = config.remoting_access_addr or config.local_serve_addr or host.ip
        self._address = f"{ip}:{config.remoting_listen_port}"
        members = ClientManagerActivity(clients)
        self._activities: dict[RequestCode, _Activity] = {
            RequestCode.SEND_MESSAGE: messages.send,
            RequestCode.SEND_MESSAGE_V2: messages.send,
            RequestCode.SEND_BATCH_MESSAGE: messages.send,
            RequestCode.CONSUMER_SEND_MSG_BACK: messages.send_back,
            RequestCode.END_TRANSACTION: messages.end_transaction,
            RequestCode.RECALL_MESSAGE: messages.recall,
            RequestCode.HEART_BEAT: members.heartbeat,
            RequestCode.UNREGISTER_CLIENT: members.unregister_client,
            RequestCode.CHECK_CLIENT_CONFIG: members.check_client_config,
            RequestCode.PULL_MESSAGE: messages.pull,
            RequestCode.LITE_PULL_MESSAGE: messages.pull,
            RequestCode.POP_MESSAGE: messages.pull,
            RequestCode.UPDATE_CONSUMER_OFFSET: consumers.forward,
            RequestCode.ACK_MESSAGE: consumers.ignore,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: consumers.ignore,
            RequestCode.GET_CONSUMER_CONNECTION_LIST: consumers.consumer_connections,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: consumers.consumer_list,
            RequestCode.GET_MAX_OFFSET: consumers.forward,
            RequestCode.GET_MIN_OFFSET: consumers.forward,
            RequestCode.QUERY_CONSUMER_OFFSET: consumers.forward,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: consumers.forward,
            RequestCode.LOCK_BATCH_MQ: consumers.lock_queues,
            RequestCode.UNLOCK_BATCH_MQ: consumers.lock_queues,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._topic_route,
        }

    def handlers(self) -> Handlers:
        """The handlers of all requests."""
        return {code: InTask(partial(self._process, activity)) for code, activity in self._activities.items()}

    async def _process(self, activity: _Activity, channel: Channel, request: Command) -> None:
        """Answer a request; what an administrator changes through the proxy is recorded at the broker that does it.

        A request that ACL 2.0 refuses gets SYSTEM_ERROR, where brokers answer NO_PERMISSION.
        """
        try:
            await self._pipeline.check_request(channel, request)
            answer = await activity(channel, request)
        except CallError as error:
            answer = request.answer(*response_of(error))
        except (AuthError, ProtocolError) as error:
            answer = request.answer(ResponseCode.SYSTEM_ERROR, str(error))
        if answer is not None and not request.is_oneway:
            fields = {**answer.ext_fields, MSG_REGION: self._config.region_id, TRACE_SWITCH: self._trace_switch}
            channel.send(answer._replace(ext_fields=fields))

    @property
    def _trace_switch(self) -> str:
        return "true" if self._config.trace_on else "false"

    async def _topic_route(self, _channel: Channel, request: Command) -> Command:
        topic = decode_header(GetRouteInfoRequestHeader, request.ext_fields).topic
        return success(request, None, route_through(await self._routes.route(topic), self._address))


class RemotingThreadPools(ThreadPools):
    """Requests that wait for too long are refused, but only every 10 s, so that most are handled before.

    A thread hands a request on to a broker and is free; only one that has to load a route waits for it. A thread also
    waits while a user is asked for, which is left out here.

    Mirrors:
        The executors of `org.apache.rocketmq.proxy.remoting.RemotingProtocolServer`, and `#cleanExpireRequest`.

    Emits:
        BUSY while requests wait for long, or are refused.
    """

    def __init__(self, host: Host, config: ProxyRequestConfig) -> None:
        sizes = config.remoting_pool_sizes().items()
        super().__init__(host, sizes, lambda: config.times, remoting_pool, stream="remoting processingTimes")
        self._limits_ms = config.remoting_wait_limits_ms()
        self._scan = QueueScan(host, self._clean, _SCAN_PERIOD_MS, _SCAN_PERIOD_MS, "RemotingServerScheduler")

    def _on_queued(self) -> None:
        self._scan.watch()

    def _is_busy_until_answered(self, name: StrEnum) -> bool:
        return name is ProxyPool.REMOTING_TOPIC_ROUTE

    def _clean(self) -> bool:
        self._expire_late(self._limits_ms)
        return self._has_waiting()
