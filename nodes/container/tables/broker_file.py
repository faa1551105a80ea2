"""The file of a broker in a container: what it says, and what the container makes of it."""

from collections.abc import Mapping

from nodes.config import BrokerConfig, BrokerRole
from nodes.config.text import from_lines, to_lines, updated, values_of
from nodes.container.tables.brokers import BrokerOfContainer
from nodes.fields import FieldError
from nodes.protocol.model import MASTER_ID
from nodes.protocol.names import VIP_PORT_DISTANCE
from nodes.values import frozen

SLAVE = "SLAVE"
_LISTEN_PORT = 6_888
"""RocketMQ's default, of files that name no port."""


class RefusedBrokerError(Exception):
    """A broker cannot be added; the text is the remark of the answer."""


@frozen
class BrokerFile:
    """What a file says of a broker, as far as the container takes it."""

    identity: BrokerOfContainer
    role: str
    """ASYNC_MASTER, SYNC_MASTER or SLAVE."""
    config: BrokerConfig

    @property
    def fits(self) -> bool:
        """Whether role and id belong together: id 0 and no slave, or another one and a slave."""
        return (self.identity.broker_id == MASTER_ID) != (self.role == SLAVE)

    @property
    def ha_listen_port(self) -> int:
        """The port for replication: one above its port, whatever the file says."""
        return self.config.listen_port + 1

    def ports(self) -> tuple[int, ...]:
        """Its port, the VIP port, and the one for replication."""
        return (self.config.listen_port, self.config.listen_port - VIP_PORT_DISTANCE, self.ha_listen_port)


def read_broker_file(text: str, host_name: str) -> BrokerFile:
    """Read a file of lines `name=value`.

    Args:
        text: content of the file.
        host_name: brokerName of a file that has none.

    Raises:
        RefusedBrokerError: a container refuses it.

    Mirrors:
        `org.apache.rocketmq.container.BrokerContainerProcessor#addBroker`.
    """
    try:
        answer = from_lines(text)
        port = {} if "listenPort" in answer else {"listenPort": str(_LISTEN_PORT)}
        role = answer.get("brokerRole", BrokerRole.ASYNC_MASTER.value)
        options = (
            {**answer, **port} if role != SLAVE else {**answer, **port, "brokerRole": BrokerRole.ASYNC_MASTER.value}
        )
        config = updated(BrokerConfig(), options)
        broker_id = _broker_id(answer, role)
    except (FieldError, ValueError) as error:
        raise RefusedBrokerError(str(error)) from None
    if role == SLAVE and broker_id <= MASTER_ID and not _by_controller(answer):
        raise RefusedBrokerError("slave broker id must be > 0")
    if config.total_replicas < max(config.in_sync_replicas, config.min_in_sync_replicas):
        raise RefusedBrokerError("invalid replicas number")
    if config.in_sync_replicas < config.min_in_sync_replicas:
        raise RefusedBrokerError("invalid replicas number")
    cluster, name = answer.get("brokerClusterName", "DefaultCluster"), answer.get("brokerName", host_name)
    if role == SLAVE:
        config = config.of_slave()
    return BrokerFile(BrokerOfContainer(cluster, name, broker_id), role, config)


def write_broker_file(identity: BrokerOfContainer, config: BrokerConfig) -> str:
    """The text of a file from which `read_broker_file` reads this broker."""
    role = SLAVE if identity.broker_id != MASTER_ID else config.broker_role
    node = {
        "brokerClusterName": identity.cluster_name,
        "brokerName": identity.broker_name,
        "brokerId": identity.broker_id,
        "brokerRole": role,
    }
    return to_lines(values_of(config) | node)


def _broker_id(answer: Mapping[str, str], role: str) -> int:
    """The id of the file; that of a master is 0 unless a controller decides."""
    if role != SLAVE and not _by_controller(answer):
        return MASTER_ID
    return int(answer.get("brokerId", MASTER_ID))


def _by_controller(answer: Mapping[str, str]) -> bool:
    return answer.get("enableControllerMode", "false").lower() == "true"
