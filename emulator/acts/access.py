"""Acts on users and policies of ACL 2.0; none has a password: that is the secret of an account of the scenario."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import attrs

from emulator.acts.act import Act, Concerned, PlaceKind, Places, place
from faults.words import Wording, Words
from nodes.fields import Rule, checked, choice, text
from nodes.protocol.auth import Decision, UserStatus, UserType
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers_auth import DeleteAclRequestHeader
from nodes.secret import Secret

if TYPE_CHECKING:
    from nodes.tools.mq_admin_ext import MQAdminExt

_AT = "[on BROKER|CLUSTER]"
_USER_TYPE = Rule(f"{' or '.join(UserType)}, or empty", lambda value: value == "" or value in list(UserType))
_USER_STATUS = Rule(f"{' or '.join(UserStatus)}, or empty", lambda value: value == "" or value in list(UserStatus))


async def _at_brokers(
    admin: "MQAdminExt", places: Places, on: str | None, change: Callable[[str], Awaitable[None]]
) -> None:
    """Change the broker that an act names, else masters and slaves of its cluster, up to the first that fails.

    Slaves copy no users of their masters, so each is asked.
    """
    for address in await places.brokers_of(admin, on, slaves=True):
        await change(address)


@attrs.frozen
class CreateUser(Act):
    """Creates a user, whose password is the secret of an account.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.CreateUserSubCommand`.
    """

    kind: ClassVar[str] = "create_user"
    wording: ClassVar[Wording] = Wording(
        "create-user",
        f"USER account ACCOUNT [type Super|Normal] {_AT}",
        "create a user at brokers, with the secret_key of an account of the scenario as password",
        3,
    )
    user: str = text()
    """Its name."""
    account: str = text()
    """Access key of the `[[account]]` whose secret is the password."""
    type: str = checked(_USER_TYPE, "")
    """Whether it may do everything; empty: Normal."""
    on: str | None = place()
    """A broker, or a cluster, of which masters and slaves change; none: the only cluster."""

    def info(self, secrets: Mapping[str, Secret]) -> UserInfo:
        """What brokers are asked to create.

        Args:
            secrets: mapping access key of an account -> its secret.
        """
        return UserInfo(self.user, secrets[self.account].reveal(), self.type or None)

    def concerns(self) -> Concerned:
        """The scenario has its account."""
        return Concerned(account=self.account)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, up to the first that fails."""
        user = self.info(places.secrets)
        await _at_brokers(admin, places, self.on, lambda address: admin.create_user(address, user))


@attrs.frozen
class UpdateUser(Act):
    """Changes one thing of a user: its password, its type or its status.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.UpdateUserSubCommand`.
    """

    kind: ClassVar[str] = "update_user"
    wording: ClassVar[Wording] = Wording(
        "update-user",
        f"USER account ACCOUNT|type Super|Normal|status enable|disable {_AT}",
        "change the password, the type or the status of a user at brokers",
        3,
    )
    user: str = text()
    """Its name."""
    account: str = text("", empty=True)
    """Access key of the `[[account]]` whose secret is the new password; empty: the password stays."""
    type: str = checked(_USER_TYPE, "")
    """Whether it may do everything; empty: it stays."""
    status: str = checked(_USER_STATUS, "")
    """Whether its requests can be authentic; empty: it stays."""
    on: str | None = place()
    """A broker, or a cluster, of which masters and slaves change; none: the only cluster."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`update-user USER account ACCOUNT|type Super|Normal|status enable|disable [on BROKER|CLUSTER]`."""
        found = super().from_words(words)
        if sum(map(bool, (found.account, found.type, found.status))) != 1:
            raise cls.wording.mistake()
        return found

    def info(self, secrets: Mapping[str, Secret]) -> UserInfo:
        """What brokers are asked to change.

        Args:
            secrets: mapping access key of an account -> its secret.
        """
        password = secrets[self.account].reveal() if self.account else None
        return UserInfo(self.user, password, self.type or None, self.status or None)

    def concerns(self) -> Concerned:
        """The scenario has its account, if it names one."""
        return Concerned(account=self.account)

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, up to the first that fails."""
        user = self.info(places.secrets)
        await _at_brokers(admin, places, self.on, lambda address: admin.update_user(address, user))


@attrs.frozen
class DeleteUser(Act):
    """Deletes a user and its policies.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.DeleteUserSubCommand`.
    """

    kind: ClassVar[str] = "delete_user"
    wording: ClassVar[Wording] = Wording("delete-user", f"USER {_AT}", "delete a user and its policies at brokers")
    user: str = text()
    """Its name."""
    on: str | None = place()
    """A broker, or a cluster, of which masters and slaves change; none: the only cluster."""

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, up to the first that fails."""
        await _at_brokers(admin, places, self.on, lambda address: admin.delete_user(address, self.user))


@attrs.frozen
class CreateAcl(Act):
    """Gives a user entries of its custom policy, one for each resource; each replaces the entry about the same one.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.CreateAclSubCommand`.
    """

    kind: ClassVar[str] = "create_acl"
    wording: ClassVar[Wording] = Wording(
        "create-acl",
        f"USER RESOURCES ACTIONS Allow|Deny [from ADDRESSES] {_AT}",
        "allow or deny a user actions on resources such as Topic:orders,Group:bill* at brokers",
        4,
    )
    code: ClassVar[RequestCode] = RequestCode.AUTH_CREATE_ACL
    user: str = text()
    """The name of the user."""
    resources: str = text()
    """Resources, separated by `,`: `Topic:orders`, `Group:bill*`, `Cluster:*`, `*`."""
    actions: str = text()
    """Actions, separated by `,`: All, Pub, Sub, Create, Update, Delete, Get, List."""
    decision: Decision = choice(Decision)
    """Whether they are allowed."""
    source_ips: str = text("", empty=True, key="from")
    """Addresses and ranges from which the entries count, separated by `,`; empty: from anywhere."""
    on: str | None = place()
    """A broker, or a cluster, of which masters and slaves change; none: the only cluster."""

    def info(self) -> AclInfo:
        """What brokers are asked to give the user."""
        actions, ips = tuple(self.actions.split(",")), tuple(filter(None, self.source_ips.split(",")))
        entries = (
            PolicyEntryInfo(resource.strip(), actions, ips or None, self.decision.value)
            for resource in self.resources.split(",")
        )
        return AclInfo(f"User:{self.user}", (PolicyInfo(None, tuple(entries)),))

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, up to the first that fails."""
        acl = self.info()
        await _at_brokers(admin, places, self.on, lambda address: admin.change_acl(address, self.code, acl))


@attrs.frozen
class UpdateAcl(CreateAcl):
    """Does what `create-acl` does, under the other name that RocketMQ has for it.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.UpdateAclSubCommand`.
    """

    kind: ClassVar[str] = "update_acl"
    wording: ClassVar[Wording] = Wording(
        "update-acl",
        f"USER RESOURCES ACTIONS Allow|Deny [from ADDRESSES] {_AT}",
        "as create-acl: a user that has no policy gets one",
        4,
    )
    code: ClassVar[RequestCode] = RequestCode.AUTH_UPDATE_ACL


@attrs.frozen
class DeleteAcl(Act):
    """Deletes the entry about a resource from the custom policy of a user, or all of its policies.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.DeleteAclSubCommand`.
    """

    kind: ClassVar[str] = "delete_acl"
    wording: ClassVar[Wording] = Wording(
        "delete-acl", f"USER [resource RESOURCE] {_AT}", "delete what policies of a user decide at brokers"
    )
    user: str = text()
    """The name of the user."""
    resource: str = text("", empty=True)
    """The resource; empty, or none of RocketMQ's: all policies go."""
    on: str | None = place()
    """A broker, or a cluster, of which masters and slaves change; none: the only cluster."""

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the brokers, one after the other, up to the first that fails."""
        header = DeleteAclRequestHeader(f"User:{self.user}", None, self.resource or None)
        await _at_brokers(admin, places, self.on, lambda address: admin.delete_acl(address, header))


@attrs.frozen
class _Copy(Act):
    """Copies what one broker has to another one, of all or of some; what is there already is updated."""

    place_kind: ClassVar[PlaceKind] = PlaceKind.BROKER
    needs_place: ClassVar[bool] = True
    source: str = text(key="from")
    """The broker that has them."""
    on: str = text()
    """The broker that gets them."""
    names: str = text("", empty=True, key="users")
    """Names of users, separated by `,`; empty: all."""

    def concerns(self) -> Concerned:
        """The broker that has them."""
        return Concerned(source=self.source)

    @property
    def wanted(self) -> list[str]:
        """Names of the users; empty: all."""
        return [name for name in self.names.split(",") if name]


@attrs.frozen
class CopyUser(_Copy):
    """Copies users, with their passwords.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.CopyUsersSubCommand`.
    """

    kind: ClassVar[str] = "copy_user"
    wording: ClassVar[Wording] = Wording(
        "copy-user",
        "from BROKER [users USERS] on BROKER",
        "create or update the users of another broker at a broker",
        4,
    )

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the one broker, then the other for each user, up to the first that fails; unknown users are skipped."""
        source, target = places.brokers[self.source], places.brokers[self.on]
        asked = [await admin.user(source, name) for name in self.wanted]
        for user in filter(None, asked) if asked else await admin.users(source):
            known = await admin.user(target, user.username or "")
            await (admin.create_user if known is None else admin.update_user)(target, user)


@attrs.frozen
class CopyAcl(_Copy):
    """Copies policies of users.

    Mirrors:
        `org.apache.rocketmq.tools.command.auth.CopyAclsSubCommand`.
    """

    kind: ClassVar[str] = "copy_acl"
    wording: ClassVar[Wording] = Wording(
        "copy-acl",
        "from BROKER [users USERS] on BROKER",
        "create or update the policies of users of another broker at a broker",
        4,
    )

    async def carry_out(self, admin: "MQAdminExt", places: Places) -> None:
        """Ask the one broker, then the other for each user, up to the first that fails, as an unknown user does."""
        source, target = places.brokers[self.source], places.brokers[self.on]
        asked = [await admin.acl(source, f"User:{name}") for name in self.wanted]
        for acl in filter(None, asked) if asked else await admin.acls(source):
            known = await admin.acl(target, acl.subject or "")
            code = RequestCode.AUTH_CREATE_ACL if known is None else RequestCode.AUTH_UPDATE_ACL
            await admin.change_acl(target, code, acl)
