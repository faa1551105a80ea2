"""The result of a call: gRPC's status codes."""

from enum import IntEnum


class GrpcStatus(IntEnum):
    """A status code of gRPC; RocketMQ's own codes stand inside its answers, with status OK."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class GrpcError(Exception):
    """A call ends with a status other than OK.

    Mirrors:
        `StatusRuntimeException`.
    """

    def __init__(self, status: GrpcStatus, text: str = "") -> None:
        super().__init__(f"{status.name}: {text}" if text else status.name)
        self.status = status
        self.text = text


class ConnectionLimitError(Exception):
    """The peer has exceeded a limit, or broken the protocol; the connection must end. The text says why."""
