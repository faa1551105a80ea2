"""The checks of every request that a broker with ACL gets, before its handler."""

from collections.abc import Callable

from nodes.broker.clients.denied_beliefs import Denial, DeniedBeliefs
from nodes.broker.tables.auth.auth_tables import AuthTables
from nodes.broker.tables.auth.contexts import AuthRequest
from nodes.broker.tables.auth.errors import AclError, AuthenticationError, AuthError, AuthorizationError
from nodes.broker.tables.clients.plain_access import AccessRequest, PlainPermissionManager
from nodes.host import Channel, Host, Logger
from nodes.protocol.acl_signature import ACCESS_KEY
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command

_EXCEPTION = "org.apache.rocketmq.acl.common.AclException"
_LOCAL = ":0"
"""End of the address of an operator on the broker's own machine: his verbs take no network and need no keys."""
Refusal = Callable[[Channel, Command], Command | None]


class AclHook:
    """Refuses requests that the accounts of ACL 1.0 do not allow, those of other brokers included.

    The answer is SYSTEM_ERROR with the exception in its remark, as of every exception of a hook, without the place in
    the source that RocketMQ adds.

    Mirrors:
        `BrokerController#initialAcl` and `NettyRemotingAbstract#buildProcessRequestHandler` of 5.3.2.
    """

    def __init__(self, log: Logger, access: PlainPermissionManager, denied: DeniedBeliefs) -> None:
        self._log = log
        self._access = access
        self._denied = denied

    def refusal(self, channel: Channel, request: Command) -> Command | None:
        """The answer to a refused request; None: it may pass."""
        address = channel.remote_address
        if address.endswith(_LOCAL):
            return None
        ip, user = address.rpartition(":")[0], request.ext_fields.get(ACCESS_KEY) or ""
        try:
            self._access.validate(AccessRequest(ip, request.code, request.ext_fields, request.body, request.version))
        except AclError as error:
            self._log.warning("request refused", code=request.code, address=address, error=str(error))
            self._denied.on_denied(Denial(user, ip, request.code), str(error))
            return request.answer(ResponseCode.SYSTEM_ERROR, f"{_EXCEPTION}: {error}")
        self._denied.on_allowed(user, ip, request.code, tuple)
        return None


class AuthPipeline:
    """Refuses requests that are not authentic, then those that no policy allows, those of other brokers included.

    A request that is refused leaves a line in the log, as in RocketMQ's audit log, which has those that pass on its
    level `debug`. The signature is not among what is logged.

    Mirrors:
        `org.apache.rocketmq.broker.auth.pipeline.AuthenticationPipeline`, `AuthorizationPipeline`, and the audit lines
        of `DefaultAuthenticationProvider` and `DefaultAuthorizationProvider`.
    """

    def __init__(self, host: Host, auth: AuthTables, denied: DeniedBeliefs) -> None:
        self._host = host
        self._auth = auth
        self._denied = denied

    def refusal(self, channel: Channel, request: Command) -> Command | None:
        """The answer to a refused request; None: it may pass."""
        address = channel.remote_address
        if address.endswith(_LOCAL):
            return None
        ip = address.rpartition(":")[0]
        sent = AuthRequest(str(channel.id), ip, request.code, request.ext_fields, request.body, request.version)
        try:
            self._auth.evaluate(sent, self._host.clock.now_ms())
        except AuthError as error:
            check = "authentication" if isinstance(error, AuthenticationError) else "authorization"
            user = sent.username or ""
            self._host.log.info(
                "request denied", check=check, user=user, code=request.code, address=address, error=str(error)
            )
            resource, actions = (error.resource, error.actions) if isinstance(error, AuthorizationError) else ("", ())
            self._denied.on_denied(Denial(user, ip, request.code, resource), str(error), actions)
            return request.answer(ResponseCode.NO_PERMISSION, str(error))
        self._denied.on_allowed(sent.username or "", ip, request.code, lambda: self._auth.resources(sent))
        return None
