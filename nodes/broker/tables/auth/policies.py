"""The policies of a user, how they change, and which of their entries decides about a request.

Three rules of 5.3.3 are not what its comments announce, and later releases have others. Of two entries with prefixes
the *shorter* prefix decides. An entry that allows precedes one that denies the same. Whether a literal name precedes a
prefix depends on the order of the entries.

Mirrors:
    `org.apache.rocketmq.auth.authorization.model.Acl`, `Policy`, `PolicyEntry` and `Environment`;
    `org.apache.rocketmq.auth.authorization.chain.AclAuthorizationHandler#matchPolicyEntries`, `#comparePolicyEntries`.
"""

from collections.abc import Iterable
from typing import Self

import attrs

from nodes.broker.tables.auth.addresses import is_in_range
from nodes.broker.tables.auth.resources import Resource
from nodes.protocol.auth import Action, Decision, PolicyType, ResourcePattern, ResourceType
from nodes.values import frozen


@frozen
class PolicyEntry:
    """What a user may do with a resource, and from where."""

    resource: Resource
    actions: tuple[Action, ...]
    source_ips: tuple[str, ...]
    """Addresses and ranges; empty: from anywhere."""
    decision: Decision

    def matches(self, resource: Resource, actions: tuple[Action, ...], source_ip: str) -> bool:
        """Whether it is about a request.

        Raises:
            ValueError: an address cannot be read.
        """
        return (
            self.resource.matches(resource)
            and self.matches_action(actions)
            and (not self.source_ips or any(is_in_range(source_ip, own) for own in self.source_ips))
        )

    def matches_action(self, requested: tuple[Action, ...]) -> bool:
        """Whether it is about one of several actions."""
        if not self.actions:
            return False
        return Action.ANY in requested or any(
            action in self.actions or Action.ALL in self.actions for action in requested
        )


@frozen
class Policy:
    """Entries of a type; of a resource it has one, once it was updated."""

    type: PolicyType
    entries: tuple[PolicyEntry, ...]

    def updated(self, entries: Iterable[PolicyEntry]) -> Self:
        """With other entries: each replaces the first one about the same resource, or comes last."""
        made = list(self.entries)
        for entry in entries:
            at = next((at for at, own in enumerate(made) if own.resource == entry.resource), None)
            if at is None:
                made.append(entry)
            else:
                made[at] = entry
        return attrs.evolve(self, entries=tuple(made))

    def without(self, resource: Resource) -> Self:
        """Without its first entry about a resource."""
        at = next((at for at, own in enumerate(self.entries) if own.resource == resource), None)
        return self if at is None else attrs.evolve(self, entries=self.entries[:at] + self.entries[at + 1 :])


@frozen
class Acl:
    """The policies of a user."""

    subject: str
    """`User:` and the name."""
    policies: tuple[Policy, ...]

    def policy(self, kind: PolicyType) -> Policy | None:
        """The first policy of a type."""
        return next((policy for policy in self.policies if policy.type is kind), None)

    def updated(self, policies: Iterable[Policy]) -> Self:
        """With other policies: each updates the first one of its type, or comes last."""
        made = list(self.policies)
        for policy in policies:
            at = next((at for at, own in enumerate(made) if own.type is policy.type), None)
            if at is None:
                made.append(policy)
            else:
                made[at] = made[at].updated(policy.entries)
        return attrs.evolve(self, policies=tuple(made))

    def without(self, kind: PolicyType, resource: Resource) -> Self:
        """Without the entry about a resource; a policy without entries goes."""
        at = next((at for at, own in enumerate(self.policies) if own.type is kind), None)
        if at is None:
            return self
        rest = self.policies[at].without(resource)
        left = (rest,) if rest.entries else ()
        return attrs.evolve(self, policies=self.policies[:at] + left + self.policies[at + 1 :])

    def deciding(self, resource: Resource, actions: tuple[Action, ...], source_ip: str) -> PolicyEntry | None:
        """The entry that decides about a request; None: none matches.

        Raises:
            ValueError: an address cannot be read.
        """
        for kind in (PolicyType.CUSTOM, PolicyType.DEFAULT):
            policy = self.policy(kind)
            found = [] if policy is None else [e for e in policy.entries if e.matches(resource, actions, source_ip)]
            if found:
                return _sorted(found)[0]
        return None


def _compare(entry: PolicyEntry, other: PolicyEntry) -> int:
    """Below 0: the entry precedes the other. It is no order: a literal and a prefixed entry precede each other."""
    a, b = entry.resource, other.resource
    order = 0
    if a.type is not b.type:
        order = -1 if b.type is ResourceType.ANY else 1 if a.type is ResourceType.ANY else 0
    elif a.pattern is not b.pattern:
        order = 0 if a.pattern is ResourcePattern.ANY else -1
    elif a.pattern is ResourcePattern.PREFIXED:
        order = len(a.name or "") - len(b.name or "")
    if order:
        return order
    return 1 if entry.decision is Decision.DENY else -1 if other.decision is Decision.DENY else 0


def _sorted(entries: list[PolicyEntry]) -> list[PolicyEntry]:
    """Sorted as Java sorts less than 32 entries: since `_compare` is no order, the way of sorting decides."""
    made = list(entries)
    for at in range(_first_run(made), len(made)):
        pivot, left, right = made.pop(at), 0, at
        while left < right:
            middle = (left + right) // 2
            if _compare(pivot, made[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        made.insert(left, pivot)
    return made


def _first_run(entries: list[PolicyEntry]) -> int:
    """The number of entries at the begin that are sorted; those that descend are turned round."""
    if len(entries) < 2:
        return len(entries)
    end, descends = 2, _compare(entries[1], entries[0]) < 0
    while end < len(entries) and (_compare(entries[end], entries[end - 1]) < 0) == descends:
        end += 1
    if descends:
        entries[:end] = reversed(entries[:end])
    return end
