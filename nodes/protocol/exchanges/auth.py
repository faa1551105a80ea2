"""Requests about users and policies of ACL 2.0."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies_auth, headers_auth
from nodes.protocol.admin_request import AdminRequest, Changed, OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

_CHANGES_PERMISSION = AdminRequest((Changed.PERMISSION,))

AUTH_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.AUTH_CREATE_USER: Exchange(
            headers_auth.UserHeader,
            bodies_auth.UserInfo,
            answered_by=NodeRole.BROKER,
            admin=_CHANGES_PERMISSION,
        ),
        RequestCode.AUTH_UPDATE_USER: Exchange(
            headers_auth.UserHeader,
            bodies_auth.UserInfo,
            answered_by=NodeRole.BROKER,
            admin=_CHANGES_PERMISSION,
        ),
        RequestCode.AUTH_DELETE_USER: Exchange(
            headers_auth.UserHeader, answered_by=NodeRole.BROKER, admin=_CHANGES_PERMISSION
        ),
        RequestCode.AUTH_GET_USER: Exchange(
            headers_auth.UserHeader,
            response_body=bodies_auth.UserInfo,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.AUTH_LIST_USER: Exchange(
            headers_auth.ListUsersRequestHeader,
            # A bare list of users.
            response_body=bytes,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.AUTH_CREATE_ACL: Exchange(
            headers_auth.SubjectHeader,
            bodies_auth.AclInfo,
            answered_by=NodeRole.BROKER,
            admin=_CHANGES_PERMISSION,
        ),
        RequestCode.AUTH_UPDATE_ACL: Exchange(
            headers_auth.SubjectHeader,
            bodies_auth.AclInfo,
            answered_by=NodeRole.BROKER,
            admin=_CHANGES_PERMISSION,
        ),
        RequestCode.AUTH_DELETE_ACL: Exchange(
            headers_auth.DeleteAclRequestHeader, answered_by=NodeRole.BROKER, admin=_CHANGES_PERMISSION
        ),
        RequestCode.AUTH_GET_ACL: Exchange(
            headers_auth.SubjectHeader,
            response_body=bodies_auth.AclInfo,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
        RequestCode.AUTH_LIST_ACL: Exchange(
            headers_auth.ListAclsRequestHeader,
            # A bare list of the policies of each subject.
            response_body=bytes,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.READS,
        ),
    }
)
"""Request code -> `Exchange`."""
