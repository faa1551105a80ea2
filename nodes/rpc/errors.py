"""Errors of calls; the names follow RocketMQ's remoting exceptions."""


class RemotingError(Exception):
    """A call got no answer."""


class RemotingConnectError(RemotingError):
    """No connection to the address could be opened."""


class RemotingSendRequestError(RemotingError):
    """The connection was closed before the answer arrived."""


class RemotingTimeoutError(RemotingError):
    """No answer in time; whether the request was handled is unknown."""


class BrokerError(Exception):
    """The answer has an error code; the names follow `MQBrokerException`."""

    def __init__(self, code: int, remark: str | None) -> None:
        super().__init__(f"CODE: {code} DESC: {remark}")
        self.code = code
        self.remark = remark
