"""A client of HTTP/2, made of `h2` alone, at the other end of a server's connection without I/O."""

import struct

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded, StreamReset, TrailersReceived

from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.server_connection import ServerConnection

GOAWAY = 7
HEADERS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/s/M",
    ":authority": "h:1",
    "te": "trailers",
    "content-type": "application/grpc",
}


def framed(message, flags=0):
    return struct.pack(">BI", flags, len(message)) + message


def headers(**changes):
    """Headers of a call; `_path` stands for `:path`, and None leaves a header out."""
    changed = {name.replace("_", ":", 1) if name.startswith("_") else name: v for name, v in changes.items()}
    whole = HEADERS | {name.replace("_", "-"): value for name, value in changed.items()}
    return [(name, value) for name, value in whole.items() if value is not None]


class H2Peer:
    """Both ends of a connection: `h2` as the client, ours as the server."""

    def __init__(self, now_ns=0, **limits):
        self.now_ns = now_ns
        self.server = ServerConnection(GrpcLimits(**limits), now_ns)
        self.h2 = H2Connection(
            H2Configuration(client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False)
        )
        self.h2.initiate_connection()
        self.events = []
        """What the server has seen."""
        self.seen = []
        """What the client has seen."""

    def swap(self):
        """Carry bytes until neither has any; returns what the server has seen meanwhile."""
        before = len(self.events)
        while self._to_server(self.h2.data_to_send()) | self._to_client():
            pass
        return self.events[before:]

    def raw(self, chunk):
        """Send bytes that `h2` would not; returns what the server has seen."""
        before = len(self.events)
        self._to_server(self.h2.data_to_send())
        self._to_server(chunk)
        return self.events[before:]

    def call(self, body=b"", *, ends=True, **changes):
        """Begin a call; returns its number."""
        call = self.h2.get_next_available_stream_id()
        self.h2.send_headers(call, headers(**changes), end_stream=ends and not body)
        if body:
            self.h2.send_data(call, body, end_stream=ends)
        return call

    def answer(self, call):
        """(headers of an answer, its data, its trailers or the code of its reset)."""
        own = [event for event in self.seen if getattr(event, "stream_id", None) == call]
        first = next((dict(e.headers) for e in own if isinstance(e, ResponseReceived)), None)
        data = b"".join(e.data for e in own if isinstance(e, DataReceived))
        last = next((dict(e.headers) for e in own if isinstance(e, TrailersReceived)), None)
        reset = next((int(e.error_code) for e in own if isinstance(e, StreamReset)), None)
        return first, data, last if reset is None else reset

    def has_ended(self, call):
        """Whether the client has seen the end of an answer."""
        return any(isinstance(event, StreamEnded) and event.stream_id == call for event in self.seen)

    def reason(self):
        """Why the server has ended the connection; it must have sent a GOAWAY frame, as its last one."""
        ended = self.server.ended
        if ended is None:
            return None
        last = self.server.bytes_to_send()
        assert _kinds(last)[-1:] == [GOAWAY], "the last frame is no GOAWAY"
        return ended.text

    def _to_server(self, chunk):
        if chunk:
            self.events += self.server.receive(chunk, self.now_ns)
        return bool(chunk)

    def _to_client(self):
        chunk = b"" if self.server.ended is not None else self.server.bytes_to_send()
        if chunk:
            self.seen += self.h2.receive_data(chunk)
        return bool(chunk)


def frame(kind, flags=0, stream=0, content=b""):
    """The bytes of any frame."""
    return len(content).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + content


def _kinds(chunk):
    found, place = [], 0
    while place < len(chunk):
        found.append(chunk[place + 3])
        place += 9 + int.from_bytes(chunk[place : place + 3])
    return found
