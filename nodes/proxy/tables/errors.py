"""Why a call fails: the code of its status, and its text.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.common.GrpcProxyException`, `org.apache.rocketmq.proxy.common.ProxyException`.
"""

from nodes.protocol.codes import ResponseCode
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.enums import Code

_PROXY_EXCEPTION = "org.apache.rocketmq.proxy.common.ProxyException"
_FAQ = "\nFor more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"
OK = Status(Code.OK, "OK")


class CallError(Exception):
    """A call, or a part of it, fails with a status."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> Status:
        """The status of the answer."""
        return Status(self.code, str(self))


class ProxyExceptionError(CallError):
    """A rule of the proxy itself; the text begins with the name of RocketMQ's exception."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(code, f"{_PROXY_EXCEPTION}: {message}")
        self.message = message
        """The exception's own message."""


class JavaExceptionError(CallError):
    """An exception that RocketMQ's code does not expect; the text has its message and its class, not the place."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(Code.INTERNAL_SERVER_ERROR, f"{message}. {name}")
        self.message = message
        """The exception's own message."""


class TopicNotExistError(CallError):
    """No nameserver knows the topic."""

    def __init__(self, topic: str) -> None:
        description = f"No topic route info in name server for the topic: {topic}"
        super().__init__(Code.TOPIC_NOT_FOUND, client_exception_text(ResponseCode.TOPIC_NOT_EXIST, description))


def client_exception_text(response_code: int, description: str | None) -> str:
    """The message of an `MQClientException`, and of an `MQBrokerException`."""
    return f"CODE: {response_code}  DESC: {description}{_FAQ}"


def invalid_handle(message: str) -> CallError:
    """The error of a receipt handle that this proxy does not accept."""
    return ProxyExceptionError(Code.INVALID_RECEIPT_HANDLE, message)


def null_pointer(call: str, name: str) -> JavaExceptionError:
    """The error of a call on nothing.

    Args:
        call: the method, with its class.
        name: the variable, or the call that returned nothing.
    """
    return JavaExceptionError("NullPointerException", f'Cannot invoke "{call}" because "{name}" is null')


def null_result(call: str, result_of: str) -> JavaExceptionError:
    """The error of a call on a result that is nothing.

    Args:
        call: the method, with its class.
        result_of: the method that returned nothing, with its class.
    """
    text = f'Cannot invoke "{call}" because the return value of "{result_of}" is null'
    return JavaExceptionError("NullPointerException", text)


def status_of_all(codes: "list[Code]", if_empty: str) -> Status:
    """The status of a call with several results: their code, or that they differ.

    Args:
        codes: of the results.
        if_empty: the text where there are none.
    """
    distinct = list(dict.fromkeys(codes))
    match distinct:
        case []:
            return Status(Code.INTERNAL_SERVER_ERROR, if_empty)
        case [code]:
            return Status(code, code.name)
        case _:
            return Status(Code.MULTIPLE_RESULTS, Code.MULTIPLE_RESULTS.name)
