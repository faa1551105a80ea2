"""Why a request about users and policies, or any request, is refused; the texts are RocketMQ's."""


class AuthError(Exception):
    """A request is refused."""


class AclError(Exception):
    """ACL 1.0 refuses a request; the text is what RocketMQ's exception says."""


class AuthenticationError(AuthError):
    """A request is not of the user that it names, or a change of users is refused."""


class AuthorizationError(AuthError):
    """A request is not allowed, or a change of policies is refused.

    Args:
        resource: which one may not be accessed, such as `Topic:orders`; empty: the text does not depend on one.
        actions: of which one would have to be allowed.
    """

    def __init__(self, text: str, *, resource: str = "", actions: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.resource = resource
        self.actions = actions


class AuthFaultError(Exception):
    """RocketMQ fails with an exception of Java: a metadata provider or a subject is missing; the text has its name."""
