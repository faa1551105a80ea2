"""The options of ACL 2.0."""

import attrs

from nodes.config.options import Config, count, name_options, seconds
from nodes.fields import Rule, checked, flag, text

_PACKAGE = "org.apache.rocketmq.auth"
AUTHENTICATION_PROVIDER = f"{_PACKAGE}.authentication.provider.DefaultAuthenticationProvider"
AUTHENTICATION_METADATA = f"{_PACKAGE}.authentication.provider.LocalAuthenticationMetadataProvider"
STATELESS_AUTHENTICATION = f"{_PACKAGE}.authentication.strategy.StatelessAuthenticationStrategy"
STATEFUL_AUTHENTICATION = f"{_PACKAGE}.authentication.strategy.StatefulAuthenticationStrategy"
AUTHORIZATION_PROVIDER = f"{_PACKAGE}.authorization.provider.DefaultAuthorizationProvider"
AUTHORIZATION_METADATA = f"{_PACKAGE}.authorization.provider.LocalAuthorizationMetadataProvider"
STATELESS_AUTHORIZATION = f"{_PACKAGE}.authorization.strategy.StatelessAuthorizationStrategy"
STATEFUL_AUTHORIZATION = f"{_PACKAGE}.authorization.strategy.StatefulAuthorizationStrategy"
_OF_PROXIES = "org.apache.rocketmq.proxy.auth"
PROXY_AUTHENTICATION_METADATA = f"{_OF_PROXIES}.ProxyAuthenticationMetadataProvider"
PROXY_AUTHORIZATION_METADATA = f"{_OF_PROXIES}.ProxyAuthorizationMetadataProvider"


def _java_class(*names: str) -> str:
    """An option that names a class of Java; with another one, RocketMQ does not start."""
    rule = Rule(f"{' or '.join(names)}, or empty", lambda value: value == "" or value in names)
    made: str = checked(rule, "")
    return made


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class RequestAuthConfig(Config):
    """How brokers and proxies check requests by ACL 2.0."""

    authentication_enabled: bool = flag(default=False)
    """Refuse requests that no user has signed."""
    authentication_provider: str = _java_class(AUTHENTICATION_PROVIDER)
    """How requests are authenticated; empty: the only one there is."""
    authentication_strategy: str = _java_class(STATELESS_AUTHENTICATION, STATEFUL_AUTHENTICATION)
    """Whether each request of a connection is checked, or what was decided about one holds for a time; empty: each."""
    authentication_whitelist: str = text("", empty=True)
    """Requests that need no signature, separated by `,`: their codes at a broker, names such as
    `apache.rocketmq.v2.HeartbeatRequest` at a proxy."""
    authorization_enabled: bool = flag(default=False)
    """Refuse requests that no policy of their user allows."""
    authorization_provider: str = _java_class(AUTHORIZATION_PROVIDER)
    """How requests are authorized; empty: the only one there is."""
    authorization_strategy: str = _java_class(STATELESS_AUTHORIZATION, STATEFUL_AUTHORIZATION)
    """As `authenticationStrategy`, for each resource and action of a request."""
    authorization_whitelist: str = text("", empty=True)
    """Requests that need no permission, as in `authenticationWhitelist`."""
    stateful_authentication_cache_max_num: int = count(10_000)
    """Most decisions that the stateful strategy of authentication caches."""
    stateful_authentication_cache_expired_second: int = seconds(60)
    """How long such a decision holds."""
    stateful_authorization_cache_max_num: int = count(10_000)
    """Most decisions that the stateful strategy of authorization caches."""
    stateful_authorization_cache_expired_second: int = seconds(60)
    """How long such a decision holds."""

    @property
    def has_auth(self) -> bool:
        """Whether requests are checked at all."""
        return self.authentication_enabled or self.authorization_enabled


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class AuthConfig(RequestAuthConfig):
    """Options of ACL 2.0 of a broker; brokers of a container ignore them, as in 5.3.3.

    Mirrors:
        `org.apache.rocketmq.auth.config.AuthConfig`. Where it has a JSON text with a name and a secret, here is the
        name of an `[[account]]`, which has the secret.
    """

    authentication_metadata_provider: str = _java_class(AUTHENTICATION_METADATA)
    """Where users are stored; empty: nowhere, there are none and none can be created."""
    init_authentication_user: str = text("", empty=True)
    """Access key of the `[[account]]` that becomes a super user at the start, unless there is a user of that name."""
    inner_client_authentication_credentials: str = text("", empty=True)
    """Access key of the `[[account]]` with which the broker signs requests to other nodes; it becomes a super user."""
    authorization_metadata_provider: str = _java_class(AUTHORIZATION_METADATA)
    """Where policies are stored; empty: nowhere, there are none and none can be created."""
    migrate_auth_from_v1_enabled: bool = flag(default=False)
    """Make users and policies of all `[[account]]`s at the start, unless there is a user of that name."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class ProxyAuthConfig(RequestAuthConfig):
    """Options of ACL 2.0 of a proxy, which has no users and policies of its own.

    Mirrors:
        `org.apache.rocketmq.auth.config.AuthConfig` as `org.apache.rocketmq.proxy.config.Configuration` reads it from
        the file of the proxy.
    """

    authentication_metadata_provider: str = _java_class(PROXY_AUTHENTICATION_METADATA)
    """Where users are asked for: a broker of the cluster; empty: nowhere, and none is known."""
    authorization_metadata_provider: str = _java_class(PROXY_AUTHORIZATION_METADATA)
    """Where policies are asked for: a broker of the cluster; empty: nowhere, and none is known."""
    inner_client_authentication_credentials: str = text("", empty=True)
    """Access key of the `[[account]]` with which the proxy signs its requests to nameservers and brokers."""
    enable_acl_rpc_hook_for_cluster_mode: bool = flag(default=False)
    """Whether the proxy signs at all: without it brokers with `authenticationEnabled` refuse its requests."""
    user_cache_expired_seconds: int = seconds(300)
    """A user whose requests did not come for this long is forgotten."""
    user_cache_refresh_seconds: int = seconds(20)
    """From this age on the next request of a user starts a reload, and still counts with what was known; a user that
    brokers do not know is remembered as unknown in the same way."""
    acl_cache_expired_seconds: int = seconds(300)
    """As of users, of their policies."""
    acl_cache_refresh_seconds: int = seconds(20)
    """As of users, of their policies."""
