"""Ask the remoting ports of two real proxies of 5.3.3 `conformance.remoting_questions`, and write their answers down.

    python -m studies.remoting_answers BROKER PROXY PROXY > tests/vectors/proxy/remoting_answers.json

All three are `HOST:PORT`: a fresh broker named `broker-a`, and the remoting ports of two proxies of its cluster.
The broker has `recallMessageEnable = true`, `transactionCheckInterval = 2000` and `transactionTimeOut = 1000`.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs

from conformance.remoting_questions import REMOTING_QUESTIONS, RemotingProbe
from emulator.guests.remoting import body_kinds
from emulator.guests.remoting.body_json import encode_json_body
from emulator.guests.remoting.remoting_command import RemotingCommand
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from studies.proxy_answers import topic_request
from support.remoting_program import Caller

_PATIENCE_S = 4
_SETTLE_S = 3


@attrs.define
class RealRemoting:
    """Two proxies over sockets; implements `RemotingCalls`."""

    proxies: tuple[str, ...]
    callers: dict[tuple[str, int], Caller] = attrs.Factory(dict)
    requests: dict[tuple[str, int], list[Command]] = attrs.Factory(dict)

    async def ask(
        self, client: str, proxy: int, code: RequestCode, fields: Mapping[str, str], body: Any
    ) -> Command | None:
        """Send a request over the connection of a client, and wait."""
        caller = self._caller(client, proxy)
        raw = body if body is None or isinstance(body, bytes) else encode_json_body(body)
        opaque = caller.send_raw(int(code), dict(fields) or None, raw)
        deadline_s = time.monotonic() + _PATIENCE_S
        while (frame := self._hear(caller, client, proxy, deadline_s)) is not None:
            if frame.opaque == opaque:
                answer = frame.to_command(int(code))
                return answer._replace(body=body_kinds.response_from_wire(code, answer.body))
        return None

    async def requested(self, client: str, proxy: int) -> list[Command]:
        """What came before now."""
        self._hear(self._caller(client, proxy), client, proxy, time.monotonic() + 0.2)
        return self.requests.pop((client, proxy), [])

    async def leave(self, client: str, proxy: int) -> None:
        """Close a connection."""
        self.callers.pop((client, proxy)).close()

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let real time pass."""
        await asyncio.sleep(duration_ms / 1_000)

    def now_ms(self) -> int:
        """The wall clock of this machine."""
        return int(time.time() * 1_000)

    def _caller(self, client: str, proxy: int) -> Caller:
        if (client, proxy) not in self.callers:
            host, _, port = self.proxies[proxy].partition(":")
            self.callers[client, proxy] = Caller(host, int(port))
        return self.callers[client, proxy]

    def _hear(self, caller: Caller, client: str, proxy: int, deadline_s: float) -> RemotingCommand | None:
        """The next answer; requests are retained; None: there is none until then."""
        while (left_s := deadline_s - time.monotonic()) > 0:
            caller.socket.settimeout(left_s)
            try:
                frame = caller.hear()
            except TimeoutError:
                return None
            if frame.flag & 1:
                return frame
            self.requests.setdefault((client, proxy), []).append(frame.to_command(0))
        return None


async def main(broker: str, *proxies: str) -> None:
    """Create the topics, ask, and print the answers."""
    host, _, port = broker.partition(":")
    administrator = Caller(host, int(port))
    for kind in ("NORMAL", "TRANSACTION", "DELAY"):
        code, fields, _ = topic_request(f"remoting-{kind}", kind)
        given = {str(name): str(value) for name, value in fields.items()}
        assert administrator.ask_raw(int(code), given, None).code == 0
    await asyncio.sleep(_SETTLE_S)
    answers: dict[str, dict[str, Any]] = {}
    for name, ask in REMOTING_QUESTIONS.items():
        await ask(RemotingProbe(RealRemoting(proxies), answers.setdefault(name, {})))
    json.dump(answers, sys.stdout, indent=1, sort_keys=True, ensure_ascii=False)
    sys.stdout.write("\n")


if __name__ == "__main__":
    asyncio.run(partial(main, *sys.argv[1:])())
