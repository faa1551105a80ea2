"""The users of a broker.

Mirrors:
    `org.apache.rocketmq.auth.authentication.model.User`, `Subject`;
    `org.apache.rocketmq.auth.authentication.manager.AuthenticationMetadataManagerImpl` over
    `LocalAuthenticationMetadataProvider`: its cache is invalidated by each change, so that none is visible here.
"""

import attrs

from nodes.broker.tables.auth.errors import AuthenticationError, AuthFaultError
from nodes.protocol.auth import SubjectType, UserStatus, UserType, by_name
from nodes.protocol.bodies_auth import UserInfo
from nodes.secret import Secret
from nodes.values import frozen


@frozen
class User:
    """A user."""

    username: str
    password: Secret
    type: UserType = UserType.NORMAL
    status: UserStatus = UserStatus.ENABLE

    def info(self) -> UserInfo:
        """As requests and answers have it."""
        return UserInfo(self.username, self.password.reveal(), str(self.type), str(self.status))


def user_of(info: UserInfo) -> User:
    """The user that a request or an answer has; a type or status of another name is the default."""
    kind = by_name(UserType, info.user_type) or UserType.NORMAL
    status = by_name(UserStatus, info.user_status) or UserStatus.ENABLE
    return User(info.username or "", Secret(info.password or ""), kind, status)


def subject_key(username: str) -> str:
    """The key of the subject that a user is."""
    return f"{SubjectType.USER}:{username}"


def username_of(subject: str | None) -> str | None:
    """The name of the user in the key of a subject; None: it is no key."""
    kind, _, name = (subject or "").partition(":")
    return None if by_name(SubjectType, kind) is None else name


class Users:
    """The users, by name.

    Args:
        has_provider: whether `authenticationMetadataProvider` names the local one; without, there are none.
    """

    def __init__(self, *, has_provider: bool = True) -> None:
        self._users: dict[str, User] = {}
        self.has_provider = has_provider

    def create(self, given: UserInfo) -> None:
        """Add a user; a type or status of another name is the default.

        Raises:
            AuthenticationError: it has no name or password, or there is one of that name.
            AuthFaultError: there is no provider.
        """
        username = _require_name(given.username)
        if not (given.password or "").strip():
            raise AuthenticationError("password can not be blank")
        if self.get(username) is not None:
            raise AuthenticationError("The user is existed")
        self._users[username] = user_of(given)

    def update(self, given: UserInfo) -> None:
        """Change of a user what is given.

        Raises:
            AuthenticationError: it has no name, or there is no such user.
            AuthFaultError: there is no provider.
        """
        old = self.get(_require_name(given.username))
        if old is None:
            raise AuthenticationError("The user is not exist")
        has_password = bool((given.password or "").strip())
        self._users[old.username] = attrs.evolve(
            old,
            password=Secret(given.password) if has_password else old.password,
            type=by_name(UserType, given.user_type) or old.type,
            status=by_name(UserStatus, given.user_status) or old.status,
        )

    def delete(self, username: str | None) -> None:
        """Remove a user, if there is one.

        Raises:
            AuthenticationError: the name is blank.
            AuthFaultError: there is no provider.
        """
        self._users.pop(self._named(username), None)

    def get(self, username: str | None) -> User | None:
        """The user of a name.

        Raises:
            AuthenticationError: the name is blank.
            AuthFaultError: there is no provider.
        """
        return self._users.get(self._named(username))

    def find(self, username: str) -> User | None:
        """The user of a name, which may be any text."""
        return self._users.get(username)

    def listed(self, wanted: str | None = None) -> tuple[User, ...]:
        """All users whose names contain a text, in the order of the bytes of their names.

        Raises:
            AuthFaultError: there is no provider.
        """
        self._require_provider()
        part = (wanted or "") if (wanted or "").strip() else ""
        names = sorted((name for name in self._users if part in name), key=str.encode)
        return tuple(self._users[name] for name in names)

    def is_super(self, username: str) -> bool:
        """Whether a user may do everything.

        Raises:
            AuthenticationError: there is no such user.
            AuthFaultError: there is no provider.
        """
        user = self.get(username)
        if user is None:
            raise AuthenticationError(f"User:{username} is not found")
        return user.type is UserType.SUPER

    def restore(self, users: tuple[UserInfo, ...]) -> None:
        """Have the users that a file has."""
        for user in users:
            self.create(user)

    def _named(self, username: str | None) -> str:
        name = _require_name(username)
        self._require_provider()
        return name

    def _require_provider(self) -> None:
        if not self.has_provider:
            raise AuthFaultError(
                "java.lang.IllegalStateException: The authenticationMetadataProvider is not configured"
            )


def _require_name(username: str | None) -> str:
    if not (username or "").strip():
        raise AuthenticationError("username can not be blank")
    return username or ""
