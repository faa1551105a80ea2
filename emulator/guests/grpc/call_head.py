"""The headers of a call: what a client sends first, and what a server answers."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from hpack import HeaderTuple, NeverIndexedHeaderTuple

from emulator.guests.grpc.message_frames import GZIP, IDENTITY
from emulator.guests.grpc.status import GrpcStatus
from nodes.values import frozen

Headers = Iterable[tuple[bytes, bytes]]
CONTENT_TYPE: Final = "application/grpc"
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNIT_NS = {"H": 3_600_000_000_000, "M": 60_000_000_000, "S": 1_000_000_000, "m": 1_000_000, "u": 1_000, "n": 1}
_RESERVED = ("grpc-", "te", "content-type")
_HTTP_OK = HeaderTuple(":status", "200")
_TYPE = HeaderTuple("content-type", CONTENT_TYPE)
_RESPONSE = (
    _HTTP_OK,
    _TYPE,
    HeaderTuple("grpc-encoding", IDENTITY),
    HeaderTuple("grpc-accept-encoding", GZIP),
)
_TEXT_BYTES_MAX = 4_096
"""Of a status; a longer one would exceed what clients accept as trailers."""
_SAFE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


@frozen
class CallHead:
    """What a client sends before its messages."""

    path: str
    """Service and method, such as `apache.rocketmq.v2.MessagingService/QueryRoute`."""
    metadata: Mapping[str, str]
    """Mapping name, in lower case -> value; of several values the last."""
    timeout_ns: int | None = None
    """How long the client waits, from the arrival on; None: without end."""
    encoding: str = IDENTITY
    """Of compressed messages."""
    authority: str = ""
    """The `host:port` that the client believes it has dialed."""


class CallRefusedError(Exception):
    """Headers that are no call of gRPC.

    Args:
        http_status: None: the call is reset without an answer.
    """

    def __init__(self, http_status: int | None, status: GrpcStatus, text: str) -> None:
        super().__init__(text)
        self.http_status = http_status
        self.status = status
        self.text = text


def read_call(headers: Headers) -> CallHead:
    """The head of a call.

    Raises:
        CallRefusedError: it is none.

    Mirrors:
        `NettyServerHandler.onHeadersRead` of grpc-java, in its order.
    """
    texts = {_ascii(name): _ascii(value) for name, value in headers}
    path = texts.get(":path", "")
    if not path.startswith("/"):
        raise CallRefusedError(404, GrpcStatus.UNIMPLEMENTED, f"Expected path to start with /: {path}")
    content_type = texts.get("content-type")
    if content_type is None:
        raise CallRefusedError(415, GrpcStatus.INTERNAL, "Content-Type is missing from the request")
    if content_type != CONTENT_TYPE and not content_type.startswith((CONTENT_TYPE + "+", CONTENT_TYPE + ";")):
        raise CallRefusedError(415, GrpcStatus.INTERNAL, f"Content-Type '{content_type}' is not supported")
    if texts.get(":method") != "POST":
        raise CallRefusedError(405, GrpcStatus.INTERNAL, f"Method '{texts.get(':method')}' is not supported")
    metadata = {name: text for name, text in texts.items() if not name.startswith((":", *_RESERVED))}
    return CallHead(
        path[1:],
        metadata,
        _timeout_ns(texts.get("grpc-timeout")),
        texts.get("grpc-encoding", IDENTITY),
        texts.get(":authority", ""),
    )


def metadata_bytes(headers: Headers) -> int:
    """The size of metadata, as HTTP/2 counts it."""
    return sum(len(name) + len(value) + 32 for name, value in headers)


def response_headers() -> tuple[HeaderTuple, ...]:
    """What a server sends before its messages."""
    return _RESPONSE


def trailers(status: GrpcStatus, text: str, *, alone: bool) -> list[HeaderTuple]:
    """How a call ends.

    Args:
        alone: no message was sent, so they are the headers of the answer, too.
    """
    shown = text.encode()[:_TEXT_BYTES_MAX].decode(errors="ignore")
    # A text is different each time: the peer need not remember it.
    message = [NeverIndexedHeaderTuple("grpc-message", quote(shown, safe=_SAFE))] if shown else []
    return [*((_HTTP_OK, _TYPE) if alone else ()), HeaderTuple("grpc-status", str(int(status))), *message]


def refusal_headers(refused: CallRefusedError) -> list[HeaderTuple]:
    """The answer to headers that are no call of gRPC."""
    return [
        HeaderTuple(":status", str(refused.http_status)),
        HeaderTuple("content-type", "text/plain; charset=utf-8"),
        *trailers(refused.status, refused.text, alone=False),
    ]


def too_much_metadata() -> tuple[HeaderTuple, ...]:
    """The answer to a call with more metadata than allowed."""
    return (HeaderTuple(":status", "431"),)


def _timeout_ns(text: str | None) -> int | None:
    if text is None:
        return None
    found = _TIMEOUT.fullmatch(text)
    if found is None:
        raise CallRefusedError(None, GrpcStatus.INTERNAL, f"not a timeout: {text}")
    return int(found[1]) * _UNIT_NS[found[2]]


def _ascii(text: bytes) -> str:
    return text.decode("ascii", "replace")
