"""Calls and answers with typed headers and bodies."""

from typing import Any

import attrs

from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.registry import encode_body, encode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError


async def invoke(
    client: RpcClient,
    address: str,
    code: RequestCode,
    header: "attrs.AttrsInstance | None" = None,
    body: "attrs.AttrsInstance | bytes | None" = None,
    *,
    timeout_ms: int,
) -> Command:
    """Send a request and wait for the answer (`invokeSync`).

    Args:
        body: a value of the registry, or bytes: one that is encoded already, or a raw one.

    Returns:
        The answer, whatever its code.

    Raises:
        RemotingError: there was no answer.
    """
    fields = NO_FIELDS if header is None else encode_header(header)
    content = None if body is None else encode_body(body)
    return await client.call(address, int(code), fields, content, timeout_ms=timeout_ms)


def invoke_oneway(
    client: RpcClient,
    address: str,
    code: RequestCode,
    header: "attrs.AttrsInstance | None" = None,
    body: "attrs.AttrsInstance | bytes | None" = None,
) -> None:
    """Send a oneway request (`invokeOneway`)."""
    fields = NO_FIELDS if header is None else encode_header(header)
    client.oneway(address, int(code), fields, None if body is None else encode_body(body))


def succeeded(answer: Command) -> Command:
    """Return the answer if its code is SUCCESS.

    Raises:
        BrokerError: it is not.
    """
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark)
    return answer


def success(request: Command, header: Any = None, body: Any = None) -> Command:
    """The SUCCESS answer to a request."""
    fields = NO_FIELDS if header is None else encode_header(header)
    return request.answer(0, None, fields, None if body is None else encode_body(body))
