"""A program of somebody else's that speaks RocketMQ's own framing, executed from Python."""

import socket
from collections.abc import Mapping
from itertools import count
from typing import Any

import trio

from emulator.guests.remoting.body_json import encode_json_body
from emulator.guests.remoting.remoting_command import (
    LanguageCode,
    RemotingCommand,
    RemotingDecoder,
    SerializeType,
    encode_remoting,
)
from nodes.protocol.command import CommandFlag
from nodes.protocol.registry import encode_header

PATIENCE_S = 10


def request(
    code: int,
    opaque: int,
    *,
    flag: int = 0,
    fields: Mapping[str | None, str | None] | None = None,
    body: bytes | None = None,
    form: SerializeType = SerializeType.JSON,
) -> RemotingCommand:
    return RemotingCommand(code, LanguageCode.GO, 317, opaque, flag, None, fields, body, form)


class Program:
    """A program of somebody else's: a socket, and RocketMQ's frames."""

    def __init__(self, sock):
        self.sock = sock
        self._decoder = RemotingDecoder()

    async def say(self, raw):
        with trio.fail_after(PATIENCE_S):
            while raw:
                raw = raw[await self.sock.send(raw) :]

    async def ask(self, *commands):
        await self.say(b"".join(map(encode_remoting, commands)))

    async def answer(self):
        """The next frame; None where the connection has ended."""
        with trio.fail_after(PATIENCE_S):
            while (command := self._decoder.next()) is None:
                try:
                    chunk = await self.sock.recv(65_536)
                except ConnectionResetError:
                    return None
                if not chunk:
                    return None
                self._decoder.take(chunk)
        return command


class Caller:
    """The same from a thread of its own: asks, and waits for what it is answered."""

    def __init__(self, ip: str, port: int, patience_s: float = PATIENCE_S) -> None:
        self.socket = socket.create_connection((ip, port), patience_s)
        self.address = "{}:{}".format(*self.socket.getsockname())
        """Its own end of the connection."""
        self._decoder = RemotingDecoder()
        self._opaques = count(1)

    def say(self, code: int, header: Any = None, body: Any = None) -> int:
        """Sends a request; returns its number."""
        fields = None if header is None else dict(encode_header(header))
        return self.send_raw(code, fields, None if body is None else encode_json_body(body))

    def send_raw(self, code: int, fields: Mapping[str, str] | None, body: bytes | None, *, oneway: bool = False) -> int:
        """Sends a request with these fields and bytes; returns its number."""
        opaque, flag = next(self._opaques), CommandFlag.ONEWAY if oneway else 0
        self.socket.sendall(encode_remoting(request(code, opaque, flag=flag, fields=fields, body=body)))
        return opaque

    def ask(self, code: int, header: Any = None, body: Any = None) -> RemotingCommand:
        """Sends a request and returns its answer; what comes before it is dropped."""
        return self._answer_to(self.say(code, header, body))

    def ask_raw(self, code: int, fields: Mapping[str, str] | None, body: bytes | None) -> RemotingCommand:
        """As `ask`, with these fields and bytes."""
        return self._answer_to(self.send_raw(code, fields, body))

    def hear(self) -> RemotingCommand:
        """The next frame: an answer, or a request of the node."""
        while (heard := self._decoder.next()) is None:
            chunk = self.socket.recv(65_536)
            assert chunk, "the connection has ended"
            self._decoder.take(chunk)
        return heard

    def answer(self, requested: RemotingCommand, code: int) -> None:
        """Answers a request of the node."""
        self.socket.sendall(encode_remoting(request(code, requested.opaque, flag=CommandFlag.RESPONSE)))

    def _answer_to(self, opaque: int) -> RemotingCommand:
        while (heard := self.hear()).opaque != opaque:
            pass
        return heard

    def close(self) -> None:
        self.socket.close()
