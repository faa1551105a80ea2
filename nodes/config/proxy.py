"""The options of a proxy."""

import re

import attrs

from nodes.config.auth import ProxyAuthConfig
from nodes.config.options import DELAY_S, count, millis, name_options, period_millis, port, seconds
from nodes.config.requests import ProxyRequestConfig
from nodes.fields import Rule, Usual, checked, flag, text
from nodes.protocol.names import HEARTBEAT_SYNCER_TOPIC

GRPC_SERVER_PORT = 8_081
REMOTING_LISTEN_PORT = 8_080
_DELAY_LEVELS = Rule(
    "delays such as 1s 5s 10m, separated by a space",
    lambda value: isinstance(value, str) and re.fullmatch(r"\d+[smhd]( \d+[smhd])*", value) is not None,
)
_DAYS = Usual(0, 259_200_000)
"""Of times in ms that may be hours: up to three days."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ProxyConfig(ProxyAuthConfig, ProxyRequestConfig):
    """Options of a proxy in cluster mode, as in `rmq-proxy.json`.

    Mirrors:
        `org.apache.rocketmq.proxy.config.ProxyConfig`.
    """

    rocket_m_q_cluster_name: str = text("DefaultCluster")
    """The cluster of its brokers; nameservers know a cluster as a topic."""
    grpc_server_port: int = port(GRPC_SERVER_PORT)
    """Where clients of RocketMQ 5 connect."""
    remoting_listen_port: int = port(REMOTING_LISTEN_PORT)
    """Where clients of RocketMQ 4 connect, as if it were a nameserver and all brokers."""
    remoting_access_addr: str = text("", empty=True)
    """The address of all brokers in routes for these clients; empty: `local_serve_addr`."""
    enable_remoting_local_proxy_grpc: bool = flag(default=True)
    """Whether the remoting port serves clients of RocketMQ 5, too."""
    region_id: str = text("", empty=True)
    """The region in answers to clients of RocketMQ 4, in place of that of the broker."""
    trace_on: bool = flag(default=False)
    """Whether these clients may trace what they send: their answers have it, whatever the broker says."""
    use_endpoint_port_from_request: bool = flag(default=True)
    """Routes name the ports that the client has asked with, not the proxy's own. RocketMQ's default is false."""
    local_serve_addr: str = text("", empty=True)
    """A part of its identity among proxies; empty: its IP address."""
    heartbeat_syncer_topic_name: str = text(HEARTBEAT_SYNCER_TOPIC)
    """The topic by which proxies report their consumers to each other."""
    heartbeat_syncer_topic_cluster_name: str = text("", empty=True)
    """Where that topic is; empty: in the cluster of its brokers."""
    rocketmq_m_q_client_num: int = count(6, minimum=1, maximum=64)
    """Clients, each with its connections, that carry messages; each call takes one at random."""
    topic_route_service_cache_refresh_seconds: int = seconds(20)
    """From this age on the next use of a route starts a reload, and still returns the old one."""
    topic_route_service_cache_expired_seconds: int = seconds(300)
    """A route that was not used for this long is forgotten."""
    topic_config_cache_refresh_seconds: int = seconds(20)
    """As of routes, of the types of topics."""
    topic_config_cache_expired_seconds: int = seconds(300)
    """As of routes, of the types of topics."""
    subscription_group_config_cache_refresh_seconds: int = seconds(20)
    """As of routes, of the configurations of groups."""
    subscription_group_config_cache_expired_seconds: int = seconds(300)
    """As of routes, of the configurations of groups."""
    channel_expired_timeout: int = millis(120_000, minimum=1)
    """A consumer that was silent for this long is forgotten; a producer after 120 s in any case."""
    default_invisible_time_mills: int = millis(60_000, minimum=1)
    """How long messages are hidden that the proxy is to renew."""
    min_invisible_time_mills_for_recv: int = millis(10_000)
    """The shortest time for which a receive may hide messages."""
    max_invisible_time_mills: int = millis(43_200_000, usual=_DAYS)
    """The longest time for which messages may be hidden; 0: no limit."""
    invisible_time_millis_when_clear: int = millis(1_000)
    """How long messages stay hidden that a client has not acknowledged when it leaves."""
    enable_proxy_auto_renew: bool = flag(default=True)
    """Whether receives may leave the invisible time to the proxy."""
    renews_receipt_handles: bool = flag(default=False)
    """Whether handles are renewed at all: 5.1.4 to 5.3.3 never start the thread; `release = "5.4.0"` does."""
    renew_ahead_time_millis: int = millis(10_000)
    """A handle is renewed when it has this long left."""
    renew_schedule_period_millis: int = period_millis(5_000)
    """Time between two scans for handles to renew."""
    renew_max_time_millis: int = millis(10_800_000, usual=_DAYS)
    """Handles are renewed for this long at most."""
    max_renew_retry_times: int = count(3)
    """Failures in a row after which a handle is not renewed any more."""
    grpc_client_consumer_min_long_polling_timeout_millis: int = millis(5_000)
    """The shortest poll."""
    grpc_client_consumer_max_long_polling_timeout_millis: int = millis(20_000)
    """The longest poll, which settings name to push consumers."""
    grpc_client_consumer_long_polling_batch_size: int = count(32, minimum=1)
    """Messages of a receive, in the settings of push consumers."""
    grpc_client_producer_max_attempts: int = count(3, minimum=1)
    """Attempts of a send, in the settings of producers."""
    grpc_client_producer_backoff_initial_millis: int = millis(10)
    """First pause between attempts when the proxy is busy, in the settings of producers."""
    grpc_client_producer_backoff_max_millis: int = millis(1_000)
    """Longest pause, in the settings of producers."""
    grpc_client_producer_backoff_multiplier: int = count(2, minimum=1)
    """By what each pause is longer, in the settings of producers."""
    max_message_size: int = count(4 * 1024 * 1024)
    """Of a body, in bytes; 0: no limit."""
    enable_message_body_empty_check: bool = flag(default=True)
    """Refuse messages without a body."""
    max_user_property_size: int = count(16 * 1024)
    """Of all properties, in bytes."""
    user_property_max_num: int = count(128)
    """Most properties of a client's own in a message."""
    max_message_group_size: int = count(64)
    """A message group is shorter than this, in bytes; 0: no limit."""
    max_delay_time_mills: int = millis(86_400_000, usual=_DAYS)
    """Longest delay of a message; 0: no limit."""
    max_transaction_recovery_second: int = seconds(3_600, minimum=0, usual=DELAY_S)
    """Longest time for which a transaction is not checked; 0: no limit."""
    enable_topic_message_type_check: bool = flag(default=True)
    """Refuse messages of another type than their topic's."""
    enable_batch_ack: bool = flag(default=False)
    """Acknowledge the messages of a call with one request to each of their brokers, not with one for each of them."""
    send_latency_enable: bool = flag(default=False)
    """Send to brokers whose last sends were fast and did not fail, if there are any."""
    start_detector_enable: bool = flag(default=False)
    """With `sendLatencyEnable`: ask brokers every three seconds whether they answer. Without it a broker whose last
    send failed is avoided for ever, unless a message group or the lack of others leads to it."""
    detect_timeout: int = millis(200)
    """How long such a question waits for its answer, until the next scan of what waits."""
    detect_interval: int = millis(2_000)
    """Shortest time between two such questions to a broker."""
    use_delay_level: bool = flag(default=False)
    """Give a timed message the delay level that is longer than its time, by which brokers then deliver it, in place of
    its time."""
    message_delay_level: str = checked(_DELAY_LEVELS, "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
    """The delay of each level, as brokers have it."""
    transaction_heartbeat_period_second: int = seconds(20)
    """Time between two heartbeats to brokers for producers of transactions; the first comes after one."""
    transaction_heartbeat_batch_num: int = count(100, minimum=1)
    """Most producer groups of one such heartbeat."""
    transaction_data_expire_millis: int = millis(30_000)
    """How long a proxy knows where a half message is."""
    transaction_data_expire_scan_period_millis: int = period_millis(10_000)
    """Time between two scans for transactions that are too old."""
    transaction_data_max_wait_clear_millis: int = millis(30_000)
    """How long a proxy that ends waits for transactions at most."""
    transaction_data_max_num: int = count(15, minimum=1)
    """Most entries about one transaction: of its send, and of its checks."""
    grpc_shutdown_time_seconds: int = seconds(30, minimum=0, usual=DELAY_S)
    """How long a proxy that ends waits for the streams of its clients."""
