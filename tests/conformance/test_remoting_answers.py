"""The remoting ports of our proxies answer what real ones of 5.3.3 answered to the same questions (`vectors/proxy`)."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest

from conformance.remoting_questions import BROKER, REMOTING_QUESTIONS, RemotingProbe
from emulator.spec.model.scenario import BrokerSpec, TopicSpec
from emulator.testing import Stage, execute
from nodes.config.broker import BrokerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.registry import encode_body
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.rpc.errors import RemotingTimeoutError
from support.our_proxies import PROXIES
from support.proxy_guest import proxies
from support.remoting_guest import RemotingGuest, a_remoting_guest

_FILE = Path(__file__).parent.parent / "vectors" / "proxy" / "remoting_answers.json"
_REAL: dict[str, dict[str, Any]] = json.loads(_FILE.read_text())


@attrs.define
class OurRemoting:
    """Two emulated proxies; implements `RemotingCalls`."""

    stage: Stage
    guests: dict[str, RemotingGuest] = attrs.Factory(dict)

    async def ask(
        self, client: str, proxy: int, code: RequestCode, fields: Mapping[str, str], body: Any
    ) -> Command | None:
        """Send a request."""
        guest = await self._guest(client)
        content = None if body is None else encode_body(body)
        try:
            address = guest.address(PROXIES[proxy])
            return await guest.node.rpc.call(address, int(code), fields, content, timeout_ms=4_000)
        except RemotingTimeoutError:
            return None

    async def requested(self, client: str, proxy: int) -> list[Command]:
        """What came before now."""
        node = (await self._guest(client)).node
        found, node.requested = node.requested, []
        return found

    async def leave(self, client: str, proxy: int) -> None:
        """Close a connection."""
        guest = await self._guest(client)
        guest.node.rpc.close(guest.address(PROXIES[proxy]))

    async def sleep_ms(self, duration_ms: int) -> None:
        """Let emulated time pass."""
        await self.stage.for_ms(duration_ms)

    def now_ms(self) -> int:
        """The wall clock of the first client."""
        return next(iter(self.guests.values())).host.clock.now_ms()

    async def _guest(self, client: str) -> RemotingGuest:
        if client not in self.guests:
            self.guests[client] = await a_remoting_guest(self.stage, len(self.guests))
        return self.guests[client]


@cache
def _ours() -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = {}

    async def script(stage: Stage) -> None:
        calls = OurRemoting(stage)
        await stage.at_ms(5_000)
        for name, ask in REMOTING_QUESTIONS.items():
            await ask(RemotingProbe(calls, answers.setdefault(name, {})))

    kinds = (TopicMessageType.NORMAL, TopicMessageType.TRANSACTION, TopicMessageType.DELAY)
    config = BrokerConfig(recall_message_enable=True, transaction_check_interval=2_000, transaction_time_out=1_000)
    topics = tuple(TopicSpec(f"remoting-{kind}", (BROKER,), 1, kind) for kind in kinds)
    execute(proxies(*PROXIES, brokers=(BrokerSpec(BROKER, 0, config=config),), topics=topics), script)
    return answers


@pytest.mark.parametrize("name", _REAL)
def test_ours_answer_as_the_real_ones(name: str) -> None:
    ours = {question: _ours()[name][question] for question in _REAL[name]}

    assert ours == _REAL[name]


def test_each_question_has_a_real_answer() -> None:
    ours = {name: sorted(answers) for name, answers in _ours().items()}
    assert ours == {name: sorted(answers) for name, answers in _REAL.items()}
