"""The HTTP interface of the dashboard.

    GET  /        the page; it and its files (/page/...) contain nothing of the run and need no token
    GET  /state   the complete state, once
    GET  /events  a stream of JSON lines: the complete state, then changes
    GET  /past?at_ms=64000  what was known at that instant
    POST /verb    {"line": "cut consumer-1 broker-a"} -> {"ok": true, "lines": [...], "offers": [...]}

Every other answer is `{"error": "one line"}` with its status.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

import attrs
import trio

from emulator.console.session import Session
from emulator.console.verb import VerbError
from emulator.web.feed import PageFeed, TooManyWatchersError, encoded
from emulator.web.gate import Gate
from emulator.web.http import Answer, Gone, HttpConnection, Refusal, Request
from emulator.web.offers import offer

_THE_END = encoded({"leaving": True})
_DIGITS_MAX = 15
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
class _StaticFile:
    """A static file of the page."""

    content: bytes
    type: str


class Dashboard:
    """Answers requests about one live cluster.

    Args:
        session: of the run.
        feed: the shown state; must be notified of every row.
        gate: checks the address and the token of requests.
    """

    def __init__(self, session: Session, feed: PageFeed, gate: Gate) -> None:
        self._session = session.confined()
        self._feed = feed
        self._gate = gate
        self._parts = _page()
        self._routes: Mapping[str, tuple[str, Answer]] = {
            "/state": ("GET", self._state),
            "/events": ("GET", self._events),
            "/past": ("GET", self._past),
            "/verb": ("POST", self._verb),
        }

    async def answer(self, request: Request, to: HttpConnection) -> None:
        """Answer one request.

        Raises:
            Refusal: the request is refused.
            Gone: the client does not receive the answer.
        """
        try:
            await self._answer(request, to)
        except (Refusal, Gone):
            raise
        except Exception as error:
            # A bug of the dashboard must not end the cluster.
            self._session.cluster.world.log.warning("dashboard", path=request.path, problem=repr(error))
            raise Refusal(500, "the dashboard failed; log.jsonl of the run says how") from error

    async def _answer(self, request: Request, to: HttpConnection) -> None:
        path = request.path
        self._gate.check_address(request.headers)
        if path in self._parts:
            _require_method(request, "GET")
            await to.reply(200, self._parts[path].type, self._parts[path].content)
            return
        self._gate.check_token(request.headers)
        if path not in self._routes:
            raise Refusal(404, f"there is nothing here; there are /, {', '.join(self._routes)}")
        method, answer = self._routes[path]
        _require_method(request, method)
        await answer(request, to)

    async def _state(self, _request: Request, to: HttpConnection) -> None:
        await to.reply(200, _JSON, encoded(self._feed.whole()))

    async def _past(self, request: Request, to: HttpConnection) -> None:
        name, _, answer = request.query.partition("=")
        if name != "at_ms" or not answer.isdecimal() or len(answer) > _DIGITS_MAX:
            raise Refusal(400, "expected /past?at_ms=N, an instant in emulated milliseconds")
        await to.reply(200, _JSON, encoded(self._feed.past(int(answer))))

    async def _events(self, request: Request, to: HttpConnection) -> None:
        if any(name == b"upgrade" and value.lower() == b"websocket" for name, value in request.headers):
            raise Refusal(400, "/events is a stream of lines, no WebSocket")
        try:
            with self._feed.watch() as messages:
                await _stream(messages, to)
        except TooManyWatchersError as error:
            raise Refusal(503, str(error)) from None

    async def _verb(self, request: Request, to: HttpConnection) -> None:
        # The connection is not read meanwhile: a verb continues when its client disconnects.
        line, active = _line(request.body), self._session.operator.active
        before = dict(active)
        try:
            reported = {"ok": True, "lines": await self._session.say(line)}
        except VerbError as error:
            reported = {"ok": False, "lines": [str(error)]}
        reported["offers"] = [offer(timed) for fault_id, timed in active.items() if fault_id not in before]
        await to.reply(200, _JSON, encoded(reported))


async def _stream(messages: trio.MemoryReceiveChannel[bytes], to: HttpConnection) -> None:
    """Send messages until they end; if the run ends, the last message says so.

    A client that has disconnected is noticed with the next message; there are five per second.
    """
    await to.begin(200, _LINES)
    try:
        async for message in messages:
            await to.part(message)
    except trio.Cancelled:
        await to.part(_THE_END)
        await to.end()
        raise
    await to.end()


def _line(content: bytes) -> str:
    try:
        request = json.loads(content)
    except (ValueError, RecursionError):
        request = None
    line = request.get("line") if isinstance(request, dict) else None
    if not isinstance(line, str):
        raise Refusal(400, 'expected JSON, {"line": "VERB ..."}')
    return line


def _require_method(request: Request, expected: str) -> None:
    if request.method != expected:
        raise Refusal(405, f"{request.path} takes {expected}, not {request.method}")


def _page() -> Mapping[str, _StaticFile]:
    """Mapping path -> file; all files are read once, so no request reads the disk."""
    found = {}
    for entry in sorted(files("emulator.web").joinpath("page").iterdir(), key=lambda entry: entry.name):
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            path = "/" if entry.name == "index.html" else f"/page/{entry.name}"
            found[path] = _StaticFile(entry.read_bytes(), _TYPES[suffix])
    return found
