"""The options of a nameserver, and lists of nameservers."""

import re

import attrs

from nodes.config.controller import CONTROLLER_PORT, ControllerConfig
from nodes.config.options import (
    PAUSE_MS,
    ROUTE_QUEUES_MAX,
    count,
    millis,
    name_options,
    option_name,
    period_millis,
    port,
    seconds,
)
from nodes.config.remoting import RemotingServerConfig
from nodes.config.requests import NameserverRequestConfig
from nodes.fields import FieldError, flag

WS_DOMAIN_NAME = "jmenv.tbsite.net"
"""The domain name under which nodes look for the address server."""
ADDRESS_SERVER_PORT = 8_080


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class NameserverConfig(RemotingServerConfig, NameserverRequestConfig):
    """Options of a nameserver.

    Mirrors:
        `org.apache.rocketmq.common.namesrv.NamesrvConfig`.
    """

    listen_port: int = port(9_876)
    """For requests of brokers and clients."""
    first_scan_delay_ms: int = millis(5, usual=PAUSE_MS)
    """First scan for silent brokers after the start: 5.3.3 waits 5 ms (a slip of the unit), 5.5.0 waits 5 s."""
    scan_not_active_broker_interval: int = period_millis(5_000)
    """Time between two scans for silent brokers."""
    un_register_broker_queue_capacity: int = count(3_000, minimum=1)
    """Unregistrations that may wait; one more is refused."""
    support_acting_master: bool = flag(default=False)
    """Present the lowest slave of a group without master as broker id 0 in route answers."""
    notify_min_broker_id_changed: bool = flag(default=False)
    """Notify the members of a group when its lowest broker id changes."""
    need_wait_for_service: bool = flag(default=False)
    """Refuse requests for routes until `wait_seconds_for_service` have passed since the start."""
    wait_seconds_for_service: int = seconds(45, minimum=0)
    """With `need_wait_for_service`: how long routes are refused."""
    delete_topic_with_broker_registration: bool = flag(default=False)
    """A registration removes the topics that it does not contain."""
    order_message_enable: bool = flag(default=False)
    """Include the order configuration of a topic in its route."""
    return_order_topic_config_to_broker: bool = flag(default=True)
    """Include ordered topics in the answer to a registration."""
    enable_controller_in_namesrv: bool = flag(default=False)
    """Run a controller in the process, too. Its options stand next to this one, as RocketMQ has one file for both."""
    enable_all_topic_list: bool = flag(default=True)
    """Answer requests for all topics."""
    enable_topic_list: bool = flag(default=True)
    """Answer requests for the topics of a cluster, of the system or of units."""
    max_queues_per_topic: int = count(ROUTE_QUEUES_MAX, minimum=1)
    """Read queues, and write queues, that a topic may have at one broker; more are refused with SYSTEM_BUSY. It is no
    option of RocketMQ: brokers and clients make a list of all queues in a route, which would take all memory."""
    knows_member_groups: bool = flag(default=True)
    """False: a nameserver of 4.x with regard to broker groups; stands for RocketMQ's release, and is no option of it.

    It does not answer 901, 904 and 217, which are unknown codes for it. It ignores acting flag, time-out and zone of
    a registration, so only masters publish topics, no broker loses write permission or is presented as master, and
    every broker may be silent for 120 s. It sends no 905. A nameserver of 4.9 scans every 10 s, which is
    `scan_not_active_broker_interval`; everything else stays as in 5.3.3.
    """


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class NameserverWithControllerConfig(NameserverConfig, ControllerConfig):
    """Options of a nameserver with a controller in its process; both have those that are in both lists.

    Mirrors:
        `org.apache.rocketmq.namesrv.NamesrvStartup#parseCommandlineAndConfigFile`, which reads one file for both.
    """

    def __attrs_post_init__(self) -> None:
        """Refuse one port for both."""
        if self.listen_port == CONTROLLER_PORT:
            problem = f"expected another port, {CONTROLLER_PORT} belongs to the controller in its process"
            raise FieldError(option_name("listen_port"), problem)


def with_options_of_controller(config: NameserverConfig) -> NameserverConfig:
    """The same options; those of a controller are among them if there is one in the process, else they are not."""
    kind = NameserverWithControllerConfig if config.enable_controller_in_namesrv else NameserverConfig
    if type(config) is kind:
        return config
    names = (field.name for field in attrs.fields(kind))
    return kind(**{name: getattr(config, name) for name in names if hasattr(config, name)})


_ADDRESS = re.compile(r"[^:;\s]+:\d{1,5}")


_IP = re.compile(r"\d{1,3}(\.\d{1,3}){3}")


def is_domain_name(host: str) -> bool:
    """Whether the host of an address is a name, and no IP address."""
    return _IP.fullmatch(host) is None


def nameserver_addresses(namesrv_addr: str) -> tuple[str, ...]:
    """The addresses in the option `namesrvAddr`, in order; what is no `HOST:PORT` is left out."""
    return tuple(item for item in map(str.strip, namesrv_addr.split(";")) if _ADDRESS.fullmatch(item))
