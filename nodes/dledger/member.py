"""One member of a group: votes, terms and the replicated log.

As much of DLedger as callers of a member can see: how long there is no leader, who is refused meanwhile, that a
leader without a majority goes on for some seconds, and which entries survive. Heartbeats are pushes without entries.

Mirrors:
    `io.openmessaging.storage.dledger.DLedgerLeaderElector`, `DLedgerEntryPusher`, `MemberState`.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

from nodes.protocol.dledger import LogEntry, PushRequest, PushResponse, VoteRequest, VoteResponse
from nodes.values import frozen

HEARTBEAT_MS = 2_000
MAX_HEARTBEAT_LEAK = 3
"""Heartbeats that may be missed: by a follower before it asks for votes, by a leader before it gives up."""
SILENCE_MS = HEARTBEAT_MS * MAX_HEARTBEAT_LEAK
VOTE_WAIT_MS = (300, 1_000)
"""Bounds of the random pause between two rounds of votes."""
ROUND_MS = (2_000, 3_000)
"""Bounds of the random time for which a round waits for a majority, or else for the answers of all, the dead included.

So the first round after the death of a leader, in its own term, in which no one can win, takes its full time.
"""
_NEXT_LOOK_MS = 10
"""The pause of RocketMQ's thread, after which a round is repeated while voters are not ready."""


class MemberRole(StrEnum):
    """What a member does."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"


@frozen
class StoredState:
    """What a member must not forget."""

    term: int = 0
    voted_for: str = ""
    """The member that got its vote in this term; empty: none."""
    log: tuple[LogEntry, ...] = ()


LogPosition = tuple[int, int]
"""Term of the last entry of a log, and where the log ends; the greater one is that of the fresher log."""
Outgoing = Sequence[tuple[str, VoteRequest | PushRequest]]
"""What is to be sent: (member, request)."""


class DLedgerMember:
    """A member of a group whose other members are reached by requests.

    Args:
        self_id: of this member.
        peers: ids of all members, this one included.
        retained: from its disk.
        draw_vote_wait_ms: returns a pause between two rounds of votes.
        draw_round_ms: returns how long a round waits for answers.
        now_ms: wall clock.
        position: of the log that an election compares, where that is not this log; None: it is.
    """

    def __init__(
        self,
        self_id: str,
        peers: Sequence[str],
        *,
        retained: StoredState,
        draw_vote_wait_ms: Callable[[], int],
        draw_round_ms: Callable[[], int],
        now_ms: int,
        position: Callable[[], LogPosition] | None = None,
    ) -> None:
        self.self_id = self_id
        self._others = tuple(peer for peer in peers if peer != self_id)
        self._majority = len(peers) // 2 + 1
        self._draw_vote_wait_ms = draw_vote_wait_ms
        self._draw_round_ms = draw_round_ms
        self.role = MemberRole.CANDIDATE
        self.leader_id = ""
        """The member that this one takes for the leader of its term; empty: none."""
        self._term, self._voted_for = retained.term, retained.voted_for
        self._log = list(retained.log)
        self._position = position or self._end_of_log
        self.committed = 0
        """How many entries a majority has."""
        self._next_vote_ms = now_ms
        self._vote_ends_ms: int | None = None
        """When the present round of votes ends; None: there is none."""
        self._known_term = 0
        """Of another candidate that asked during the present round."""
        self._heard_ms = now_ms
        self._votes: dict[str, None] = {}
        self._refusals: dict[str, None] = {}
        self._not_ready: dict[str, None] = {}
        self._raises_term = retained.term == 0
        """Whether the next round of votes is one of the next term: a majority has refused the last."""
        self._next_round_ms = 0
        self._heard_by_majority_ms = 0
        self._heard_followers: dict[str, None] = {}
        self._next_index: dict[str, int] = {}
        self._matched: dict[str, int] = {}

    @property
    def retained(self) -> StoredState:
        """What is to be on the disk before an answer or a request of this member leaves."""
        return StoredState(self._term, self._voted_for, tuple(self._log))

    @property
    def mark(self) -> tuple[object, ...]:
        """Differs whenever `retained` does."""
        return (self._term, self._voted_for, len(self._log), self._log[-1] if self._log else None)

    @property
    def term(self) -> int:
        """The present term."""
        return self._term

    @property
    def log(self) -> Sequence[LogEntry]:
        """All entries, committed or not."""
        return self._log

    # Time

    @property
    def deadline_ms(self) -> int:
        """When `tick` has something to do."""
        if self.role is MemberRole.LEADER:
            return self._next_round_ms
        if self.role is MemberRole.CANDIDATE:
            return self._next_vote_ms if self._vote_ends_ms is None else self._vote_ends_ms
        return self._heard_ms + SILENCE_MS + 1

    def tick(self, now_ms: int) -> Outgoing:
        """Do what is due: ask for votes, send heartbeats, or give up."""
        if now_ms < self.deadline_ms:
            return ()
        if self.role is MemberRole.LEADER:
            return self._begin_round(now_ms)
        if self.role is MemberRole.FOLLOWER:
            self._become_candidate(now_ms)
        if self._vote_ends_ms is not None:
            self._end_votes(now_ms)
            return ()
        return self._ask_for_votes(now_ms)

    # Votes

    def on_vote_request(self, requested: VoteRequest, now_ms: int) -> VoteResponse:
        """Give a vote: once per term, to a candidate whose log is not behind, and not while there is a leader."""
        if requested.term > self._term and self._vote_ends_ms is not None:
            self._known_term = max(self._known_term, requested.term)
            return VoteResponse(self._term, granted=False, not_ready=True)
        if requested.term > self._term:
            self._enter_term(requested.term, now_ms)
        has_leader = bool(self.leader_id)
        is_fresh = (requested.last_term, requested.last_index) >= self._position()
        is_mine = self._voted_for in ("", requested.candidate_id)
        granted = requested.term == self._term and not has_leader and is_fresh and is_mine
        if granted:
            self._voted_for = requested.candidate_id
            self._next_vote_ms = now_ms + self._draw_vote_wait_ms()
        return VoteResponse(self._term, granted, has_leader and not granted)

    def on_vote_response(self, voter: str, vote_response: VoteResponse, now_ms: int) -> Outgoing:
        """Count a vote; with a majority this member leads."""
        if vote_response.not_ready:
            self._not_ready[voter] = None
            return self._count_votes(now_ms)
        if vote_response.term > self._term:
            self._enter_term(vote_response.term, now_ms)
            return ()
        if self.role is not MemberRole.CANDIDATE or vote_response.term != self._term:
            return ()
        if vote_response.has_leader:
            self._end_votes(now_ms)
            self._raises_term = False
            self._next_vote_ms += SILENCE_MS
            return ()
        (self._votes if vote_response.granted else self._refusals)[voter] = None
        return self._count_votes(now_ms)

    def _count_votes(self, now_ms: int) -> Outgoing:
        """Lead, or end the round if it is decided."""
        if self.role is not MemberRole.CANDIDATE or self._vote_ends_ms is None:
            return ()
        if len(self._votes) >= self._majority:
            return self._lead(now_ms)
        answered = len(self._votes) + len(self._refusals) + len(self._not_ready)
        if len(self._votes) + len(self._not_ready) >= self._majority:
            self._vote_ends_ms, self._next_vote_ms = None, now_ms + _NEXT_LOOK_MS
        elif answered > len(self._others):
            self._end_votes(now_ms)
        return ()

    def _end_votes(self, now_ms: int) -> None:
        """The present round has no winner: the next one is of the next term if a majority has answered."""
        self._vote_ends_ms = None
        self._raises_term = len(self._votes) + len(self._refusals) >= self._majority
        self._next_vote_ms = now_ms + self._draw_vote_wait_ms()
        if self._known_term > self._term:
            self._enter_term(self._known_term, now_ms)

    def _ask_for_votes(self, now_ms: int) -> Outgoing:
        # Who reaches no majority, or hears of a leader, asks again in the same term: so who comes back disturbs no one.
        if self._raises_term:
            self._term, self._voted_for = self._term + 1, ""
        self._raises_term, self.leader_id = False, ""
        self._voted_for = self._voted_for or self.self_id
        mine = {self.self_id: None}
        self._votes, self._refusals = (mine, {}) if self._voted_for == self.self_id else ({}, mine)
        self._not_ready = {}
        self._vote_ends_ms = now_ms + self._draw_round_ms()
        if len(self._votes) >= self._majority:
            return self._lead(now_ms)
        last_term, last_index = self._position()
        requested = VoteRequest(self._term, self.self_id, last_index, last_term)
        return [(peer, requested) for peer in self._others]

    def _lead(self, now_ms: int) -> Outgoing:
        self.role, self.leader_id, self._vote_ends_ms = MemberRole.LEADER, self.self_id, None
        self._heard_by_majority_ms = now_ms
        self._next_index = dict.fromkeys(self._others, len(self._log))
        self._matched = dict.fromkeys(self._others, 0)
        self._next_round_ms = now_ms
        return self._begin_round(now_ms)

    def _enter_term(self, term: int, now_ms: int) -> None:
        self._term, self._voted_for = term, ""
        self._become_candidate(now_ms)
        self._next_vote_ms = now_ms + self._draw_vote_wait_ms()

    def _become_candidate(self, now_ms: int) -> None:
        self.role, self.leader_id = MemberRole.CANDIDATE, ""
        self._votes, self._refusals, self._raises_term, self._vote_ends_ms = {}, {}, False, None
        self._next_vote_ms = now_ms

    # The log

    def append(self, data: str) -> tuple[int, Outgoing]:
        """Add an entry as leader.

        Returns:
            How many entries there must be committed for this one to be so, and what is to be sent.
        """
        self._log.append(LogEntry(self._term, data))
        self._commit()
        return len(self._log), [(peer, self._push(peer)) for peer in self._others]

    def on_push_request(self, pushed: PushRequest, now_ms: int) -> PushResponse:
        """Follow the leader of a term: take its entries, and cut what contradicts them."""
        if pushed.term < self._term:
            return PushResponse(self._term, success=False, matched=0)
        if pushed.term > self._term:
            self._enter_term(pushed.term, now_ms)
        self.role, self.leader_id, self._heard_ms = MemberRole.FOLLOWER, pushed.leader_id, now_ms
        self._vote_ends_ms = None
        start = pushed.previous_index
        is_known = 0 <= start <= len(self._log)
        if not is_known or (start and self._log[start - 1].term != pushed.previous_term):
            return PushResponse(self._term, success=False, matched=max(0, min(start - 1, len(self._log))))
        for place, entry in enumerate(pushed.entries, start):
            if place < len(self._log) and self._log[place].term != entry.term:
                del self._log[place:]
            if place == len(self._log):
                self._log.append(entry)
        matched = start + len(pushed.entries)
        self.committed = max(self.committed, min(pushed.committed, matched))
        return PushResponse(self._term, success=True, matched=matched)

    def on_push_response(self, follower: str, push_response: PushResponse, now_ms: int) -> Outgoing:
        """Learn what a follower has; one whose log differs gets earlier entries."""
        if push_response.term > self._term:
            self._enter_term(push_response.term, now_ms)
            return ()
        if self.role is not MemberRole.LEADER or push_response.term != self._term:
            return ()
        self._heard_followers[follower] = None
        if len(self._heard_followers) + 1 >= self._majority:
            self._heard_by_majority_ms = now_ms
        matched = max(0, min(push_response.matched, len(self._log)))
        if not push_response.success:
            self._next_index[follower] = matched
            return [(follower, self._push(follower))]
        self._matched[follower] = max(self._matched[follower], matched)
        self._next_index[follower] = max(self._next_index[follower], matched)
        self._commit()
        return ()

    def _begin_round(self, now_ms: int) -> Outgoing:
        if self._others and now_ms - self._heard_by_majority_ms > SILENCE_MS:
            self._become_candidate(now_ms)
            return ()
        self._heard_followers = {}
        self._next_round_ms = now_ms + HEARTBEAT_MS
        return [(peer, self._push(peer)) for peer in self._others]

    def _push(self, peer: str) -> PushRequest:
        start = self._next_index[peer]
        previous_term = self._log[start - 1].term if start else 0
        return PushRequest(self._term, self.self_id, start, previous_term, self.committed, tuple(self._log[start:]))

    def _commit(self) -> None:
        """Commit what a majority has, once that contains an entry of the own term."""
        ends = sorted((len(self._log), *self._matched.values()), reverse=True)
        end = ends[self._majority - 1]
        if end > self.committed and self._log[end - 1].term == self._term:
            self.committed = end

    def _end_of_log(self) -> LogPosition:
        return (self._log[-1].term if self._log else 0, len(self._log))
