"""Bodies of requests about users and policies of ACL 2.0; lists of them are bare lists in JSON.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.UserInfo` and `AclInfo`.
"""

import attrs

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
