"""The checks of every call and every request that a proxy with ACL 2.0 gets, before its handler.

Users and policies are those that a broker of the cluster reports; they are cached, so that a change takes effect 20 s
later at the earliest. With the stateful strategies a connection is believed, as at brokers.
"""

from collections.abc import Callable, Iterable
from typing import Any

from nodes.broker.clients.denied_beliefs import Denial, DeniedBeliefs
from nodes.broker.tables.auth.contexts import AuthContext, AuthRequest, contexts_of
from nodes.broker.tables.auth.errors import AuthenticationError, AuthError, AuthorizationError
from nodes.broker.tables.auth.evaluators import (
    NO_RIGHTS,
    codes_of,
    decision_caches,
    require_authentic,
    require_permission,
    require_username,
)
from nodes.config.auth import ProxyAuthConfig
from nodes.config.proxy import ProxyConfig
from nodes.host import Channel, Host
from nodes.protocol.auth import UserType
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.proxy.metadata_service import MetadataService
from nodes.proxy.tables.authentication import CallAuthentication, authentication_of
from nodes.proxy.tables.authorization import contexts_of_call, name_of_call
from nodes.proxy.tables.errors import CallError
from nodes.values import frozen

_NOT_AUTHENTIC = "Authentication failed. Please verify the credentials and try again."
"""What a client is answered when its user could not be asked for, such as by a proxy that does not sign."""

_UserOf = Callable[[CallAuthentication], str | None]
"""Returns whose permissions count, given whose a call claims to be."""


@frozen
class CheckedCall:
    """A call, or a request, as far as its permission depends on it."""

    channel_id: str
    source_ip: str
    code: int
    name: str
    """As white lists have it: of its message, or the code of a request."""


class AuthenticationPipeline:
    """Refuses calls that no user has signed.

    Mirrors:
        `org.apache.rocketmq.proxy.grpc.pipeline.AuthenticationPipeline`,
        `org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider`.
    """

    def __init__(self, host: Host, config: ProxyAuthConfig, metadata: MetadataService) -> None:
        self._host = host
        self._has_provider = bool(config.authentication_metadata_provider)
        self._whitelist = codes_of(config.authentication_whitelist)
        self._cache = decision_caches(config).authentication
        self._metadata = metadata

    async def execute(self, call: CheckedCall, claim: CallAuthentication) -> None:
        """Check a call.

        Raises:
            AuthenticationError: it is not authentic.
        """
        now_ms = self._host.clock.now_ms()
        key = (call.channel_id, claim.username if (claim.username or "").strip() else None)
        decided = self._cache.find(key, now_ms)
        if decided is None:
            decided = self._cache.put(key, await self._check(call, claim), now_ms)
        decided.require_passed()

    async def _check(self, call: CheckedCall, claim: CallAuthentication) -> AuthenticationError | None:
        if call.name in self._whitelist:
            return None
        try:
            await self._require_authentic(claim)
        except AuthenticationError as error:
            return error
        except CallError:
            return AuthenticationError(_NOT_AUTHENTIC)
        return None

    async def _require_authentic(self, claim: CallAuthentication) -> None:
        if not self._has_provider:
            raise AuthenticationError("The authenticationMetadataProvider is not configured")
        name = require_username(claim.username)
        require_authentic(name, await self._metadata.user(name), claim.content, claim.signature)


class AuthorizationPipeline:
    """Refuses calls that no policy of their user allows.

    Mirrors:
        `org.apache.rocketmq.proxy.grpc.pipeline.AuthorizationPipeline`,
        `org.apache.rocketmq.proxy.auth.ProxyAuthorizationMetadataProvider`.
    """

    def __init__(self, host: Host, config: ProxyAuthConfig, metadata: MetadataService) -> None:
        self._host = host
        self._has_users = bool(config.authentication_metadata_provider)
        self._has_policies = bool(config.authorization_metadata_provider)
        self._whitelist = codes_of(config.authorization_whitelist)
        self._cache = decision_caches(config).authorization
        self._metadata = metadata

    async def execute(self, call: CheckedCall, username: str | None, contexts: tuple[AuthContext, ...]) -> None:
        """Check a call.

        Args:
            username: None: it has no user.
            contexts: what it needs.

        Raises:
            AuthorizationError: its user may not make it.
        """
        for context in contexts:
            now_ms = self._host.clock.now_ms()
            key = (call.channel_id, username, context, call.source_ip)
            decided = self._cache.find(key, now_ms)
            if decided is None:
                decided = self._cache.put(key, await self._check(call, username, context), now_ms)
            decided.require_passed()

    async def _check(self, call: CheckedCall, username: str | None, context: AuthContext) -> AuthorizationError | None:
        if call.name in self._whitelist:
            return None
        try:
            await self._require_allowed(call, username, context)
        except AuthorizationError as error:
            return error
        except CallError:
            return AuthorizationError(NO_RIGHTS)
        return None

    async def _require_allowed(self, call: CheckedCall, username: str | None, context: AuthContext) -> None:
        if username is None:
            raise AuthorizationError(NO_RIGHTS)
        if not self._has_users:
            raise AuthorizationError("The authenticationMetadataProvider is not configured")
        user = await self._metadata.user(username)
        if user is None:
            raise AuthorizationError(f"User:{username} not found.")
        if user.type is UserType.SUPER:
            return
        if not self._has_policies:
            raise AuthorizationError("The authorizationMetadataProvider is not configured")
        require_permission(username, await self._metadata.acl(username), context, call.source_ip)


class RequestPipeline:
    """Both checks, as options have them, and what shows of them.

    Both ports have the same evaluators, so what a stateful strategy has cached counts at either.

    Emits:
        DENIED.

    Mirrors:
        `org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication#create`,
        `org.apache.rocketmq.proxy.remoting.RemotingProtocolServer#createRequestPipeline`.
    """

    def __init__(self, host: Host, config: ProxyConfig, metadata: MetadataService) -> None:
        self._host = host
        self._authenticates = config.authentication_enabled
        self._authorizes = config.authorization_enabled
        self._is_off = not (self._authenticates or self._authorizes)
        self._cluster_name = config.rocket_m_q_cluster_name
        self._authentication = AuthenticationPipeline(host, config, metadata)
        self._authorization = AuthorizationPipeline(host, config, metadata)
        self._denied = DeniedBeliefs(host)

    async def check_call(self, channel: Channel, code: RequestCode, metadata: CallMetadataHeader, request: Any) -> None:
        """Check a call.

        Raises:
            AuthError: it is refused.
            CallError: its settings are of no client.
        """
        if self._is_off:
            return
        await self._check(
            CheckedCall(str(channel.id), _ip(channel), code, name_of_call(request)),
            lambda: authentication_of(metadata),
            lambda claim: _user(metadata, claim),
            lambda: contexts_of_call(request),
        )

    async def check_request(self, channel: Channel, request: Command) -> None:
        """Check a request of a client of RocketMQ 4.

        Raises:
            AuthError: it is refused.
        """
        if self._is_off:
            return
        ip = _ip(channel)
        sent = AuthRequest(str(channel.id), ip, request.code, request.ext_fields, request.body, request.version)
        await self._check(
            CheckedCall(sent.channel_id, ip, request.code, str(int(request.code))),
            lambda: CallAuthentication(sent.username, sent.signature, sent.content()),
            lambda _: sent.username,
            lambda: contexts_of(sent, self._cluster_name),
        )

    async def _check(
        self,
        call: CheckedCall,
        claimed: Callable[[], CallAuthentication],
        user_of: _UserOf,
        contexts: Callable[[], tuple[AuthContext, ...]],
    ) -> None:
        claim = CallAuthentication()
        try:
            if self._authenticates:
                claim = claimed()
                await self._authentication.execute(call, claim)
            if self._authorizes:
                await self._authorization.execute(call, user_of(claim), contexts())
        except AuthError as error:
            self._on_denied(Denial(_name(claim, user_of), call.source_ip, call.code), error)
            raise
        self._denied.on_allowed(_name(claim, user_of), call.source_ip, call.code, lambda: _keys(contexts()))

    def _on_denied(self, denial: Denial, error: AuthError) -> None:
        check = "authentication" if isinstance(error, AuthenticationError) else "authorization"
        self._host.log.info(
            "call denied", check=check, user=denial.user, code=int(denial.code), ip=denial.ip, error=str(error)
        )
        if isinstance(error, AuthorizationError):
            denied = Denial(denial.user, denial.ip, denial.code, error.resource)
            self._denied.on_denied(denied, str(error), error.actions)
        else:
            self._denied.on_denied(denial, str(error))


def _ip(channel: Channel) -> str:
    return channel.remote_address.rpartition(":")[0]


def _name(claim: CallAuthentication, user_of: _UserOf) -> str:
    return claim.username or user_of(claim) or ""


def _keys(contexts: Iterable[AuthContext]) -> Iterable[str]:
    return [context.resource.key for context in contexts]


def _user(metadata: CallMetadataHeader, claim: CallAuthentication) -> str | None:
    """Whose permissions count: the proxy writes the user into the metadata of a call, unless the client has already.

    So a client with a user of its own may name any other, and needs no key of that.
    """
    if metadata.authorization_ak is not None:
        return metadata.authorization_ak
    return claim.username if (claim.username or "").strip() else None
