"""Acts that grow and shrink a cluster: processes that are started and shut down, brokers of containers."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places
from faults.words import Wording
from nodes.fields import text

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt


@attrs.frozen
class _NodeAct(Act):
    """An act on one node, which somebody does on its machine or, of a container, asks its process to do."""

    place_kind: ClassVar[PlaceKind] = PlaceKind(0)
    node: str = text()
    """Name of the node."""


@attrs.frozen
class StartNode(_NodeAct):
    """Starts the process of a nameserver, a broker or a container that does not run, and does not wait for it.

    It is one with `added_later`, or one that an act has shut down. What a fault keeps down starts when the fault ends.

    Mirrors:
        the scripts `mqnamesrv`, `mqbroker` and `mqbrokercontainer`.
    """

    kind: ClassVar[str] = "start_node"
    wording: ClassVar[Wording] = Wording(
        "start-node", "NODE", "start a nameserver, a broker or a container that was added or shut down"
    )

    def concerns(self) -> Concerned:
        """It has a process of its own."""
        return Concerned(process=self.node)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Start the process."""
        assert places.machines is not None
        await places.machines.start_node(self.node)
        admin.done.append(self.node)


@attrs.frozen
class ShutdownNode(_NodeAct):
    """Shuts the process of a nameserver, a broker or a container down for good, and waits until it has ended.

    A broker unregisters from all nameservers. Only `start-node` starts the process again; in that it differs from the
    fault `stop`, whose end does.

    Mirrors:
        the script `mqshutdown`, which sends SIGTERM.
    """

    kind: ClassVar[str] = "shutdown_node"
    wording: ClassVar[Wording] = Wording(
        "shutdown-node", "NODE", "shut a nameserver, a broker or a container down, until start-node starts it again"
    )

    def concerns(self) -> Concerned:
        """It has a process of its own."""
        return Concerned(process=self.node)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Shut the process down."""
        assert places.machines is not None
        await places.machines.shutdown_node(self.node)
        admin.done.append(self.node)


@attrs.frozen
class AddBroker(_NodeAct):
    """Has a container start one of its brokers.

    Mirrors:
        `org.apache.rocketmq.tools.command.container.AddBrokerSubCommand`.
    """

    kind: ClassVar[str] = "add_broker"
    wording: ClassVar[Wording] = Wording("add-broker", "BROKER", "have the container of a broker start it")

    def concerns(self) -> Concerned:
        """It is one of a container."""
        return Concerned(contained=self.node)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the container."""
        broker = places.contained[self.node]
        await admin.add_broker_to_container(broker.container, broker.path)


@attrs.frozen
class RemoveBroker(_NodeAct):
    """Has a container shut one of its brokers down; a container that starts again starts those of its configuration.

    Mirrors:
        `org.apache.rocketmq.tools.command.container.RemoveBrokerSubCommand`.
    """

    kind: ClassVar[str] = "remove_broker"
    wording: ClassVar[Wording] = Wording("remove-broker", "BROKER", "have the container of a broker shut it down")

    def concerns(self) -> Concerned:
        """It is one of a container."""
        return Concerned(contained=self.node)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the container."""
        broker = places.contained[self.node]
        await admin.remove_broker_from_container(broker.container, broker.removal)
