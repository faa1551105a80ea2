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


def _java_class(*names: str) -> str:
    """An option that names a class of Java; with another one, RocketMQ does not start."""
    rule = Rule(f"{' or '.join(names)}, or empty", lambda value: value == "" or value in names)
    made: str = checked(rule, "")
    return made


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class AuthConfig(Config):
    """Options of ACL 2.0; brokers of a container ignore them, as in 5.3.3.

    Mirrors:
        `org.apache.rocketmq.auth.config.AuthConfig`. Where it has a JSON text with a name and a secret, here is the
        name of an `[[account]]`, which has the secret.
    """

    authentication_enabled: bool = flag(default=False)
    """Refuse requests that no user has signed."""
    authentication_provider: str = _java_class(AUTHENTICATION_PROVIDER)
    """How requests are authenticated; empty: the only one there is."""
    authentication_metadata_provider: str = _java_class(AUTHENTICATION_METADATA)
    """Where users are stored; empty: nowhere, there are none and none can be created."""
    authentication_strategy: str = _java_class(STATELESS_AUTHENTICATION, STATEFUL_AUTHENTICATION)
    """Whether each request of a connection is checked, or what was decided about one holds for a time; empty: each."""
    authentication_whitelist: str = text("", empty=True)
    """Codes of requests that need no signature, separated by `,`."""
    init_authentication_user: str = text("", empty=True)
    """Access key of the `[[account]]` that becomes a super user at the start, unless there is a user of that name."""
    inner_client_authentication_credentials: str = text("", empty=True)
    """Access key of the `[[account]]` with which the broker signs requests to other nodes; it becomes a super user."""
    authorization_enabled: bool = flag(default=False)
    """Refuse requests that no policy of their user allows."""
    authorization_provider: str = _java_class(AUTHORIZATION_PROVIDER)
    """How requests are authorized; empty: the only one there is."""
    authorization_metadata_provider: str = _java_class(AUTHORIZATION_METADATA)
    """Where policies are stored; empty: nowhere, there are none and none can be created."""
    authorization_strategy: str = _java_class(STATELESS_AUTHORIZATION, STATEFUL_AUTHORIZATION)
    """As `authenticationStrategy`, for each resource and action of a request."""
    authorization_whitelist: str = text("", empty=True)
    """Codes of requests that need no permission, separated by `,`."""
    migrate_auth_from_v1_enabled: bool = flag(default=False)
    """Make users and policies of all `[[account]]`s at the start, unless there is a user of that name."""
    stateful_authentication_cache_max_num: int = count(10_000)
    """Most decisions that the stateful strategy of authentication caches."""
    stateful_authentication_cache_expired_second: int = seconds(60)
    """How long such a decision holds."""
    stateful_authorization_cache_max_num: int = count(10_000)
    """Most decisions that the stateful strategy of authorization caches."""
    stateful_authorization_cache_expired_second: int = seconds(60)
    """How long such a decision holds."""
