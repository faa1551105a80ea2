"""Requests of operators about users and policies of ACL 2.0, and the files of both.

In 5.3.3 slaves do not copy them: `mqadmin` sends what it changes in a cluster to masters and slaves.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import attrs

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.auth.acls import info_of
from nodes.broker.tables.auth.auth_tables import AuthTables
from nodes.broker.tables.auth.errors import AuthenticationError, AuthError, AuthFaultError
from nodes.broker.tables.auth.users import username_of
from nodes.config.accounts import PlainAccessConfig
from nodes.host import Channel
from nodes.protocol import headers_auth as headers
from nodes.protocol.acl_signature import ACCESS_KEY
from nodes.protocol.auth import UserType, by_name
from nodes.protocol.bodies_auth import AclInfo, StoredAcls, StoredUsers, UserInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.json_text import to_json
from nodes.protocol.registry import decode_body, decode_header, encode_body
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

USERS_FILE = "users"
ACLS_FILE = "acls"
_FAULT = "An system error occurred, please try again later."
_NO_BODY = "org.apache.rocketmq.auth.authorization.exception.AuthorizationException: The body of acl is null"


class AdminAuth(Part):
    """Changes and shows users and policies, each change in the file before its answer.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#createUser` and its nine neighbours;
        `LocalAuthenticationMetadataProvider`, `LocalAuthorizationMetadataProvider`.
    """

    def __init__(self, broker: BrokerContext, auth: AuthTables, accounts: Iterable[PlainAccessConfig]) -> None:
        self._broker = broker
        self._auth = auth
        self._accounts = tuple(accounts)

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.AUTH_CREATE_USER: self._create_user,
            RequestCode.AUTH_UPDATE_USER: self._update_user,
            RequestCode.AUTH_DELETE_USER: self._delete_user,
            RequestCode.AUTH_GET_USER: self._get_user,
            RequestCode.AUTH_LIST_USER: self._list_users,
            RequestCode.AUTH_CREATE_ACL: self._update_acl,
            RequestCode.AUTH_UPDATE_ACL: self._update_acl,
            RequestCode.AUTH_DELETE_ACL: self._delete_acl,
            RequestCode.AUTH_GET_ACL: self._get_acl,
            RequestCode.AUTH_LIST_ACL: self._list_acls,
        }

    def load(self) -> None:
        """Read the files, then create the users that the options name."""
        users, acls = self._broker.host.disk.read(USERS_FILE), self._broker.host.disk.read(ACLS_FILE)
        if users is not None:
            self._auth.users.restore(decode_body(StoredUsers, users).users)
        if acls is not None:
            self._auth.acls.restore(decode_body(StoredAcls, acls).acls)
        for access_key, error in self._auth.begin(self._accounts):
            self._broker.host.log.error("account not migrated", access_key=access_key, error=str(error))

    def persist(self) -> None:
        """Write both files, where there are providers."""
        if self._auth.users.has_provider:
            users = StoredUsers(tuple(user.info() for user in self._auth.users.listed()))
            self._broker.host.disk.write(USERS_FILE, partial(encode_body, users))
        if self._auth.users.has_provider and self._auth.acls.has_provider:
            acls = StoredAcls(tuple(info_of(acl) for acl in self._auth.acls.listed()))
            self._broker.host.disk.write(ACLS_FILE, partial(encode_body, acls))

    def _create_user(self, _channel: Channel, request: Command) -> Command:
        return self._change_user(request, "create", self._auth.users.create)

    def _update_user(self, _channel: Channel, request: Command) -> Command:
        def update(given: UserInfo) -> None:
            old = self._auth.users.get(given.username)
            if old is None:
                raise AuthenticationError("The user is not exist")
            if old.type is UserType.SUPER:
                self._require_super(request)
            self._auth.users.update(given)

        return self._change_user(request, "update", update)

    def _change_user(self, request: Command, verb: str, change: Callable[[UserInfo], None]) -> Command:
        username = decode_header(headers.UserHeader, request.ext_fields).username
        if not username:
            return request.answer(ResponseCode.INVALID_PARAMETER, "The username is blank")
        given = attrs.evolve(decode_body(UserInfo, request.body), username=username)
        if by_name(UserType, given.user_type) is UserType.SUPER and self._is_not_super(request):
            return request.answer(ResponseCode.SYSTEM_ERROR, f"The super user can only be {verb} by super user")
        return self._changed(request, partial(change, given))

    def _delete_user(self, _channel: Channel, request: Command) -> Command:
        username = decode_header(headers.UserHeader, request.ext_fields).username

        def delete() -> None:
            user = self._auth.users.get(username)
            if user is None:
                return
            if user.type is UserType.SUPER:
                self._require_super(request)
            self._auth.delete_user(username)

        return self._changed(request, delete)

    def _get_user(self, _channel: Channel, request: Command) -> Command:
        username = decode_header(headers.UserHeader, request.ext_fields).username
        if not (username or "").strip():
            return request.answer(ResponseCode.INVALID_PARAMETER, "The username is blank")

        def show() -> bytes | None:
            user = self._auth.users.get(username)
            return None if user is None else encode_body(user.info())

        return self._shown(request, show)

    def _list_users(self, _channel: Channel, request: Command) -> Command:
        wanted = decode_header(headers.ListUsersRequestHeader, request.ext_fields).filter
        return self._shown(request, lambda: _list(user.info() for user in self._auth.users.listed(wanted)))

    def _update_acl(self, _channel: Channel, request: Command) -> Command:
        given = decode_body(AclInfo, request.body)
        if not given.policies:
            return request.answer(ResponseCode.SYSTEM_ERROR, _NO_BODY)
        if username_of(given.subject) is None:
            subject = decode_header(headers.SubjectHeader, request.ext_fields).subject
            given = attrs.evolve(given, subject=subject)
        return self._changed(request, partial(self._auth.acls.update, given))

    def _delete_acl(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.DeleteAclRequestHeader, request.ext_fields)
        delete = partial(self._auth.acls.delete, header.subject, header.policy_type, header.resource)
        return self._changed(request, delete)

    def _get_acl(self, _channel: Channel, request: Command) -> Command:
        subject = decode_header(headers.SubjectHeader, request.ext_fields).subject

        def show() -> bytes | None:
            acl = self._auth.acls.get(subject)
            return None if acl is None else encode_body(info_of(acl))

        return self._shown(request, show, names_fault=True)

    def _list_acls(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.ListAclsRequestHeader, request.ext_fields)

        def show() -> bytes | None:
            found = self._auth.acls.listed(header.subject_filter, header.resource_filter)
            return _list(info_of(acl) for acl in found)

        return self._shown(request, show, names_fault=True)

    def _changed(self, request: Command, change: Callable[[], object]) -> Command:
        """Change something; the answer."""
        answer = self._tried(request, change)
        if answer is not None:
            return answer
        self.persist()
        return success(request)

    def _shown(self, request: Command, show: Callable[[], bytes | None], *, names_fault: bool = False) -> Command:
        """Show something; the answer, without a body if there is nothing."""
        found: list[bytes | None] = []
        answer = self._tried(request, lambda: found.append(show()), names_fault=names_fault)
        return success(request, body=found[0]) if answer is None else answer

    def _tried(self, request: Command, act: Callable[[], object], *, names_fault: bool = False) -> Command | None:
        """The answer if something is refused.

        Args:
            names_fault: whether an exception of Java leaves the handler, so that the answer names it.
        """
        try:
            act()
        except AuthError as error:
            return request.answer(ResponseCode.NO_PERMISSION, str(error))
        except AuthFaultError as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error) if names_fault else _FAULT)
        return None

    def _require_super(self, request: Command) -> None:
        if self._is_not_super(request):
            raise AuthenticationError("The super user can only be update by super user")

    def _is_not_super(self, request: Command) -> bool:
        """Whether another user than a super user sends a request; one that names no user passes."""
        access_key = request.ext_fields.get(ACCESS_KEY)
        return bool(access_key) and not self._auth.users.is_super(access_key or "")


def _list(infos: Iterable[Any]) -> bytes | None:
    listed = tuple(infos)
    return to_json(listed).encode() if listed else None
