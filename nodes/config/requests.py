"""The options of thread pools: sizes and queues, how long a request may wait, and how long it takes."""

from collections.abc import Mapping
from functools import partial

import attrs

from nodes.config.options import PAUSE_MS, Config, count, millis, name_options
from nodes.config.processing_times import ProcessingTimes, are_processing_times, parse_processing_times
from nodes.config.request_pools import ControllerPool, NameserverPool, PoolName, PoolSize, ProxyPool
from nodes.fields import Rule, checked, flag

PROCESSORS = 4
"""Processors of the machine that the defaults are for; RocketMQ computes them from the processors that it finds."""


def _threads(default: int) -> int:
    return count(default, minimum=1, maximum=10_000)


def _capacity(default: int) -> int:
    return count(default, minimum=1)


def _wait(default: int) -> int:
    return millis(default, usual=PAUSE_MS)


_POOLS = frozenset(name.value for name in PoolName)
_TIMES = Rule(
    'times of pools and request codes, such as "sendMessage 5ms, HEART_BEAT exponential 20ms, others 1ms..5ms"',
    partial(are_processing_times, pools=_POOLS),
)
_METADATA_POOLS = frozenset(name.value for name in (*NameserverPool, *ControllerPool))
_PROXY_POOLS = frozenset(name.value for name in ProxyPool)
_PROXY_TIMES = Rule(
    'times of pools and calls, such as "grpcProducer 5ms, V2_HEARTBEAT exponential 20ms, others 1ms..5ms"',
    partial(are_processing_times, pools=_PROXY_POOLS),
)
_METADATA_TIMES = Rule(
    'times of pools and request codes, such as "clientRequest 5ms, REGISTER_BROKER exponential 20ms, controller 1ms"',
    partial(are_processing_times, pools=_METADATA_POOLS),
)


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class MetadataRequestConfig(Config):
    """How long requests of a nameserver or a controller take."""

    processing_times: str = checked(_METADATA_TIMES, "")
    """How long a thread is busy with a request: a pool (`clientRequest` and `default` of a nameserver, `controller`), a
    request code, or `others`, with a time as for brokers. Empty: no request takes time. No option of RocketMQ."""

    @property
    def times(self) -> ProcessingTimes:
        """The processing times, as they can be looked up."""
        return parse_processing_times(self.processing_times, _METADATA_POOLS)


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class NameserverRequestConfig(MetadataRequestConfig):
    """How many requests a nameserver handles at a time; only with `processing_times`, else all at once.

    A nameserver refuses a request only if the queue is full; whatever waits is handled, however late.

    Mirrors:
        `org.apache.rocketmq.common.namesrv.NamesrvConfig`.
    """

    client_request_thread_pool_nums: int = _threads(8)
    """Threads for requests for the route of a topic."""
    default_thread_pool_nums: int = _threads(16)
    """Threads for all other requests, such as registrations."""
    client_request_thread_pool_queue_capacity: int = _capacity(50_000)
    """Requests for routes that may wait for a thread; one more is refused: `[OVERLOAD]`."""
    default_thread_pool_queue_capacity: int = _capacity(10_000)
    """The same of all other requests."""

    def pool_sizes(self) -> Mapping[NameserverPool, PoolSize]:
        """The size of each pool of the nameserver."""
        return {
            NameserverPool.CLIENT_REQUEST: PoolSize(
                self.client_request_thread_pool_nums, self.client_request_thread_pool_queue_capacity
            ),
            NameserverPool.DEFAULT: PoolSize(self.default_thread_pool_nums, self.default_thread_pool_queue_capacity),
        }


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ControllerRequestConfig(MetadataRequestConfig):
    """How many requests a controller handles at a time; only with `processing_times`, else all at once.

    Mirrors:
        `org.apache.rocketmq.common.ControllerConfig`.
    """

    controller_thread_pool_nums: int = _threads(16)
    """Threads for requests of brokers and administrators."""
    controller_request_thread_pool_queue_capacity: int = _capacity(50_000)
    """Requests that may wait for a thread; one more is refused: `[OVERLOAD]`."""

    def controller_pool_sizes(self) -> Mapping[ControllerPool, PoolSize]:
        """The size of the pool of the controller."""
        size = PoolSize(self.controller_thread_pool_nums, self.controller_request_thread_pool_queue_capacity)
        return {ControllerPool.CONTROLLER: size}


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ProxyRequestConfig(Config):
    """How many calls and requests a proxy handles at a time; only with `processing_times`, else all at once.

    A call that finds the queue full is refused, and those that wait are handled, however late. At the remoting port
    requests that have waited for too long are refused, too; the port looks for them every 10 s.

    Mirrors:
        `org.apache.rocketmq.proxy.config.ProxyConfig`, with the defaults of a machine with four processors.
    """

    processing_times: str = checked(_PROXY_TIMES, "")
    """How long a thread is busy with a call: a pool (`grpcRoute`, `grpcProducer`, `grpcConsumer`, `grpcClientManager`,
    `grpcTransaction`; of the remoting port `remotingSendMessage`, `remotingPullMessage`, `remotingUpdateOffset`,
    `remotingHeartbeat`, `remotingTopicRoute`, `remotingDefault`), a call such as `V2_SEND_MESSAGE`, or `others`, with a
    time as for brokers. Empty: no call takes time. No option of RocketMQ."""
    grpc_route_thread_pool_nums: int = _threads(PROCESSORS)
    """Threads for routes and assignments; one that has to load a route is busy until it is there."""
    grpc_producer_thread_pool_nums: int = _threads(PROCESSORS)
    """Threads for sends, recalls, and messages that are given up."""
    grpc_consumer_thread_pool_nums: int = _threads(PROCESSORS)
    """Threads for receives, acknowledgements and changes of the invisible time."""
    grpc_client_manager_thread_pool_nums: int = _threads(PROCESSORS)
    """Threads for settings, heartbeats and terminations."""
    grpc_transaction_thread_pool_nums: int = _threads(PROCESSORS)
    """Threads for ends of transactions."""
    grpc_route_thread_queue_capacity: int = _capacity(10_000)
    """Calls for routes and assignments that may wait for a thread; one more is refused: `flow limit`."""
    grpc_producer_thread_queue_capacity: int = _capacity(10_000)
    """The same of producers."""
    grpc_consumer_thread_queue_capacity: int = _capacity(10_000)
    """The same of consumers."""
    grpc_client_manager_thread_queue_capacity: int = _capacity(10_000)
    """The same of settings, heartbeats and terminations."""
    grpc_transaction_thread_queue_capacity: int = _capacity(10_000)
    """The same of ends of transactions."""
    remoting_send_message_thread_pool_nums: int = _threads(4 * PROCESSORS)
    """Threads of the remoting port for sends, recalls and ends of transactions."""
    remoting_pull_message_thread_pool_nums: int = _threads(4 * PROCESSORS)
    """The same for pulls."""
    remoting_update_offset_thread_pool_nums: int = _threads(4 * PROCESSORS)
    """The same for commits of offsets, acknowledgements, and connections of consumers."""
    remoting_heartbeat_thread_pool_nums: int = _threads(2 * PROCESSORS)
    """The same for heartbeats."""
    remoting_topic_route_thread_pool_nums: int = _threads(2 * PROCESSORS)
    """The same for routes; one that has to load a route is busy until it is there."""
    remoting_default_thread_pool_nums: int = _threads(4 * PROCESSORS)
    """The same for all other requests."""
    remoting_send_thread_pool_queue_capacity: int = _capacity(10_000)
    """Sends that may wait for a thread of the remoting port; one more is refused: `[OVERLOAD]`."""
    remoting_pull_thread_pool_queue_capacity: int = _capacity(50_000)
    """The same of pulls."""
    remoting_update_offset_thread_pool_queue_capacity: int = _capacity(10_000)
    """The same of commits of offsets."""
    remoting_heartbeat_thread_pool_queue_capacity: int = _capacity(50_000)
    """The same of heartbeats."""
    remoting_topic_route_thread_pool_queue_capacity: int = _capacity(50_000)
    """The same of routes."""
    remoting_default_thread_pool_queue_capacity: int = _capacity(50_000)
    """The same of all other requests."""
    remoting_wait_time_mills_in_send_queue: int = _wait(3_000)
    """How long a send may wait there when the port looks: `[TIMEOUT_CLEAN_QUEUE]`."""
    remoting_wait_time_mills_in_pull_queue: int = _wait(5_000)
    """The same of pulls."""
    remoting_wait_time_mills_in_update_offset_queue: int = _wait(3_000)
    """The same of commits of offsets."""
    remoting_wait_time_mills_in_heartbeat_queue: int = _wait(31_000)
    """The same of heartbeats."""
    remoting_wait_time_mills_in_topic_route_queue: int = _wait(3_000)
    """The same of routes."""
    remoting_wait_time_mills_in_default_queue: int = _wait(3_000)
    """The same of all other requests."""

    @property
    def times(self) -> ProcessingTimes:
        """The processing times, as they can be looked up."""
        return parse_processing_times(self.processing_times, _PROXY_POOLS)

    def call_pool_sizes(self) -> Mapping[ProxyPool, PoolSize]:
        """The size of each pool for calls of gRPC."""
        return {
            ProxyPool.ROUTE: PoolSize(self.grpc_route_thread_pool_nums, self.grpc_route_thread_queue_capacity),
            ProxyPool.PRODUCER: PoolSize(self.grpc_producer_thread_pool_nums, self.grpc_producer_thread_queue_capacity),
            ProxyPool.CONSUMER: PoolSize(self.grpc_consumer_thread_pool_nums, self.grpc_consumer_thread_queue_capacity),
            ProxyPool.CLIENT_MANAGER: PoolSize(
                self.grpc_client_manager_thread_pool_nums, self.grpc_client_manager_thread_queue_capacity
            ),
            ProxyPool.TRANSACTION: PoolSize(
                self.grpc_transaction_thread_pool_nums, self.grpc_transaction_thread_queue_capacity
            ),
        }

    def remoting_pool_sizes(self) -> Mapping[ProxyPool, PoolSize]:
        """The size of each pool of the remoting port."""
        return {
            ProxyPool.REMOTING_SEND: PoolSize(
                self.remoting_send_message_thread_pool_nums, self.remoting_send_thread_pool_queue_capacity
            ),
            ProxyPool.REMOTING_PULL: PoolSize(
                self.remoting_pull_message_thread_pool_nums, self.remoting_pull_thread_pool_queue_capacity
            ),
            ProxyPool.REMOTING_UPDATE_OFFSET: PoolSize(
                self.remoting_update_offset_thread_pool_nums, self.remoting_update_offset_thread_pool_queue_capacity
            ),
            ProxyPool.REMOTING_HEARTBEAT: PoolSize(
                self.remoting_heartbeat_thread_pool_nums, self.remoting_heartbeat_thread_pool_queue_capacity
            ),
            ProxyPool.REMOTING_TOPIC_ROUTE: PoolSize(
                self.remoting_topic_route_thread_pool_nums, self.remoting_topic_route_thread_pool_queue_capacity
            ),
            ProxyPool.REMOTING_DEFAULT: PoolSize(
                self.remoting_default_thread_pool_nums, self.remoting_default_thread_pool_queue_capacity
            ),
        }

    def remoting_wait_limits_ms(self) -> Mapping[ProxyPool, int]:
        """How long a request may wait at the remoting port, in the order in which queues are cleaned.

        Mirrors:
            `org.apache.rocketmq.proxy.remoting.RemotingProtocolServer#cleanExpireRequest`.
        """
        return {
            ProxyPool.REMOTING_SEND: self.remoting_wait_time_mills_in_send_queue,
            ProxyPool.REMOTING_PULL: self.remoting_wait_time_mills_in_pull_queue,
            ProxyPool.REMOTING_HEARTBEAT: self.remoting_wait_time_mills_in_heartbeat_queue,
            ProxyPool.REMOTING_UPDATE_OFFSET: self.remoting_wait_time_mills_in_update_offset_queue,
            ProxyPool.REMOTING_TOPIC_ROUTE: self.remoting_wait_time_mills_in_topic_route_queue,
            ProxyPool.REMOTING_DEFAULT: self.remoting_wait_time_mills_in_default_queue,
        }


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class RequestConfig(Config):
    """How many requests a broker handles at a time; only with `processing_times`, else all at once.

    Mirrors:
        `org.apache.rocketmq.common.BrokerConfig`, with the defaults of a machine with four processors.
    """

    processing_times: str = checked(_TIMES, "")
    """How long a thread of the broker is busy with a request: a pool or a request code with a time (`5ms`), a range
    (`1ms..5ms`), or a mean (`exponential 5ms`), separated by commas; `others` stands for all that are not named. Empty:
    no request takes time, so none waits for a thread. No option of RocketMQ."""
    send_message_thread_pool_nums: int = _threads(min(PROCESSORS, 4))
    """Threads for sends."""
    pull_message_thread_pool_nums: int = _threads(16 + PROCESSORS * 2)
    """Threads for pulls and pops."""
    lite_pull_message_thread_pool_nums: int = _threads(16 + PROCESSORS * 2)
    """Threads for pulls of lite pull consumers."""
    ack_message_thread_pool_nums: int = _threads(16)
    """Threads for acknowledgements of pops."""
    process_reply_message_thread_pool_nums: int = _threads(16 + PROCESSORS * 2)
    """Threads for replies of request-reply."""
    query_message_thread_pool_nums: int = _threads(8 + PROCESSORS)
    """Threads for queries by key and by id."""
    admin_broker_thread_pool_nums: int = _threads(16)
    """Threads for administrators, order locks, and other brokers."""
    client_manage_thread_pool_nums: int = _threads(32)
    """Threads for clients that unregister."""
    consumer_manage_thread_pool_nums: int = _threads(32)
    """Threads for lists of members, and offsets."""
    load_balance_processor_thread_pool_nums: int = _threads(32)
    """Threads for broker-side rebalance."""
    heartbeat_thread_pool_nums: int = _threads(min(32, PROCESSORS))
    """Threads for heartbeats of clients."""
    end_transaction_thread_pool_nums: int = _threads(max(8 + PROCESSORS * 2, min(PROCESSORS, 4) * 4))
    """Threads for ends of transactions."""
    send_thread_pool_queue_capacity: int = _capacity(10_000)
    """Sends that may wait for a thread; one more is refused: `[OVERLOAD]`."""
    pull_thread_pool_queue_capacity: int = _capacity(100_000)
    """The same of pulls."""
    lite_pull_thread_pool_queue_capacity: int = _capacity(100_000)
    """The same of pulls of lite pull consumers."""
    ack_thread_pool_queue_capacity: int = _capacity(100_000)
    """The same of acknowledgements."""
    reply_thread_pool_queue_capacity: int = _capacity(10_000)
    """The same of replies."""
    query_thread_pool_queue_capacity: int = _capacity(20_000)
    """The same of queries."""
    admin_broker_thread_pool_queue_capacity: int = _capacity(10_000)
    """The same of requests of administrators."""
    client_manager_thread_pool_queue_capacity: int = _capacity(1_000_000)
    """The same of clients that unregister."""
    consumer_manager_thread_pool_queue_capacity: int = _capacity(1_000_000)
    """The same of lists of members, and offsets."""
    load_balance_thread_pool_queue_capacity: int = _capacity(100_000)
    """The same of broker-side rebalance."""
    heartbeat_thread_pool_queue_capacity: int = _capacity(50_000)
    """The same of heartbeats."""
    end_transaction_pool_queue_capacity: int = _capacity(100_000)
    """The same of ends of transactions."""
    broker_fast_failure_enable: bool = flag(default=True)
    """Refuse a request that has waited too long for a thread: `[TIMEOUT_CLEAN_QUEUE]`."""
    wait_time_mills_in_send_queue: int = _wait(200)
    """How long a send may wait."""
    wait_time_mills_in_pull_queue: int = _wait(5_000)
    """How long a pull may wait."""
    wait_time_mills_in_lite_pull_queue: int = _wait(5_000)
    """How long a pull of a lite pull consumer may wait."""
    wait_time_mills_in_heartbeat_queue: int = _wait(31_000)
    """How long a heartbeat may wait."""
    wait_time_mills_in_transaction_queue: int = _wait(3_000)
    """How long the end of a transaction may wait."""
    wait_time_mills_in_ack_queue: int = _wait(3_000)
    """How long an acknowledgement may wait."""
    wait_time_mills_in_admin_broker_queue: int = _wait(5_000)
    """How long a request of an administrator may wait."""
    os_page_cache_busy_time_out_mills: int = millis(1_000)
    """From then on an append that has not ended makes the page cache busy: sends are refused (`[REJECTREQUEST]`), and
    those that wait are, too (`[PCBUSY_CLEAN_QUEUE]`)."""

    @property
    def times(self) -> ProcessingTimes:
        """The processing times, as they can be looked up."""
        return parse_processing_times(self.processing_times, _POOLS)

    def pool_sizes(self) -> Mapping[PoolName, PoolSize]:
        """The size of each pool."""
        return {
            PoolName.SEND: PoolSize(self.send_message_thread_pool_nums, self.send_thread_pool_queue_capacity),
            PoolName.PULL: PoolSize(self.pull_message_thread_pool_nums, self.pull_thread_pool_queue_capacity),
            PoolName.LITE_PULL: PoolSize(
                self.lite_pull_message_thread_pool_nums, self.lite_pull_thread_pool_queue_capacity
            ),
            PoolName.ACK: PoolSize(self.ack_message_thread_pool_nums, self.ack_thread_pool_queue_capacity),
            PoolName.REPLY: PoolSize(
                self.process_reply_message_thread_pool_nums, self.reply_thread_pool_queue_capacity
            ),
            PoolName.QUERY: PoolSize(self.query_message_thread_pool_nums, self.query_thread_pool_queue_capacity),
            PoolName.ADMIN: PoolSize(self.admin_broker_thread_pool_nums, self.admin_broker_thread_pool_queue_capacity),
            PoolName.CLIENT_MANAGE: PoolSize(
                self.client_manage_thread_pool_nums, self.client_manager_thread_pool_queue_capacity
            ),
            PoolName.HEARTBEAT: PoolSize(self.heartbeat_thread_pool_nums, self.heartbeat_thread_pool_queue_capacity),
            PoolName.CONSUMER_MANAGE: PoolSize(
                self.consumer_manage_thread_pool_nums, self.consumer_manager_thread_pool_queue_capacity
            ),
            PoolName.LOAD_BALANCE: PoolSize(
                self.load_balance_processor_thread_pool_nums, self.load_balance_thread_pool_queue_capacity
            ),
            PoolName.END_TRANSACTION: PoolSize(
                self.end_transaction_thread_pool_nums, self.end_transaction_pool_queue_capacity
            ),
        }

    def wait_limits_ms(self) -> Mapping[PoolName, int]:
        """How long a request may wait, in the order in which queues are cleaned; of a pool that is missing, for ever.

        Mirrors:
            `org.apache.rocketmq.broker.latency.BrokerFastFailure#initCleanExpiredRequestQueueList`.
        """
        return {
            PoolName.SEND: self.wait_time_mills_in_send_queue,
            PoolName.PULL: self.wait_time_mills_in_pull_queue,
            PoolName.LITE_PULL: self.wait_time_mills_in_lite_pull_queue,
            PoolName.HEARTBEAT: self.wait_time_mills_in_heartbeat_queue,
            PoolName.END_TRANSACTION: self.wait_time_mills_in_transaction_queue,
            PoolName.ACK: self.wait_time_mills_in_ack_queue,
            PoolName.ADMIN: self.wait_time_mills_in_admin_broker_queue,
        }
