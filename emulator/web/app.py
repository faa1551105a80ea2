"""The dashboard as an ASGI application.

    GET  /        the page; it and its parts (/page/...) hold nothing of the run and need no token
    GET  /state   all there is to see, once
    GET  /events  the same as the first line of a stream, then what changes, one JSON object per line
    POST /verb    {"line": "cut consumer-1 broker-a"} -> {"ok": true, "lines": [...]}

Every other answer is `{"error": "one line"}` with its status. It is written
against ASGI itself: streams must end when their reader is too slow or gone, and
a framework would hand files to worker threads.
"""

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import attrs
import trio

from emulator.verbs.desk import Desk
from emulator.verbs.registry import VERBS
from emulator.verbs.verb import VerbError, say
from emulator.web.feed import Feed, TooManyWatchersError, encoded
from emulator.web.gate import SAFE_HEADERS, Gate, Refusal

Message = dict[str, Any]
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
BODY_BYTES_MAX = 64 * 1024
_SENDS_WITHIN_S = 5
_READS_WITHIN_S = 5
_THE_END = encoded({"leaving": True})
_JSON, _LINES = "application/json", "application/x-ndjson"
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".svg": "image/svg+xml",
    }
)


@attrs.frozen
class _Part:
    """A file of the page."""

    content: bytes
    type: str


class Dashboard:
    """Answers requests about one live cluster.

    Args:
        desk: of the run.
        feed: what is shown; has to hear of every row.
        gate: who may pass.
    """

    def __init__(self, desk: Desk, feed: Feed, gate: Gate) -> None:
        self._desk = desk
        self._feed = feed
        self._gate = gate
        self._parts = _page()
        self._routes: Mapping[str, tuple[str, Callable[[Receive, Send], Awaitable[None]]]] = {
            "/state": ("GET", self._state),
            "/events": ("GET", self._events),
            "/verb": ("POST", self._verb),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; ASGI's entry."""
        if scope["type"] != "http":
            # The only other thing that comes in is a WebSocket: refused before it is accepted.
            await send({"type": "websocket.close"})
            return
        try:
            await self._answer(scope, receive, send)
        except Refusal as refusal:
            await _reply(send, refusal.status, encoded({"error": refusal.problem}), _JSON)
        except Exception as error:  # noqa: BLE001 - a bug of the dashboard must not end the cluster
            self._desk.cluster.world.log.warning("dashboard", path=scope["path"], problem=repr(error))
            await _reply(send, 500, encoded({"error": "the dashboard failed; log.jsonl of the run says how"}), _JSON)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method, headers = scope["path"], scope["method"], scope["headers"]
        self._gate.check_address(headers)
        if path in self._parts:
            _expect_method(path, method, "GET")
            await _reply(send, 200, self._parts[path].content, self._parts[path].type)
            return
        self._gate.check_token(headers)
        if path not in self._routes:
            raise Refusal(404, f"there is nothing here; there are /, {', '.join(self._routes)}")
        expected, answer = self._routes[path]
        _expect_method(path, method, expected)
        await answer(receive, send)

    async def _state(self, _receive: Receive, send: Send) -> None:
        await _reply(send, 200, encoded(self._feed.whole()), _JSON)

    async def _events(self, receive: Receive, send: Send) -> None:
        try:
            with self._feed.watch() as messages:
                await _stream(messages, receive, send)
        except TooManyWatchersError as error:
            raise Refusal(503, str(error)) from None

    async def _verb(self, receive: Receive, send: Send) -> None:
        line = _line(await _body(receive))
        try:
            told = {"ok": True, "lines": await say(line, self._desk, VERBS)}
        except VerbError as error:
            told = {"ok": False, "lines": [str(error)]}
        with trio.CancelScope(shield=True):  # the verb may have ended the run: whoever said it is told
            await _reply(send, 200, encoded(told), _JSON)


async def _stream(messages: trio.MemoryReceiveChannel[bytes], receive: Receive, send: Send) -> None:
    """Send messages until they end, nobody takes them any more, or the run ends, which is the last message then."""
    await send(_start(200, _LINES))
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
            async for message in messages:
                if not await _sent(send, message, more=True):
                    break
            nursery.cancel_scope.cancel()
    finally:
        run_ends = trio.current_effective_deadline() == -math.inf
        with trio.CancelScope(shield=True):
            await _sent(send, _THE_END if run_ends else b"", more=False)


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _body(receive: Receive) -> bytes:
    """What was sent; who sends too much is heard to the end, for else the refusal would not reach him."""
    content, size = b"", 0
    with trio.move_on_after(_SENDS_WITHIN_S):
        while True:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size <= BODY_BYTES_MAX:
                content += part
            if not message.get("more_body", False):
                break
        if size > BODY_BYTES_MAX:
            raise Refusal(413, f"a request has at most {BODY_BYTES_MAX} bytes")
        return content
    status = 408 if size <= BODY_BYTES_MAX else 413
    raise Refusal(status, f"expected a whole request of at most {BODY_BYTES_MAX} bytes within {_SENDS_WITHIN_S} s")


def _line(content: bytes) -> str:
    try:
        request = json.loads(content)
    except (ValueError, RecursionError):
        request = None
    line = request.get("line") if isinstance(request, dict) else None
    if not isinstance(line, str):
        raise Refusal(400, 'expected JSON, {"line": "VERB ..."}')
    return line


def _expect_method(path: str, method: str, expected: str) -> None:
    if method != expected:
        raise Refusal(405, f"{path} takes {expected}, not {method}")


def _start(status: int, content_type: str, *more: tuple[str, str]) -> Message:
    headers = [*SAFE_HEADERS.items(), ("Content-Type", content_type), *more]
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }


async def _reply(send: Send, status: int, content: bytes, content_type: str) -> None:
    await send(_start(status, content_type, ("Content-Length", str(len(content)))))
    await _sent(send, content, more=False)


async def _sent(send: Send, content: bytes, *, more: bool) -> bool:
    """Send a part of an answer; returns whether the client took it in time."""
    with trio.move_on_after(_READS_WITHIN_S) as patience:
        await send({"type": "http.response.body", "body": content, "more_body": more})
    return not patience.cancelled_caught


def _page() -> Mapping[str, _Part]:
    """Path -> file; all are read once, so no request leads to the disk."""
    found = {}
    for entry in sorted(files("emulator.web").joinpath("page").iterdir(), key=lambda entry: entry.name):
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            path = "/" if entry.name == "index.html" else f"/page/{entry.name}"
            found[path] = _Part(entry.read_bytes(), _TYPES[suffix])
    return found
