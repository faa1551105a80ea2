"""Acts on the key-value configuration of nameservers, such as that of ordered topics."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, PlaceKind, Places, place
from faults.words import Wording
from nodes.fields import text

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt


@attrs.frozen
class UpdateKvConfig(Act):
    """Sets an entry at the nameservers, one after the other, up to the first that does not answer.

    Mirrors:
        `org.apache.rocketmq.tools.command.namesrv.UpdateKvConfigCommand`.
    """

    kind: ClassVar[str] = "update_kv_config"
    wording: ClassVar[Wording] = Wording(
        "update-kv-config", "NAMESPACE KEY VALUE [on NAMESERVER]", "set an entry of the configuration of nameservers", 3
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.NAMESERVER
    namespace: str = text()
    """Such as `ORDER_TOPIC_CONFIG`."""
    entry: str = text()
    """Name of the entry in its namespace."""
    value: str = text()
    """Its value."""
    on: str | None = place()
    """A nameserver; none: all of them."""

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the nameservers."""
        await admin.put_kv_config(places.nameservers_of(self.on), self.namespace, self.entry, self.value)


@attrs.frozen
class DeleteKvConfig(Act):
    """Deletes an entry at the nameservers, one after the other, up to the first that does not answer.

    Mirrors:
        `org.apache.rocketmq.tools.command.namesrv.DeleteKvConfigCommand`.
    """

    kind: ClassVar[str] = "delete_kv_config"
    wording: ClassVar[Wording] = Wording(
        "delete-kv-config", "NAMESPACE KEY [on NAMESERVER]", "delete an entry of the configuration of nameservers", 2
    )
    place_kind: ClassVar[PlaceKind] = PlaceKind.NAMESERVER
    namespace: str = text()
    """Such as `ORDER_TOPIC_CONFIG`."""
    entry: str = text()
    """Name of the entry in its namespace."""
    on: str | None = place()
    """A nameserver; none: all of them."""

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the nameservers."""
        await admin.delete_kv_config(places.nameservers_of(self.on), self.namespace, self.entry)
