"""Acts on topics: to create, grow and shrink them, to change their permission, to delete them."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places, attributes_field, place
from faults.words import Wording, Words
from nodes.config.options import TOPIC_QUEUES_MAX
from nodes.fields import Rule, checked, flag, text, whole
from nodes.protocol.attribute_parser import parse_to_map
from nodes.protocol.model import READ_WRITE, TopicConfig
from nodes.protocol.names import ORDER_TOPIC_CONFIG

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

_QUEUES = 8
"""The default of the command `updateTopic`."""
_PERM = Rule(
    "a permission of 2 (write only), 4 (read only) or 6 (both)",
    lambda value: type(value) is int and value in (2, 4, READ_WRITE),
)


@attrs.frozen
class UpdateTopic(Act):
    """Creates a topic, or replaces its number of queues and its permission: grows it, shrinks it.

    At a cluster the masters are asked one after the other, and the first that does not answer ends the command: the
    topic is then on some of the brokers only. An ordered topic also gets an entry in the configuration of nameservers,
    after the brokers were asked.

    Mirrors:
        `org.apache.rocketmq.tools.command.topic.UpdateTopicSubCommand`.
    """

    kind: ClassVar[str] = "update_topic"
    wording: ClassVar[Wording] = Wording(
        "update-topic",
        "TOPIC [queues N] [read N] [write N] [perm P] [order true|false] [attributes TEXT] [on BROKER|CLUSTER]",
        "create a topic, or change its queues, permission (6: read and write), order or attributes (+KEY=VALUE,-KEY)",
    )
    always: ClassVar[Words] = ("queues",)
    topic: str = text()
    """Its name."""
    queues: int = whole(_QUEUES, minimum=1, limit=TOPIC_QUEUES_MAX)
    """Read queues and write queues at each broker; a topic that exists gets this number, too."""
    read: int | None = whole(None, minimum=0, limit=TOPIC_QUEUES_MAX)
    """Read queues, where their number is another one."""
    write: int | None = whole(None, minimum=0, limit=TOPIC_QUEUES_MAX)
    """Write queues, where their number is another one."""
    perm: int = checked(_PERM, READ_WRITE)
    """RocketMQ's bits: 4 read, 2 write."""
    order: bool = flag(default=False)
    """Whether it is ordered: then nameservers get the number of its write queues at each broker (`orderConf`)."""
    attributes: str = attributes_field()
    """Changes of its attributes, such as `+message.type=FIFO`; a new topic can only get some."""
    on: str | None = place()
    """A broker, or a cluster; none: the only cluster."""

    def concerns(self) -> Concerned:
        """It may create its topic."""
        return Concerned(new_topic=self.topic)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the masters, one after the other, up to the first that fails."""
        read = self.queues if self.read is None else self.read
        write = self.queues if self.write is None else self.write
        attributes = parse_to_map(self.attributes)
        config = TopicConfig(self.topic, read, write, self.perm, order=self.order, attributes=attributes)
        addresses = await places.brokers_of(admin, self.on)
        for address in addresses:
            await admin.create_and_update_topic_config(address, config)
        if self.order:
            await self._set_order(admin, places, addresses[0] if self.on in places.brokers else None, write)

    async def _set_order(self, admin: "MQAdminExt", places: Places, address: str | None, queues: int) -> None:
        """Set the entry of the topic at the nameservers: the entry of one broker changes, or that of all."""
        if address is None:
            names = await admin.broker_names(places.cluster(self.on))
            value = ";".join(f"{name}:{queues}" for name in names)
            await admin.put_kv_config(places.nameservers_of(None), ORDER_TOPIC_CONFIG, self.topic, value)
        else:
            entry = f"{await admin.broker_name_of(address)}:{queues}"
            await admin.add_order_conf(places.nameservers_of(None), self.topic, entry)


@attrs.frozen
class UpdateTopicPerm(Act):
    """Changes the permission of a topic.

    The command takes the number of queues from the first broker in the route, and writes it to every broker that it
    asks: a topic with another number of queues at each broker has the same one at all of them afterwards.

    Mirrors:
        `org.apache.rocketmq.tools.command.topic.UpdateTopicPermSubCommand`.
    """

    kind: ClassVar[str] = "update_topic_perm"
    wording: ClassVar[Wording] = Wording(
        "update-topic-perm", "TOPIC PERM [on BROKER|CLUSTER]", "change the permission of a topic: 2, 4 or 6", 2
    )
    topic: str = text()
    """Its name."""
    perm: int = checked(_PERM)
    """RocketMQ's bits: 4 read, 2 write."""
    on: str | None = place()
    """A master, or a cluster; none: the only cluster."""

    def concerns(self) -> Concerned:
        """Its topic exists."""
        return Concerned(topic=self.topic)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask a nameserver for the route, then the masters, one after the other, up to the first that fails."""
        queues = (await admin.topic_route(self.topic)).queue_datas
        first = queues[0]
        config = TopicConfig(self.topic, first.read_queue_nums, first.write_queue_nums, self.perm, first.topic_sys_flag)
        if self.on is not None and self.on in places.brokers:
            perms = [item.perm for item in queues if item.broker_name == places.broker_names[self.on]]
            if self.perm in perms:  # mqadmin prints that nothing is to be done
                return
        for address in await places.brokers_of(admin, self.on):
            await admin.create_and_update_topic_config(address, config)


@attrs.frozen
class DeleteTopic(Act):
    """Deletes a topic at the masters of a cluster, then at the nameservers, one after the other.

    A broker that does not answer ends the command: the nameservers then go on routing to the brokers that have deleted
    the topic, until these register without it.

    Mirrors:
        `org.apache.rocketmq.tools.command.topic.DeleteTopicSubCommand`.
    """

    kind: ClassVar[str] = "delete_topic"
    wording: ClassVar[Wording] = Wording(
        "delete-topic",
        "TOPIC [on BROKER|CLUSTER|NAMESERVER]",
        "delete a topic at the masters and then at the nameservers, or at one of them alone",
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.BROKER | PlaceKind.CLUSTER | PlaceKind.NAMESERVER
    topic: str = text()
    """Its name."""
    on: str | None = place()
    """A cluster, or one broker or nameserver, as tools of their own do; none: the only cluster."""

    def concerns(self) -> Concerned:
        """Its topic exists."""
        return Concerned(topic=self.topic)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, then the nameservers, up to the first that fails."""
        if self.on is None or self.on in places.clusters:
            await delete_topic(admin, places.cluster(self.on), self.topic)
        elif self.on in places.nameservers:
            await admin.delete_topic_in_nameservers((places.nameservers[self.on],), self.topic, None)
        else:
            await admin.delete_topic_in_brokers((places.brokers[self.on],), self.topic)


async def delete_topic(admin: "MQAdminExt", cluster: str, topic: str, *, slaves: bool = False) -> None:
    """Delete a topic of a cluster at its brokers, then at all nameservers.

    Args:
        slaves: whether the slaves are asked, too.

    Mirrors:
        `DeleteTopicSubCommand#deleteTopic`; with slaves `DefaultMQAdminExtImpl#deleteTopic`.

    Raises:
        RemotingError: a node does not answer; those after it have not been asked.
        BrokerError: a node refuses.
    """
    await admin.delete_topic_in_brokers(await admin.broker_addresses(cluster, slaves=slaves), topic)
    await admin.delete_topic_in_nameservers(admin.nameserver_set, topic, cluster)
