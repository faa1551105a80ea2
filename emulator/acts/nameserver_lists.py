"""Acts on what nodes read to learn of nameservers: the list of the address server, and domain names."""

from typing import TYPE_CHECKING, ClassVar

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places
from faults.words import Wording
from nodes.fields import TEXTS, checked, text

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

_NOWHERE = PlaceKind(0)


@attrs.frozen
class UpdateAddressServer(Act):
    """Replaces the list of nameservers that the address server has; mqadmin has no such command."""

    kind: ClassVar[str] = "update_address_server"
    wording: ClassVar[Wording] = Wording(
        "update-address-server",
        "[NAMESERVER...]",
        "replace the list of the address server; without names it is empty",
        0,
    )
    place_kind: ClassVar[PlaceKind] = _NOWHERE
    nameservers: tuple[str, ...] = checked(TEXTS)
    """Nameservers, or `HOST:PORT`; may be empty."""

    def concerns(self) -> Concerned:
        """There is an address server, and the nameservers exist."""
        return Concerned(nameservers=self.nameservers, address_server=True)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the address server."""
        listed = ";".join(places.nameservers.get(item, item) for item in self.nameservers)
        await admin.put_nameserver_list(places.address_server, listed)


@attrs.frozen
class UpdateDomain(Act):
    """Has a domain name stand for other nameservers; mqadmin has no such command.

    The name service has no machine, so this never fails, and the next question has the new answer: no node caches one.
    """

    kind: ClassVar[str] = "update_domain"
    wording: ClassVar[Wording] = Wording(
        "update-domain",
        "DOMAIN [NAMESERVER...]",
        "have a domain name stand for other nameservers; without names, for none",
    )
    place_kind: ClassVar[PlaceKind] = _NOWHERE
    domain: str = text()
    """The domain name, without a port."""
    nodes: tuple[str, ...] = checked(TEXTS)
    """Nameservers; may be empty: the name is unknown then."""

    def concerns(self) -> Concerned:
        """The name and the nameservers exist."""
        return Concerned(domain=self.domain, nodes=self.nodes)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Change the name service."""
        places.domains[self.domain] = tuple(places.nameservers[node].rpartition(":")[0] for node in self.nodes)
        admin.done.append(self.domain)
