"""Bodies of requests about users and policies of ACL 2.0; lists of them are bare lists in JSON.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.UserInfo` and `AclInfo`.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from nodes.protocol.json_text import from_json
from nodes.values import frozen


@frozen
class UserInfo:
    """A user: body of 3001 and 3002, and of the answers to 3004 and, in a list, to 3005."""

    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    """In plain text, as RocketMQ sends it."""
    user_type: str | None = None
    user_status: str | None = None


@frozen
class PolicyEntryInfo:
    """An entry of a policy."""

    resource: str | None = None
    actions: tuple[str, ...] | None = None
    source_ips: tuple[str, ...] | None = None
    decision: str | None = None


@frozen
class PolicyInfo:
    """A policy."""

    policy_type: str | None = None
    entries: tuple[PolicyEntryInfo, ...] | None = None


@frozen
class AclInfo:
    """The policies of a subject: body of 3006 and 3007, and of the answers to 3009 and, in a list, to 3010."""

    subject: str | None = None
    policies: tuple[PolicyInfo, ...] | None = None


@frozen
class StoredUsers:
    """The file of users of a broker; no body of a request."""

    users: tuple[UserInfo, ...]


@frozen
class StoredAcls:
    """The file of policies of a broker; no body of a request."""

    acls: tuple[AclInfo, ...]


def users_of(body: bytes | None) -> tuple[UserInfo, ...]:
    """The users in the answer to 3005, which has no body where there are none."""
    return tuple(
        UserInfo(item.get("username"), item.get("password"), item.get("userType"), item.get("userStatus"))
        for item in _listed(body)
    )


def acls_of(body: bytes | None) -> tuple[AclInfo, ...]:
    """The policies in the answer to 3010, which has no body where there are none."""
    return tuple(
        AclInfo(
            item.get("subject"),
            tuple(
                PolicyInfo(policy.get("policyType"), tuple(map(_entry, policy.get("entries") or ())))
                for policy in item.get("policies") or ()
            ),
        )
        for item in _listed(body)
    )


def _entry(item: Mapping[str, Any]) -> PolicyEntryInfo:
    addresses = item.get("sourceIps")
    return PolicyEntryInfo(
        item.get("resource"),
        tuple(item.get("actions") or ()),
        None if addresses is None else tuple(addresses),
        item.get("decision"),
    )


def _listed(body: bytes | None) -> list[Mapping[str, Any]]:
    return [] if not body else list(from_json(body.decode()))
