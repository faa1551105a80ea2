"""The policies of all users of a broker.

Mirrors:
    `org.apache.rocketmq.auth.authorization.manager.AuthorizationMetadataManagerImpl` over
    `LocalAuthorizationMetadataProvider`; `org.apache.rocketmq.broker.auth.converter.AclConverter`.
"""

import attrs

from nodes.broker.tables.auth.addresses import is_valid_ip_or_cidr
from nodes.broker.tables.auth.errors import AuthFaultError, AuthorizationError
from nodes.broker.tables.auth.policies import Acl, Policy, PolicyEntry
from nodes.broker.tables.auth.resources import Resource
from nodes.broker.tables.auth.users import Users, subject_key, username_of
from nodes.protocol.auth import Action, Decision, PolicyType, by_name
from nodes.protocol.bodies_auth import AclInfo, PolicyEntryInfo, PolicyInfo

_NO_PROVIDER = "java.lang.IllegalStateException: The authenticationMetadataProvider is not configured."
"""RocketMQ names this one, whichever is missing."""


def policies_of(info: AclInfo) -> tuple[Policy, ...]:
    """The policies that a request has; one without entries is left out.

    Raises:
        AuthorizationError: they cannot stand.
    """
    policies = [policy for policy in info.policies or () if policy.entries]
    if not policies:
        raise AuthorizationError("The policies is empty.")
    return tuple(_policy(policy) for policy in policies)


def _policy(info: PolicyInfo) -> Policy:
    entries = tuple(_entry(entry) for entry in info.entries or ())
    return Policy(by_name(PolicyType, info.policy_type) or PolicyType.CUSTOM, entries)


def _entry(info: PolicyEntryInfo) -> PolicyEntry:
    resource = Resource.of(info.resource)
    if resource is None:
        raise AuthorizationError("The resource is null.")
    # Names that no action has are left out.
    named = (by_name(Action, name) for name in info.actions or ())
    actions = tuple(action for action in named if action is not None)
    if not actions:
        raise AuthorizationError("The actions is empty.")
    if Action.ANY in actions:
        raise AuthorizationError("The actions can not be Any.")
    for source_ip in info.source_ips or ():
        if not source_ip.strip():
            raise AuthorizationError("The source ip is empty.")
        if not is_valid_ip_or_cidr(source_ip):
            raise AuthorizationError("The source ip is invalid.")
    decision = by_name(Decision, info.decision)
    if decision is None:
        raise AuthorizationError("The decision is null or illegal.")
    return PolicyEntry(resource, actions, info.source_ips or (), decision)


def info_of(acl: Acl) -> AclInfo:
    """Policies as answers have them."""
    return AclInfo(
        acl.subject,
        tuple(
            PolicyInfo(
                str(policy.type),
                tuple(
                    PolicyEntryInfo(
                        entry.resource.key,
                        tuple(map(str, entry.actions)),
                        entry.source_ips or None,
                        str(entry.decision),
                    )
                    for entry in policy.entries
                ),
            )
            for policy in acl.policies
        ),
    )


class Acls:
    """The policies, by subject.

    Args:
        users: of the same broker; only a user of theirs has policies.
        has_provider: whether `authorizationMetadataProvider` names the local one; without, there are none.
    """

    def __init__(self, users: Users, *, has_provider: bool = True) -> None:
        self._acls: dict[str, Acl] = {}
        self._users = users
        self.has_provider = has_provider

    def update(self, info: AclInfo) -> None:
        """Give a user policies, or entries in place of those about the same resources: to create is the same.

        Raises:
            AuthorizationError: they cannot stand, or there is no such user.
            AuthFaultError: the subject is none, or there is no provider.
        """
        name = _require_subject(info.subject)
        self.apply(name, policies_of(info))

    def apply(self, name: str, policies: tuple[Policy, ...]) -> None:
        """Give a user policies that were checked, in the same way.

        Raises:
            AuthorizationError: there is no such user.
            AuthFaultError: there is no provider.
        """
        subject = subject_key(name)
        self._require_provider()
        if self._users.get(name) is None:
            raise AuthorizationError(f"The subject of {subject} is not exist.")
        old = self._acls.get(subject)
        self._acls[subject] = Acl(subject, policies) if old is None else old.updated(policies)

    def delete(self, subject: str | None, policy_type: str | None, resource: str | None) -> None:
        """Remove the entry about a resource; all policies of the user, if the resource is none.

        Raises:
            AuthorizationError: there is no such user, or it has no policies.
            AuthFaultError: there is no provider.
        """
        name = username_of(subject)
        if name is None:
            raise AuthorizationError("The subject is null.")
        self._require_provider()
        user, key = self._users.get(name), subject_key(name)
        if user is None:
            raise AuthorizationError("The subject is not exist.")
        if key not in self._acls:
            raise AuthorizationError("The acl is not exist.")
        about = Resource.of(resource)
        left = (
            None
            if about is None
            else self._acls[key].without(by_name(PolicyType, policy_type) or PolicyType.CUSTOM, about)
        )
        if left is None or not left.policies:
            del self._acls[key]
        else:
            self._acls[key] = left

    def forget(self, username: str) -> None:
        """Remove all policies of a user that is deleted.

        Raises:
            AuthFaultError: there is no provider.
        """
        if not self.has_provider:
            raise AuthFaultError("java.lang.IllegalStateException: The authorizationMetadataProvider is not configured")
        self._acls.pop(subject_key(username), None)

    def get(self, subject: str | None) -> Acl | None:
        """The policies of a user.

        Raises:
            AuthorizationError: there is no such user.
            AuthFaultError: the subject is none, or there is no provider.
        """
        name = _require_subject(subject)
        self._require_provider()
        if self._users.get(name) is None:
            raise AuthorizationError("The subject is not exist.")
        return self.of_user(name)

    def of_user(self, username: str) -> Acl | None:
        """The policies of a user, if it has any."""
        return self._acls.get(subject_key(username))

    def listed(self, subject_filter: str | None = None, resource_filter: str | None = None) -> tuple[Acl, ...]:
        """All policies whose subjects contain a text, in the order of the bytes of these.

        Of a subject that does not contain the text for resources itself, only entries about resources that contain it.

        Raises:
            AuthFaultError: there is no provider.
        """
        if not self._users.has_provider:
            raise AuthFaultError(_NO_PROVIDER)
        if not self.has_provider:
            raise AuthFaultError("java.lang.NullPointerException: the authorizationMetadataProvider is null")
        subjects = sorted((key for key in self._acls if _wanted(subject_filter, key)), key=str.encode)
        found = (_only(self._acls[key], resource_filter) for key in subjects)
        return tuple(acl for acl in found if acl.policies)

    def restore(self, acls: tuple[AclInfo, ...]) -> None:
        """Have the policies that a file has."""
        for acl in acls:
            self.update(acl)

    def _require_provider(self) -> None:
        if not (self.has_provider and self._users.has_provider):
            raise AuthFaultError(_NO_PROVIDER)


def _require_subject(subject: str | None) -> str:
    name = username_of(subject)
    if name is None:
        raise AuthFaultError("java.lang.NullPointerException: the subject is null")
    return name


def _wanted(part: str | None, text: str) -> bool:
    return not (part or "").strip() or (part or "") in text


def _only(acl: Acl, resource_filter: str | None) -> Acl:
    if _wanted(resource_filter, acl.subject):
        return acl
    policies = (
        attrs.evolve(policy, entries=tuple(e for e in policy.entries if _wanted(resource_filter, e.resource.key)))
        for policy in acl.policies
    )
    return attrs.evolve(acl, policies=tuple(policy for policy in policies if policy.entries))
