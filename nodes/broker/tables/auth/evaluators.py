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
from nodes.broker.tables.auth.users import Users, subject_key
from nodes.protocol.acl_signature import signature
from nodes.protocol.auth import Decision, UserStatus, UserType
from nodes.units import MS_PER_S
from nodes.values import frozen

_NO_RIGHTS = "Authorization failed. Please verify your access rights and try again."


def codes_of(whitelist: str) -> frozenset[str]:
    """The request codes of a white list, as texts: a text that is no code has no effect."""
    return frozenset(code.strip() for code in whitelist.split(","))


@frozen
class CacheLimits:
    """Limits of the cache of a stateful strategy."""

    max_num: int
    expired_s: int


class DecisionCache:
    """What was decided, for a time from then on.

    Args:
        limits: None: the strategy is stateless, nothing is cached.
    """

    def __init__(self, limits: CacheLimits | None) -> None:
        self._limits = limits
        self._decided: dict[Hashable, tuple[int, AuthenticationError | AuthorizationError | None]] = {}

    def decide(self, key: Hashable, check: Callable[[], None], now_ms: int) -> None:
        """Decide, or repeat what was decided about the key.

        Raises:
            AuthenticationError: as `check`.
            AuthorizationError: as `check`.
        """
        limits = self._limits
        if limits is None:
            check()
            return
        found = self._decided.get(key)
        if found is None or now_ms - found[0] >= limits.expired_s * MS_PER_S:
            found = self._decided[key] = (now_ms, _outcome(check))
            while len(self._decided) > limits.max_num:
                del self._decided[next(iter(self._decided))]
        if found[1] is not None:
            raise found[1]


def _outcome(check: Callable[[], None]) -> AuthenticationError | AuthorizationError | None:
    try:
        check()
    except (AuthenticationError, AuthorizationError) as error:
        return error
    return None


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
        if not request.username:
            raise AuthenticationError("username cannot be null.")
        user = self._users.find(request.username)
        if user is None:
            raise AuthenticationError(f"User:{request.username} is not found.")
        if user.status is UserStatus.DISABLE:
            raise AuthenticationError(f"User:{request.username} is disabled.")
        expected = signature(request.content(), user.password.reveal())
        given = request.signature
        if given is None or not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
            raise AuthenticationError("check signature failed.")


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
            raise AuthorizationError(_NO_RIGHTS)
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
        acl = self._acls.of_user(username)
        try:
            entry = None if acl is None else acl.deciding(context.resource, context.actions, source_ip)
        except ValueError:
            raise AuthorizationError(_NO_RIGHTS) from None
        if entry is not None and entry.decision is Decision.ALLOW:
            return
        detail = "no matched policies." if entry is None else "the decision is deny."
        resource = context.resource.key
        raise AuthorizationError(
            f"{subject_key(username)} has no permission to access {resource} from {source_ip}, {detail}",
            resource=resource,
            actions=tuple(map(str, context.actions)),
        )
