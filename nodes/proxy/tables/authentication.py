"""Whose a call is, by its metadata.

Mirrors:
    `org.apache.rocketmq.auth.authentication.builder.DefaultAuthenticationContextBuilder`, for calls of gRPC.
"""

import base64
import re

from nodes.broker.tables.auth.errors import AuthenticationError
from nodes.protocol.headers_proxy import CallMetadataHeader
from nodes.values import frozen

_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")


@frozen
class CallAuthentication:
    """Whose a call claims to be."""

    username: str | None = None
    """None: it names no user."""
    signature: str | None = None
    """In Base64."""
    content: bytes = b""
    """What is signed: the instant of the call alone, so that a signature is good for every call, for ever."""


def authentication_of(metadata: CallMetadataHeader) -> CallAuthentication:
    """Read `authorization`, whose first word may be any.

    Raises:
        AuthenticationError: it cannot be read.
    """
    authorization, date_time = metadata.authorization, metadata.date_time
    if not authorization:
        return CallAuthentication()
    if not date_time:
        raise AuthenticationError("datetime is null.")
    _, space, rest = authorization.partition(" ")
    if not space:
        raise AuthenticationError("authentication header is incorrect.")
    username, signature = None, None
    for item in _split(rest, ","):
        name, equals, value = item.strip().partition("=")
        if not equals:
            raise AuthenticationError("authentication keyValues length is incorrect, actual length=1.")
        if name == "Credential":
            username = _username(value)
        elif name == "Signature":
            signature = _base64(value)
    return CallAuthentication(username, signature, date_time.encode())


def _username(credential: str) -> str:
    parts = _split(credential, "/")
    if not parts:
        raise AuthenticationError("authentication credential length is incorrect, actual length=0.")
    return parts[0]


def _base64(signature: str) -> str:
    if _HEX.fullmatch(signature) is None:
        raise AuthenticationError("create authentication context error.")
    return base64.b64encode(bytes.fromhex(signature)).decode()


def _split(text: str, separator: str) -> list[str]:
    """The parts of a text as Java splits it: without those at the end that are empty."""
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and separator in text else parts
