"""Whether a request is authentic, and whether its user may send it.

With the stateful strategies a channel is believed: what was decided about its first request holds for
`statefulAuthenticationCacheExpiredSecond`, so a wrong signature passes after a right one, and the other way round.

Mirrors:
    `org.apache.rocketmq.auth.authentication.strategy.*`, `DefaultAuthenticationHandler`;
    `org.apache.rocketmq.auth.authorization.strategy.*`, `UserAuthorizationHandler`, `AclAuthorizationHandler`. A full
    cache drops what was decided first; that of RocketMQ drops what was used least.
"""

import hmac
from collections.abc import Callable, Hashable

from nodes.broker.tables.auth.acls import Acls
from nodes.broker.tables.auth.contexts import AuthContext, AuthRequest, contexts_of
from nodes.broker.tables.auth.errors import AuthenticationError, AuthorizationError
from nodes.broker.tables.auth.policies import Acl
from nodes.broker.tables.auth.users import User, Users, subject_key
from nodes.config.auth import STATEFUL_AUTHENTICATION, STATEFUL_AUTHORIZATION, RequestAuthConfig
from nodes.protocol.acl_signature import signature
from nodes.protocol.auth import Decision, UserStatus, UserType
from nodes.units import MS_PER_S
from nodes.values import frozen

NO_RIGHTS = "Authorization failed. Please verify your access rights and try again."
"""What a client is answered after any other exception, so that it does not learn which."""


def codes_of(whitelist: str) -> frozenset[str]:
    """The requests of a white list, as texts: a text that is no request has no effect."""
    return frozenset(code.strip() for code in whitelist.split(","))


@frozen
class CacheLimits:
    """Limits of the cache of a stateful strategy."""

    max_num: int
    expired_s: int


@frozen
class DecidedOutcome:
    """What was decided about a request."""

    decided_ms: int
    error: AuthenticationError | AuthorizationError | None
    """None: it passes."""

    def require_passed(self) -> None:
        """Raise what was decided, if that is an error."""
        if self.error is not None:
            raise self.error


class DecisionCache:
    """What was decided, for a time from then on.

    Args:
        limits: None: the strategy is stateless, nothing is cached.
    """

    def __init__(self, limits: CacheLimits | None) -> None:
        self._limits = limits
        self._decided: dict[Hashable, DecidedOutcome] = {}

    def find(self, key: Hashable, now_ms: int) -> DecidedOutcome | None:
        """What was decided about the key; None: nothing that holds."""
        found = self._decided.get(key)
        if self._limits is None or found is None:
            return None
        return found if now_ms - found.decided_ms < self._limits.expired_s * MS_PER_S else None

    def put(self, key: Hashable, error: AuthenticationError | AuthorizationError | None, now_ms: int) -> DecidedOutcome:
        """Remember what was decided about the key; returns it."""
        decided = DecidedOutcome(now_ms, error)
        if self._limits is not None:
            self._decided[key] = decided
            while len(self._decided) > self._limits.max_num:
                del self._decided[next(iter(self._decided))]
        return decided

    def decide(self, key: Hashable, check: Callable[[], None], now_ms: int) -> None:
        """Decide, or repeat what was decided about the key.

        Raises:
            AuthenticationError: as `check`.
            AuthorizationError: as `check`.
        """
        (self.find(key, now_ms) or self.put(key, _outcome(check), now_ms)).require_passed()


@frozen
class DecisionCaches:
    """The caches of both strategies."""

    authentication: DecisionCache
    authorization: DecisionCache


def decision_caches(config: RequestAuthConfig) -> DecisionCaches:
    """The caches of the strategies that options name."""
    authentication = CacheLimits(
        config.stateful_authentication_cache_max_num, config.stateful_authentication_cache_expired_second
    )
    authorization = CacheLimits(
        config.stateful_authorization_cache_max_num, config.stateful_authorization_cache_expired_second
    )
    return DecisionCaches(
        DecisionCache(authentication if config.authentication_strategy == STATEFUL_AUTHENTICATION else None),
        DecisionCache(authorization if config.authorization_strategy == STATEFUL_AUTHORIZATION else None),
    )


def _outcome(check: Callable[[], None]) -> AuthenticationError | AuthorizationError | None:
    try:
        check()
    except (AuthenticationError, AuthorizationError) as error:
        return error
    return None


def require_username(username: str | None) -> str:
    """The user that a request names.

    Raises:
        AuthenticationError: it names none.
    """
    if not username:
        raise AuthenticationError("username cannot be null.")
    return username


def require_authentic(username: str, user: User | None, content: bytes, given: str | None) -> None:
    """Check that a request comes from the user that it names.

    Args:
        username: as the request has it.
        user: of that name; None: there is none.
        content: what the signature is of.
        given: the signature, in Base64; None: there is none.

    Raises:
        AuthenticationError: it does not, or the user is disabled.
    """
    if user is None:
        raise AuthenticationError(f"User:{username} is not found.")
    if user.status is UserStatus.DISABLE:
        raise AuthenticationError(f"User:{username} is disabled.")
    expected = signature(content, user.password.reveal())
    if given is None or not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
        raise AuthenticationError("check signature failed.")


def require_permission(username: str, acl: Acl | None, context: AuthContext, source_ip: str) -> None:
    """Check that the policies of a user allow what a request does.

    Raises:
        AuthorizationError: they do not.
    """
    try:
        entry = None if acl is None else acl.deciding(context.resource, context.actions, source_ip)
    except ValueError:
        raise AuthorizationError(NO_RIGHTS) from None
    if entry is not None and entry.decision is Decision.ALLOW:
        return
    detail = "no matched policies." if entry is None else "the decision is deny."
    resource = context.resource.key
    raise AuthorizationError(
        f"{subject_key(username)} has no permission to access {resource} from {source_ip}, {detail}",
        resource=resource,
        actions=tuple(map(str, context.actions)),
    )


class AuthenticationEvaluator:
    """Whether a request comes from the user that it names.

    Args:
        users: those of the broker.
        whitelist: codes of requests that pass.
        cache: of the strategy.
    """

    def __init__(self, users: Users, whitelist: frozenset[str], cache: DecisionCache) -> None:
        self._users = users
        self._whitelist = whitelist
        self._cache = cache

    def evaluate(self, request: AuthRequest, now_ms: int) -> None:
        """Check a request.

        Raises:
            AuthenticationError: it is not authentic.
        """
        key = (request.channel_id, request.username if (request.username or "").strip() else None)
        self._cache.decide(key, lambda: self._check(request), now_ms)

    def _check(self, request: AuthRequest) -> None:
        if str(request.code) in self._whitelist:
            return
        if not self._users.has_provider:
            raise AuthenticationError("The authenticationMetadataProvider is not configured")
        name = require_username(request.username)
        require_authentic(name, self._users.find(name), request.content(), request.signature)


class AuthorizationEvaluator:
    """Whether the user that a request names may do what it does; the name was checked before, or was not.

    A user that is disabled is not refused here.

    Args:
        users: those of the broker.
        acls: their policies.
        cluster_name: of the broker.
        whitelist: codes of requests that pass.
        cache: of the strategy.
    """

    def __init__(
        self, users: Users, acls: Acls, cluster_name: str, whitelist: frozenset[str], cache: DecisionCache
    ) -> None:
        self._users = users
        self._acls = acls
        self._cluster_name = cluster_name
        self._whitelist = whitelist
        self._cache = cache

    def evaluate(self, request: AuthRequest, now_ms: int) -> None:
        """Check a request.

        Raises:
            AuthorizationError: its user may not send it.
        """
        for context in contexts_of(request, self._cluster_name):
            key = (request.channel_id, request.username, context, request.source_ip)
            self._cache.decide(key, lambda context=context: self._check(request, context), now_ms)  # type: ignore[misc]

    def resources(self, request: AuthRequest) -> tuple[str, ...]:
        """What a request that was allowed needs access to, such as `Topic:orders`."""
        return tuple(context.resource.key for context in contexts_of(request, self._cluster_name))

    def _check(self, request: AuthRequest, context: AuthContext) -> None:
        username = request.username
        if str(request.code) in self._whitelist:
            return
        if username is None:
            raise AuthorizationError(NO_RIGHTS)
        if not self._users.has_provider:
            raise AuthorizationError("The authenticationMetadataProvider is not configured")
        user = self._users.find(username)
        if user is None:
            raise AuthorizationError(f"User:{username} not found.")
        if user.type is not UserType.SUPER:
            self._require_allowed(username, request.source_ip, context)

    def _require_allowed(self, username: str, source_ip: str, context: AuthContext) -> None:
        if not self._acls.has_provider:
            raise AuthorizationError("The authorizationMetadataProvider is not configured")
        require_permission(username, self._acls.of_user(username), context, source_ip)
