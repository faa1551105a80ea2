"""All tables of ACL 2.0 of a broker, as configured."""

from collections.abc import Iterable, Iterator

from nodes.broker.tables.auth.acls import Acls
from nodes.broker.tables.auth.contexts import AuthRequest
from nodes.broker.tables.auth.evaluators import (
    AuthenticationEvaluator,
    AuthorizationEvaluator,
    codes_of,
    decision_caches,
)
from nodes.broker.tables.auth.migration import migrate
from nodes.broker.tables.auth.users import Users
from nodes.config.accounts import PlainAccessConfig
from nodes.config.auth import AuthConfig
from nodes.protocol.auth import UserType
from nodes.protocol.bodies_auth import UserInfo
from nodes.values import frozen


@frozen(eq=False)
class AuthTables:
    """Users, policies, and what decides by them.

    Mirrors:
        the parts of `org.apache.rocketmq.broker.BrokerController` about `AuthConfig`.
    """

    config: AuthConfig
    users: Users
    acls: Acls
    authentication: AuthenticationEvaluator
    authorization: AuthorizationEvaluator

    def evaluate(self, request: AuthRequest, now_ms: int) -> None:
        """Check a request: its user, then whether that user may send it.

        Raises:
            AuthenticationError: it is not authentic.
            AuthorizationError: it is not allowed.
        """
        if self.config.authentication_enabled:
            self.authentication.evaluate(request, now_ms)
        if self.config.authorization_enabled:
            self.authorization.evaluate(request, now_ms)

    def resources(self, request: AuthRequest) -> tuple[str, ...]:
        """What a request needs access to, such as `Topic:orders`."""
        return self.authorization.resources(request)

    def begin(self, accounts: Iterable[PlainAccessConfig]) -> Iterator[tuple[str, Exception]]:
        """Create the users that the options name, unless a file had them.

        Returns:
            Access keys of accounts that were not migrated whole, each with what RocketMQ logs of it.

        Raises:
            AuthFaultError: there is no provider of users, so that RocketMQ does not start.
        """
        by_key = {account.access_key: account for account in accounts}
        config = self.config
        for access_key in (config.init_authentication_user, config.inner_client_authentication_credentials):
            if access_key and self.users.get(access_key) is None:
                password = by_key[access_key].secret_key.reveal()
                self.users.create(UserInfo(access_key, password, str(UserType.SUPER)))
        if config.migrate_auth_from_v1_enabled:
            yield from migrate(by_key.values(), self.users, self.acls)

    def delete_user(self, username: str | None) -> None:
        """Remove a user, then its policies.

        Raises:
            AuthenticationError: the name is blank.
            AuthFaultError: there is no provider of users; or none of policies, and the user is gone.
        """
        self.users.delete(username)
        self.acls.forget(username or "")


def auth_tables(config: AuthConfig, cluster_name: str) -> AuthTables:
    """The tables before a broker has read its files."""
    users = Users(has_provider=bool(config.authentication_metadata_provider))
    acls = Acls(users, has_provider=bool(config.authorization_metadata_provider))
    cached = decision_caches(config)
    authentication = AuthenticationEvaluator(users, codes_of(config.authentication_whitelist), cached.authentication)
    authorization = AuthorizationEvaluator(
        users, acls, cluster_name, codes_of(config.authorization_whitelist), cached.authorization
    )
    return AuthTables(config, users, acls, authentication, authorization)
