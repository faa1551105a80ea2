"""What the parts of one broker share."""

import attrs

from nodes.broker.consumer_offsets import ConsumerOffsetManager
from nodes.broker.consumers import ConsumerManager
from nodes.broker.message_store import MessageStore
from nodes.broker.subscription_groups import SubscriptionGroupManager
from nodes.broker.topics import TopicConfigManager
from nodes.config import BrokerConfig
from nodes.host import Host


@attrs.frozen
class BrokerContext:
    """A broker's identity and its tables."""

    host: Host
    config: BrokerConfig
    cluster_name: str
    broker_name: str
    broker_id: int
    nameservers: tuple[str, ...]
    topics: TopicConfigManager
    groups: SubscriptionGroupManager
    consumers: ConsumerManager
    offsets: ConsumerOffsetManager
    store: MessageStore

    @property
    def address(self) -> str:
        """`ip:port` under which clients and other brokers know it."""
        return f"{self.host.ip}:{self.config.listen_port}"

    @property
    def ha_address(self) -> str:
        """`ip:port` of its HA service: one port above, as the launcher sets it."""
        return f"{self.host.ip}:{self.config.listen_port + 1}"
