"""Acts on static topics: logical queues that brokers lead, and that move to other brokers."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places, place
from faults.words import Wording
from nodes.config.options import TOPIC_QUEUES_MAX
from nodes.fields import TEXTS, checked, text, whole
from nodes.tools.static_topics import StaticTopicCommands

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt


@attrs.frozen
class UpdateStaticTopic(Act):
    """Creates a topic of logical queues, or gives it more.

    Mirrors:
        `org.apache.rocketmq.tools.command.topic.UpdateStaticTopicSubCommand`.
    """

    kind: ClassVar[str] = "update_static_topic"
    wording: ClassVar[Wording] = Wording(
        "update-static-topic",
        "TOPIC queues N [brokers NAME,NAME] [on CLUSTER]",
        "create a topic of logical queues, or give it more",
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.CLUSTER
    topic: str = text()
    """Its name."""
    queues: int = whole(minimum=1, limit=TOPIC_QUEUES_MAX)
    """Logical queues of all brokers together."""
    brokers: tuple[str, ...] = checked(TEXTS, ())
    """Broker names that may lead them; empty: all of the cluster."""
    on: str | None = place()
    """A cluster; none: the only one."""

    def concerns(self) -> Concerned:
        """It may create its topic, and the brokers exist."""
        return Concerned(new_topic=self.topic, broker_names=self.brokers)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other."""
        commands = StaticTopicCommands(admin)
        await commands.update(self.topic, self.queues, self.brokers, cluster=places.cluster(self.on))


@attrs.frozen
class RemappingStaticTopic(Act):
    """Has only some brokers lead the queues of a static topic.

    Mirrors:
        `org.apache.rocketmq.tools.command.topic.RemappingStaticTopicSubCommand`.
    """

    kind: ClassVar[str] = "remapping_static_topic"
    wording: ClassVar[Wording] = Wording(
        "remapping-static-topic",
        "TOPIC [brokers NAME,NAME] [on CLUSTER]",
        "have only these brokers lead the queues of a static topic",
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.CLUSTER
    topic: str = text()
    """Its name."""
    brokers: tuple[str, ...] = checked(TEXTS, ())
    """Broker names that are to lead; empty: all of the cluster."""
    on: str | None = place()
    """A cluster; none: the only one."""

    def concerns(self) -> Concerned:
        """Its topic and the brokers exist."""
        return Concerned(topic=self.topic, broker_names=self.brokers)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, in five steps."""
        await StaticTopicCommands(admin).remap(self.topic, self.brokers, cluster=places.cluster(self.on))
