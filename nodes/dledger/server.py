"""A member of a group as a flow: it asks for votes, sends heartbeats, and commits what is appended.

Mirrors:
    `io.openmessaging.storage.dledger.DLedgerServer`; `org.apache.rocketmq.controller.impl.DLedgerController`'s role
    handler.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import trio

from nodes.dledger.member import (
    ROUND_MS,
    VOTE_WAIT_MS,
    DLedgerMember,
    LogPosition,
    MemberRole,
    Outgoing,
    StoredState,
)
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import NO_FIELDS, Command
from nodes.protocol.dledger import LogEntry, PushRequest, PushResponse, VoteRequest, VoteResponse
from nodes.protocol.errors import ProtocolError
from nodes.protocol.registry import decode_body, encode_body
from nodes.rpc.client import Reply, RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_FILE = "dledger.json"
_RPC_TIMEOUT_MS = 3_000
_LOOK_MS = 500
"""A member looks at its wall clock at least this often, since the clock may be moved."""


class AppendCancelledError(Exception):
    """The leader has stepped down; whether the entry survives is not known."""


@attrs.define(eq=False)
class _Appended:
    """An entry that waits to be applied here."""

    count: int
    done: trio.Event = attrs.field(factory=trio.Event)
    cancelled: bool = False


class DLedgerServer:
    """One member of the group, on its machine.

    Args:
        host: of the member.
        client: to the other members.
        self_id: of this member.
        peers: id -> address of all members, this one included.
        apply: called with each entry that is committed, in order.
        on_serving_changed: called when this member begins or ceases to lead and serve.
        on_settled: called after each step.
        position: of the log that an election compares; None: the log of this member.
    """

    def __init__(
        self,
        host: Host,
        client: RpcClient,
        self_id: str,
        peers: Mapping[str, str],
        *,
        apply: Callable[[str], None],
        on_serving_changed: Callable[[], None],
        on_settled: Callable[[], None],
        position: Callable[[], LogPosition] | None = None,
    ) -> None:
        self._host = host
        self._client = client
        self._peers = peers
        self._apply = apply
        self._on_serving_changed = on_serving_changed
        self._on_settled = on_settled
        self._waits = host.rng("votes")
        self._applied = 0
        self._appended: list[_Appended] = []
        self._own_first_entry: int | None = None
        self._written: tuple[object, ...] | None = None
        self.serving = False
        """Whether this member leads, and its first entry is committed: until then it refuses requests."""
        self.member = DLedgerMember(
            self_id,
            tuple(peers),
            retained=_retained(host.disk.read(_FILE)),
            draw_vote_wait_ms=partial(self._draw, VOTE_WAIT_MS),
            draw_round_ms=partial(self._draw, ROUND_MS),
            now_ms=host.clock.now_ms(),
            position=position,
        )

    def start(self) -> None:
        """Run the thread that looks at the time."""
        self._host.start_soon(self._maintain, name="DLedgerStateMaintainer")

    def handlers(self) -> Handlers:
        """The requests of other members."""
        return {RequestCode.DLEDGER_VOTE: self._on_vote, RequestCode.DLEDGER_PUSH: self._on_push}

    async def append(self, data: str) -> None:
        """Add an entry as leader, and wait until it is applied here.

        Raises:
            AppendCancelledError: this member has ceased to lead.
        """
        if self.member.role is not MemberRole.LEADER:
            raise AppendCancelledError("not the leader any more")
        count, outgoing = self.member.append(data)
        waiting = _Appended(count)
        self._appended.append(waiting)
        self._send(outgoing)
        await waiting.done.wait()
        if waiting.cancelled:
            raise AppendCancelledError("the leader has stepped down")

    async def _maintain(self) -> None:
        while True:
            now_ms = self._host.clock.now_ms()
            self._send(self.member.tick(now_ms))
            await self._host.sleep_ms(max(1, min(self.member.deadline_ms - now_ms, _LOOK_MS)))
            self._host.begin_cause("maintainState")

    def _on_vote(self, _channel: Channel, request: Command) -> Command:
        requested = decode_body(VoteRequest, request.body)
        answer = self.member.on_vote_request(requested, self._host.clock.now_ms())
        self._settle()
        return success(request, None, answer)

    def _on_push(self, _channel: Channel, request: Command) -> Command:
        pushed = decode_body(PushRequest, request.body)
        answer = self.member.on_push_request(pushed, self._host.clock.now_ms())
        self._settle()
        return success(request, None, answer)

    def _send(self, outgoing: Outgoing) -> None:
        self._settle()
        for peer, requested in outgoing:
            code = RequestCode.DLEDGER_VOTE if isinstance(requested, VoteRequest) else RequestCode.DLEDGER_PUSH
            self._client.call_async(
                self._peers[peer],
                int(code),
                NO_FIELDS,
                encode_body(requested),
                timeout_ms=_RPC_TIMEOUT_MS,
                callback=partial(self._on_reply, peer, code),
            )

    def _on_reply(self, peer: str, code: RequestCode, reply: Reply) -> None:
        if isinstance(reply, RemotingError) or reply.code != 0:
            return
        now_ms = self._host.clock.now_ms()
        try:
            if code is RequestCode.DLEDGER_VOTE:
                outgoing = self.member.on_vote_response(peer, decode_body(VoteResponse, reply.body), now_ms)
            else:
                outgoing = self.member.on_push_response(peer, decode_body(PushResponse, reply.body), now_ms)
        except ProtocolError as error:
            self._host.log.warning("the answer of another member is unreadable", peer=peer, error=str(error))
            return
        self._send(outgoing)

    def _settle(self) -> None:
        """Do what follows from a step of the table: the disk, the role, what is committed."""
        member = self.member
        if member.role is MemberRole.LEADER and self._own_first_entry is None:
            self._own_first_entry, outgoing = member.append("")
            self._send(outgoing)
            return
        if member.mark != self._written:
            self._written = member.mark
            self._host.disk.write(_FILE, self._encode)
        while self._applied < member.committed:
            data = member.log[self._applied].data
            self._applied += 1
            if data:
                self._apply(data)
        self._release()
        if member.role is not MemberRole.LEADER:
            self._own_first_entry = None
        serving = self._own_first_entry is not None and self._own_first_entry <= self._applied
        if serving != self.serving:
            self.serving = serving
            self._on_serving_changed()
        self._on_settled()

    def _release(self) -> None:
        """Wake those whose entries are applied, or will not be as far as this member knows."""
        leads = self.member.role is MemberRole.LEADER
        settled = [element for element in self._appended if not leads or element.count <= self._applied]
        self._appended = [element for element in self._appended if element not in settled]
        for item in settled:
            item.cancelled = not leads
            item.done.set()

    def _draw(self, bounds_ms: tuple[int, int]) -> int:
        shortest, longest = bounds_ms
        return shortest + self._waits.randrange(longest - shortest)

    def _encode(self) -> bytes:
        retained = self.member.retained
        entries = [[entry.term, entry.data] for entry in retained.log]
        return json.dumps({"term": retained.term, "votedFor": retained.voted_for, "log": entries}).encode()


def _retained(content: bytes | None) -> StoredState:
    if content is None:
        return StoredState()
    retained: dict[str, Any] = json.loads(content)
    return StoredState(retained["term"], retained["votedFor"], tuple(LogEntry(*entry) for entry in retained["log"]))
