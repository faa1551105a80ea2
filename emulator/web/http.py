"""HTTP/1.1 over one connection: h11 implements the protocol, this module the I/O and the timeouts.

One task serves a connection, one request after the other:

    request     head within 8 s of the previous answer, body within 5 s, of at most 64 KiB
    answer      the client receives each part within 4 s, or it is `Gone`
    end         the client disconnects, breaks the protocol, or either side closes the connection

Writes are shielded from cancellation, since half an answer is worse than a late
one. To end a connection early, close its stream.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from types import MappingProxyType
from typing import TypeAlias

import attrs
import h11
import trio

from emulator.web.feed import encoded

BODY_BYTES_MAX = 64 * 1024
_HEAD_BYTES_MAX = 16 * 1024
_READ_BYTES = 8 * 1024
"""Bytes per read; limits how many tiny chunks of a body are parsed while the cluster waits."""
_ASKS_WITHIN_S = 8
_SENDS_WITHIN_S = 5
_READS_WITHIN_S = 4
_GOES_WITHIN_S = 5
_JSON = "application/json"

Headers = Iterable[tuple[bytes, bytes]]
SAFE_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
)
"""Headers of every answer."""


class Gone(Exception):  # noqa: N818 - an event, not an error
    """The client has closed the connection, or does not read."""


@attrs.frozen
class Refusal(Exception):  # noqa: N818 - an answer, not an error
    """A request is refused; the answer is `{"error": problem}`."""

    status: int
    problem: str
    """One line."""


@attrs.frozen
class Request:
    """A complete request."""

    method: str
    path: str
    """Without a query."""
    headers: Headers
    body: bytes
    query: str = ""


class HttpConnection:
    """The connection of one client.

    Resource handling: the caller closes the stream.

    Args:
        stream: to the client.
    """

    def __init__(self, stream: trio.abc.HalfCloseableStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES_MAX)
        self._bodiless = False
        """Whether the answer has no body, as for HEAD."""

    async def serve(self, answer: "Answer") -> None:
        """Answer every request until the connection ends.

        Args:
            answer: answers one request; if it raises `Refusal`, that is the answer.

        Raises:
            Gone: the client did not receive the complete answer.
        """
        while True:
            try:
                request = await self._request()
            except Refusal as refusal:
                await self.refuse(refusal)
                return
            if request is None:
                return
            try:
                await answer(request, self)
            except Refusal as refusal:
                if self._http.our_state is not h11.SEND_RESPONSE:
                    return  # the answer has begun, so it can only be broken off
                await self._send_refusal(refusal)
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                await self._finish()
                return
            self._http.start_next_cycle()

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, and end the connection.

        Raises:
            Gone: the client does not receive it.
        """
        await self._send_refusal(refusal, ("Connection", "close"))
        await self._finish()

    async def reply(self, status: int, content_type: str, content: bytes, *more: tuple[str, str]) -> None:
        """Answer a request.

        Args:
            status: HTTP status.
            content_type: of the body.
            content: the body.
            more: further headers.

        Raises:
            Gone: the client does not receive it.
        """
        head = _head(status, content_type, ("Content-Length", str(len(content))), *more)
        body = () if self._bodiless else (h11.Data(data=content),)
        await self._send(head, *body, h11.EndOfMessage())

    async def begin(self, status: int, content_type: str) -> None:
        """Begin an answer that is sent in parts.

        Raises:
            Gone: the client does not receive it.
        """
        await self._send(_head(status, content_type))

    async def part(self, content: bytes) -> None:
        """Send a part of the answer that was begun.

        Raises:
            Gone: the client does not receive it.
        """
        await self._send(h11.Data(data=content))

    async def end(self) -> None:
        """End the answer that was begun.

        Raises:
            Gone: the client does not receive it.
        """
        await self._send(h11.EndOfMessage())

    async def _send_refusal(self, refusal: Refusal, *headers: tuple[str, str]) -> None:
        await self.reply(refusal.status, _JSON, encoded({"error": refusal.problem}), *headers)

    async def _request(self) -> Request | None:
        """The next request; None if the client closes the connection or sends none in time.

        Raises:
            Refusal: the request is malformed or too large.
        """
        try:
            with trio.move_on_after(_ASKS_WITHIN_S) as patience:
                head = await self._event()
            if patience.cancelled_caught or not isinstance(head, h11.Request):
                return None
            self._bodiless = head.method == b"HEAD"
            if head.http_version not in (b"1.0", b"1.1"):
                raise Refusal(505, "the dashboard speaks HTTP/1.1")
            body = await self._body()
        except h11.RemoteProtocolError as error:
            raise Refusal(error.error_status_hint, f"expected HTTP/1.1: {error}") from None
        path, _, query = head.target.decode("latin-1").partition("?")
        return Request(head.method.decode("latin-1"), path, tuple(head.headers), body, query)

    async def _body(self) -> bytes:
        body = bytearray()
        with trio.move_on_after(_SENDS_WITHIN_S) as patience:
            while isinstance(event := await self._event(), h11.Data):
                body += event.data
                if len(body) > BODY_BYTES_MAX:
                    raise Refusal(413, f"a request has at most {BODY_BYTES_MAX} bytes")
        if patience.cancelled_caught:
            raise Refusal(408, f"expected a whole request within {_SENDS_WITHIN_S} s")
        return bytes(body)

    async def _event(self) -> object:
        """The next event of h11."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            try:
                received = await self._stream.receive_some(_READ_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise Gone from error
            self._http.receive_data(bytes(received))
        return event

    async def _send(self, *events: h11.Event) -> None:
        data = b"".join(self._http.send(event) or b"" for event in events)
        with trio.move_on_after(_READS_WITHIN_S, shield=True) as patience:
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise Gone from error
        if patience.cancelled_caught:
            raise Gone

    async def _finish(self) -> None:
        """End the connection so that the client receives the last answer.

        Further bytes of the client are read: closing a socket with unread bytes sends RST,
        and the client's kernel would discard the answer.
        """
        with trio.move_on_after(_GOES_WITHIN_S):
            try:
                await self._stream.send_eof()
                while await self._stream.receive_some(_READ_BYTES):
                    pass
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise Gone from error


Answer: TypeAlias = Callable[[Request, HttpConnection], Awaitable[None]]
"""Answers one request."""


def _head(status: int, content_type: str, *more: tuple[str, str]) -> h11.Response:
    headers = [*SAFE_HEADERS.items(), ("Date", formatdate(usegmt=True)), ("Content-Type", content_type), *more]
    return h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase)
