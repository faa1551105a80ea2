"""What can become of a call; the names follow RocketMQ's remoting exceptions."""


class RemotingError(Exception):
    """A call got no answer."""


class RemotingConnectError(RemotingError):
    """No connection to the address could be opened."""


class RemotingSendRequestError(RemotingError):
    """The connection went away before the answer came."""


class RemotingTimeoutError(RemotingError):
    """No answer in time; whether the request was handled is unknown."""
