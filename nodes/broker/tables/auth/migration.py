"""The accounts of ACL 1.0 as users and policies of ACL 2.0.

White lists of addresses are not migrated: requests from such an address need a signature, too.

Mirrors:
    `org.apache.rocketmq.auth.migration.AuthMigrator`.
"""

from collections.abc import Callable, Iterable, Iterator

from nodes.broker.tables.auth.acls import Acls
from nodes.broker.tables.auth.errors import AuthError, AuthFaultError
from nodes.broker.tables.auth.policies import Policy, PolicyEntry
from nodes.broker.tables.auth.resources import Resource
from nodes.broker.tables.auth.users import Users
from nodes.config.accounts import PlainAccessConfig
from nodes.protocol.auth import Action, Decision, PolicyType, ResourcePattern, ResourceType, UserType
from nodes.protocol.bodies_auth import UserInfo

_ACTIONS = {
    "PUB": (Action.PUB,),
    "SUB": (Action.SUB,),
    "PUB|SUB": (Action.PUB, Action.SUB),
    "SUB|PUB": (Action.PUB, Action.SUB),
}


def migrate(accounts: Iterable[PlainAccessConfig], users: Users, acls: Acls) -> Iterator[tuple[str, Exception]]:
    """Make users of accounts whose names no user has.

    Returns:
        Access keys of accounts that were not migrated whole, each with what RocketMQ logs of it.
    """
    for account in accounts:
        try:
            _migrate_one(account, users, acls)
        except (AuthError, AuthFaultError) as error:
            yield account.access_key, error


def _migrate_one(account: PlainAccessConfig, users: Users, acls: Acls) -> None:
    if users.get(account.access_key) is not None:
        return
    kind = UserType.SUPER if account.admin else UserType.NORMAL
    users.create(UserInfo(account.access_key, account.secret_key.reveal(), str(kind)))
    custom = (*_named(account.topic_perms, Resource.of_topic), *_named(account.group_perms, Resource.of_group))
    default = (
        *_all(ResourceType.TOPIC, account.default_topic_perm),
        *_all(ResourceType.GROUP, account.default_group_perm),
    )
    policies = ((PolicyType.CUSTOM, custom), (PolicyType.DEFAULT, default))
    made = tuple(Policy(of, entries) for of, entries in policies if entries)
    if made:
        acls.apply(account.access_key, made)


def _named(perms: tuple[str, ...], resource_of: Callable[[str], Resource]) -> Iterator[PolicyEntry]:
    """An entry for each text such as `orders=PUB|SUB`; one of another form is left out."""
    for text in perms:
        parts = [part for part in text.split("=") if part]
        if len(parts) == 2:
            yield _entry(resource_of(parts[0].strip()), parts[1].strip())


def _all(kind: ResourceType, perm: str) -> Iterator[PolicyEntry]:
    if perm.strip():
        yield _entry(Resource(kind, None, ResourcePattern.ANY), perm.strip())


def _entry(resource: Resource, perm: str) -> PolicyEntry:
    """What a permission is: one that ACL 1.0 does not have allows everything."""
    decision = Decision.DENY if perm == "DENY" else Decision.ALLOW
    return PolicyEntry(resource, _ACTIONS.get(perm, (Action.ALL,)), (), decision)
