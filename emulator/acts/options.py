"""Acts on options and permissions of nodes."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places, option_table, place
from faults.words import Wording
from nodes.fields import flag, text
from nodes.protocol.codes import RequestCode
from nodes.rpc.errors import BrokerError, RemotingError

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

NAMESRV_ADDR = "namesrvAddr"
"""The option of a broker whose value names nameservers."""


@attrs.frozen
class UpdateBrokerConfig(Act):
    """Changes options of brokers while they run; a broker of a cluster that fails is passed over.

    Mirrors:
        `org.apache.rocketmq.tools.command.broker.UpdateBrokerConfigSubCommand`.
    """

    kind: ClassVar[str] = "update_broker_config"
    wording: ClassVar[Wording] = Wording(
        "update-broker-config",
        "OPTION=VALUE... [slaves] [on BROKER|CLUSTER]",
        "change options of the masters of a cluster, of its slaves, too, or of one broker",
    )
    options: Mapping[str, str] = option_table()
    """Options under the names that they have in RocketMQ."""
    slaves: bool = flag(default=False)
    """Whether the slaves of the cluster are asked, too."""
    on: str | None = place()
    """A broker, or a cluster; none: the only cluster."""

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, all of them."""
        options = {name: _addresses(places, name, value) for name, value in self.options.items()}
        addresses = await places.brokers_of(admin, self.on, slaves=self.slaves)
        await _ask_all(addresses, lambda address: admin.update_broker_config(address, options))


@attrs.frozen
class _UpdateConfig(Act):
    """Changes options of nodes of one kind, of one after the other, up to the first that does not answer."""

    options: Mapping[str, str] = option_table()
    """Options under the names that they have in RocketMQ."""
    on: str | None = place()
    """One of the nodes; none: all of them."""


@attrs.frozen
class UpdateNamesrvConfig(_UpdateConfig):
    """Changes options of nameservers while they run, of one after the other, up to the first that does not answer.

    Mirrors:
        `org.apache.rocketmq.tools.command.namesrv.UpdateNamesrvConfigCommand`.
    """

    kind: ClassVar[str] = "update_namesrv_config"
    wording: ClassVar[Wording] = Wording(
        "update-namesrv-config", "OPTION=VALUE... [on NAMESERVER]", "change options of all nameservers, or of one"
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.NAMESERVER

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the nameservers."""
        addresses = places.nameservers_of(self.on)
        await admin.update_config(RequestCode.UPDATE_NAMESRV_CONFIG, addresses, self.options)


@attrs.frozen
class UpdateControllerConfig(_UpdateConfig):
    """Changes options of controllers while they run, of one after the other, up to the first that does not answer.

    Mirrors:
        `org.apache.rocketmq.tools.command.controller.UpdateControllerConfigSubCommand`.
    """

    kind: ClassVar[str] = "update_controller_config"
    wording: ClassVar[Wording] = Wording(
        "update-controller-config", "OPTION=VALUE... [on CONTROLLER]", "change options of all controllers, or of one"
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.CONTROLLER

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the controllers."""
        controllers = places.controllers
        addresses = tuple(controllers.values()) if self.on is None else (controllers[self.on],)
        await admin.update_config(RequestCode.UPDATE_CONTROLLER_CONFIG, addresses, self.options)


@attrs.frozen
class _WritePerm(Act):
    """Changes the permission of a broker in the routes of nameservers; one that fails is passed over."""

    place_kind: ClassVar[PlaceKind] = PlaceKind.NAMESERVER
    code: ClassVar[RequestCode]
    broker: str = text()
    """The brokerName."""
    on: str | None = place()
    """A nameserver; none: all of them."""

    def concerns(self) -> Concerned:
        """Its broker exists."""
        return Concerned(broker=self.broker)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the nameservers, one after the other, all of them."""
        addresses = places.nameservers_of(self.on)
        await _ask_all(addresses, lambda address: admin.write_perm(address, self.code, self.broker))


@attrs.frozen
class WipeWritePerm(_WritePerm):
    """Takes the write permission of all topics of a broker away in the routes, until it registers them again.

    A nameserver that does not answer is passed over, and goes on routing messages to the broker.

    Mirrors:
        `org.apache.rocketmq.tools.command.namesrv.WipeWritePermSubCommand`.
    """

    kind: ClassVar[str] = "wipe_write_perm"
    wording: ClassVar[Wording] = Wording(
        "wipe-write-perm", "BROKER [on NAMESERVER]", "take the write permission of a broker away at nameservers"
    )
    code: ClassVar[RequestCode] = RequestCode.WIPE_WRITE_PERM_OF_BROKER


@attrs.frozen
class AddWritePerm(_WritePerm):
    """Gives a broker the write permission of all topics back in the routes.

    Mirrors:
        `org.apache.rocketmq.tools.command.namesrv.AddWritePermSubCommand`.
    """

    kind: ClassVar[str] = "add_write_perm"
    wording: ClassVar[Wording] = Wording(
        "add-write-perm", "BROKER [on NAMESERVER]", "give a broker its write permission back at nameservers"
    )
    code: ClassVar[RequestCode] = RequestCode.ADD_WRITE_PERM_OF_BROKER


async def _ask_all(addresses: Iterable[str], request: Callable[[str], Awaitable[object]]) -> None:
    """Ask all nodes, one after the other; the last failure is raised when all were asked."""
    failure: RemotingError | BrokerError | None = None
    for address in addresses:
        try:
            await request(address)
        except (RemotingError, BrokerError) as error:
            failure = error
    if failure is not None:
        raise failure


def _addresses(places: Places, option: str, value: str) -> str:
    """The value of an option, with addresses in place of the names of nameservers in the list of them."""
    if option != NAMESRV_ADDR:
        return value
    return ";".join(places.nameservers.get(name.strip(), name.strip()) for name in value.split(";"))


def _pairs(options: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in options.items())
