"""Random HTTP/2 with gRPC: mostly what a client may send, in any order, and some that none would."""

import gzip
import struct
from collections.abc import Callable
from functools import cache
from random import Random

from hpack import Encoder

from emulator.guests.grpc.floods import PREFACE, FrameKind
from emulator.guests.grpc.messages import ServiceMethod, message_class, service_methods

_END_STREAM, _END_HEADERS = 0x1, 0x4
_DAMAGED_SHARE = 0.002
"""Frames with another bit: most of them end their connection."""
_CALLS_MAX = 200
"""Calls on a connection; then it begins again."""
_SETTINGS = (
    (1, (0, 4_096, 2**31 - 1)),
    (2, (0, 1)),
    (3, (0, 100)),
    (4, (0, 1, 100, 65_535, 2**20)),
    (5, (16_384, 2**24 - 1)),
    (6, (0, 8_192)),
    (99, (0, 1)),
)
"""(setting, values that it may have)."""
MARK = b"all read"
_DATA_BYTES = 16_000
_ODD_HEADERS = (
    (":path", "no-slash"),
    (":method", "GET"),
    ("content-type", "text/plain"),
    ("grpc-timeout", "soon"),
    ("grpc-timeout", "0m"),
    ("grpc-encoding", "gzip"),
    ("grpc-encoding", "snappy"),
    ("x-long", "x" * 3_000),
    ("x-mq-language", "KLINGON"),
)


class RandomClient:
    """What one client sends on one connection after the other.

    Args:
        chance: draws everything.
    """

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._methods = service_methods()
        self._kinds: tuple[tuple[int, Callable[[], bytes]], ...] = (
            (300, self._whole_call),
            (150, self._begin_call),
            (200, self._data),
            (60, self._odd_data),
            (2, self._bomb_of_values),
            (2, self._bomb_of_gzip),
            (2, self._large_call),
            (2, self._flood),
            (50, self._reset),
            (30, self._settings),
            (30, self._ping),
            (100, self._window_update),
            (20, self._headers_in_pieces),
            (3, self._any_frame),
            (1, self._go_away),
        )
        self._encoder = Encoder()
        self._call = -1

    def begin(self) -> bytes:
        """The first bytes of a new connection, and a call: before the first one nearly all frames are an error."""
        self._encoder = Encoder()
        self._call = -1
        return PREFACE + _frame(FrameKind.SETTINGS) + self._whole_call()

    @property
    def is_used_up(self) -> bool:
        """Whether a new connection should begin."""
        return self._call > 2 * _CALLS_MAX

    def frames(self) -> bytes:
        """The next frames."""
        weights = [weight for weight, _ in self._kinds]
        make = self._chance.choices([make for _, make in self._kinds], weights)[0]
        frames = make()
        return self._damaged(frames) if self._chance.random() < _DAMAGED_SHARE else frames

    def _damaged(self, frames: bytes) -> bytes:
        place = self._chance.randrange(len(frames))
        return frames[:place] + bytes((frames[place] ^ (1 << self._chance.randrange(8)),)) + frames[place + 1 :]

    def _some_call(self) -> int:
        return max(1, self._call - 2 * self._chance.randrange(6))

    def _header_block(self) -> bytes:
        method = self._chance.choice(self._methods)
        headers = _headers(method.path, self._chance.randrange(3))
        if self._chance.random() < 0.1:
            name, value = self._chance.choice(_ODD_HEADERS)
            headers[name] = value
        if self._chance.random() < 0.3:
            headers["grpc-timeout"] = f"{self._chance.randrange(1, 3_000)}m"
        self._method = method
        block: bytes = self._encoder.encode(headers.items())
        return block

    def _begin_call(self) -> bytes:
        self._call += 2
        flags = _END_HEADERS | (_END_STREAM if self._chance.random() < 0.05 else 0)
        return _frame(FrameKind.HEADERS, flags, self._call, self._header_block())

    def _whole_call(self) -> bytes:
        begun = self._begin_call()
        return begun + _frame(FrameKind.DATA, _END_STREAM, self._call, _framed(self._message(self._method)))

    def _bomb_of_values(self) -> bytes:
        """A call of many empty entries, which become values, in a few bytes."""
        entry = self._chance.choice((b"\x0a\x00", b"\x12\x00", b"\x1a\x00", b"\x7b\x7c", b"\x0a\x02\x12\x00"))
        return self._packed_call(entry * self._chance.choice((2_000, 50_000, 500_000)))

    def _bomb_of_gzip(self) -> bytes:
        """A call that becomes a thousand times as long, in one field or in none."""
        length = self._chance.choice((2**20, 2**22, 2**24))
        return self._packed_call(bytes((0x22,)) + _varint(length) + bytes(length))

    def _large_call(self) -> bytes:
        """A call that is valid, of nearly as many values as are read: it takes long."""
        name, entry = self._chance.choice(_large_entries())
        method = next(method for method in self._methods if method.name == name)
        return self._framed_call(method, entry * self._chance.choice((100, 1_500)), {})

    def _flood(self) -> bytes:
        """Very many frames that carry no call, calls that are reset at once, or metadata that do not end."""
        match self._chance.randrange(4):
            case 0:
                self._call += 2
                begun = _frame(FrameKind.HEADERS, 0, self._call)
                return begun + _frame(FrameKind.CONTINUATION, 0, self._call, b"x" * 1_000) * 20
            case 1:
                calls = range(_CALLS_MAX)
                return b"".join(
                    self._begin_call() + _frame(FrameKind.RST_STREAM, 0, self._call, bytes(4)) for _ in calls
                )
            case _:
                return self._chance.choice(_FLOODS) * self._chance.choice((10, 300))

    def _packed_call(self, message: bytes) -> bytes:
        packed = gzip.compress(message, 6)
        return self._framed_call(self._chance.choice(self._methods), packed, {"grpc-encoding": "gzip"})

    def _framed_call(self, method: ServiceMethod, message: bytes, more: dict[str, str]) -> bytes:
        self._call += 2
        headers = _headers(method.path, self._chance.randrange(3)) | more
        framed = struct.pack(">BI", 1 if more else 0, len(message)) + message
        begun = _frame(FrameKind.HEADERS, _END_HEADERS, self._call, self._encoder.encode(headers.items()))
        places = range(0, len(framed), _DATA_BYTES)
        frames = [
            _frame(
                FrameKind.DATA,
                _END_STREAM if place + _DATA_BYTES >= len(framed) else 0,
                self._call,
                framed[place : place + _DATA_BYTES],
            )
            for place in places
        ]
        return b"".join((begun, *frames))

    def _message(self, method: ServiceMethod) -> bytes:
        """A request that says little, or bytes that may be none."""
        if self._chance.random() < 0.5:
            return method.request().SerializeToString()
        return self._chance.randbytes(self._chance.randrange(60))

    def _data(self) -> bytes:
        message = _framed(self._chance.randbytes(self._chance.choice((0, 5, 200, 5_000))))
        cut = self._chance.choice((len(message), len(message), 3, 7))
        flags = _END_STREAM if self._chance.random() < 0.3 else 0
        return _frame(FrameKind.DATA, flags, self._some_call(), message[:cut])

    def ping(self) -> bytes:
        """A PING frame whose answer shows that all frames before it were read."""
        return _frame(FrameKind.PING, 0, 0, MARK)

    def _odd_data(self) -> bytes:
        prefix = struct.pack(">BI", self._chance.choice((0, 1, 2, 255)), self._chance.choice((0, 10, 2**20, 2**32 - 1)))
        flags = self._chance.choices((0, 1, 8), (10, 10, 0.2))[0]
        return _frame(FrameKind.DATA, flags, self._some_call(), prefix)

    def _reset(self) -> bytes:
        return _frame(FrameKind.RST_STREAM, 0, self._some_call(), struct.pack(">I", self._chance.randrange(20)))

    def _settings(self) -> bytes:
        setting, values = self._chance.choice(_SETTINGS)
        value = self._chance.choice(values) if self._chance.random() < 0.98 else self._chance.randrange(2**32)
        return _frame(FrameKind.SETTINGS, 0, 0, struct.pack(">HI", setting, value))

    def _ping(self) -> bytes:
        return _frame(FrameKind.PING, self._chance.choice((0, 0, 1)), 0, self._chance.randbytes(8))

    def _window_update(self) -> bytes:
        call = self._chance.choice((0, self._some_call()))
        increment = self._chance.choice((1, 100, 65_535, 2**20, 2**20))
        return _frame(FrameKind.WINDOW_UPDATE, 0, call, struct.pack(">I", increment))

    def _go_away(self) -> bytes:
        return _frame(FrameKind.GOAWAY, 0, 0, struct.pack(">II", self._chance.randrange(100), 0) + b"bye")

    def _headers_in_pieces(self) -> bytes:
        self._call += 2
        block = self._header_block()
        cut = self._chance.randrange(len(block))
        first = _frame(FrameKind.HEADERS, 0, self._call, block[:cut])
        return first + _frame(FrameKind.CONTINUATION, _END_HEADERS, self._call, block[cut:])

    def _any_frame(self) -> bytes:
        chance = self._chance
        content = chance.randbytes(chance.randrange(30))
        return _frame(chance.randrange(16), chance.randrange(256), self._some_call(), content)


@cache
def _large_entries() -> tuple[tuple[str, bytes], ...]:
    """Names of methods, and one entry of the lists in their requests."""
    message = {"topic": {"name": "t"}, "system_properties": {"message_id": "i", "keys": ["k"]}, "body": b"x"}
    handle = {"message_id": "i", "receipt_handle": f"0 {2**50} 60000 0 0 b 0 0 0"}
    return (
        ("SendMessage", message_class("SendMessageRequest")(messages=[message]).SerializeToString()),
        ("AckMessage", message_class("AckMessageRequest")(entries=[handle]).SerializeToString()),
    )


def unread_calls(path: str, message: bytes, number: int) -> bytes:
    """All that a guest sends that makes so many calls at once."""
    encoder = Encoder()
    frames = [PREFACE, _frame(FrameKind.SETTINGS)]
    for call in range(1, 2 * number, 2):
        block = encoder.encode(_headers(path, 0).items())
        frames.append(_frame(FrameKind.HEADERS, _END_HEADERS, call, block))
        frames.append(_frame(FrameKind.DATA, _END_STREAM, call, _framed(message)))
    return b"".join(frames)


def _headers(path: str, client: int) -> dict[str, str]:
    return {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/{path}",
        ":authority": "localhost:8081",
        "content-type": "application/grpc",
        "te": "trailers",
        "x-mq-client-id": f"c{client}",
        "x-mq-language": "JAVA",
    }


def _varint(number: int) -> bytes:
    return bytes((number,)) if number < 0x80 else bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)


def _frame(kind: int, flags: int = 0, call: int = 0, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3) + bytes((kind, flags)) + call.to_bytes(4) + content


def _framed(message: bytes) -> bytes:
    return struct.pack(">BI", 0, len(message)) + message


def frames_in(chunk: bytes) -> int:
    """How many frames begin in whole bytes of a connection; damaged ones count as they are read."""
    place, frames = 0, 0
    while place + 9 <= len(chunk):
        place += 9 + int.from_bytes(chunk[place : place + 3])
        frames += 1
    return frames


_FLOODS = (
    _frame(FrameKind.SETTINGS),
    _frame(FrameKind.SETTINGS, 0, 0, struct.pack(">HI", 99, 1) * 500),
    _frame(FrameKind.PING, 0, 0, b"12345678"),
    _frame(FrameKind.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
    _frame(FrameKind.DATA, 0, 1),
    _frame(FrameKind.PRIORITY, 0, 1, bytes(5)),
)
"""Frames that carry no call."""
