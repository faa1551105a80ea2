"""Headers of requests about users and policies of ACL 2.0.

The rules of `nodes.protocol.headers` hold.
"""

from nodes.values import frozen


@frozen
class UserHeader:
    """A user: the header of 3001 to 3004.

    Mirrors:
        `CreateUserRequestHeader`, `UpdateUserRequestHeader`, `DeleteUserRequestHeader`, `GetUserRequestHeader`.
    """

    username: str | None = None


@frozen
class ListUsersRequestHeader:
    """Header of AUTH_LIST_USER (3005)."""

    filter: str | None = None


@frozen
class SubjectHeader:
    """A subject: the header of 3006, 3007 and 3009.

    Mirrors:
        `CreateAclRequestHeader`, `UpdateAclRequestHeader`, `GetAclRequestHeader`.
    """

    subject: str | None = None


@frozen
class DeleteAclRequestHeader:
    """Header of AUTH_DELETE_ACL (3008)."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


@frozen
class ListAclsRequestHeader:
    """Header of AUTH_LIST_ACL (3010)."""

    subject_filter: str | None = None
    resource_filter: str | None = None
