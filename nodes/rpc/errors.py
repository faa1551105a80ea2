"""Errors of calls; the names follow RocketMQ's remoting exceptions."""


class RemotingError(Exception):
    """A call got no answer."""


class RemotingConnectError(RemotingError):
    """No connection to the address could be opened."""


class RemotingSendRequestError(RemotingError):
    """The connection was closed before the answer arrived."""


class RemotingTimeoutError(RemotingError):
    """No answer in time; whether the request was handled is unknown."""
