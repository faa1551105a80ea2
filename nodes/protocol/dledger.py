"""Requests between controllers: votes, and pushes of the replicated log.

RocketMQ's controllers speak DLedger's own protocol to each other; the codes are DLedger's, headers and bodies are ours.

Mirrors:
    `io.openmessaging.storage.dledger.protocol.*`.
"""

from nodes.protocol.widths import Int32
from nodes.values import frozen


@frozen
class LogEntry:
    """One entry of the log."""

    term: int
    """Of the leader that wrote it."""
    data: str
    """An event, see `nodes.controller.tables.events`; empty: the first entry of a leader."""


@frozen
class VoteRequest:
    """Body of DLEDGER_VOTE (51001)."""

    term: int
    candidate_id: str
    last_index: Int32
    """How many entries the candidate has."""
    last_term: int
    """Of the last of them; 0: there is none."""


@frozen
class VoteResponse:
    """Body of the answer to a vote."""

    term: int
    granted: bool
    has_leader: bool = False
    """Whether the voter follows a leader of this term."""
    not_ready: bool = False
    """Whether the voter will enter the term of the request only when its own round of votes has ended."""


@frozen
class PushRequest:
    """Body of DLEDGER_PUSH (51004); without entries it is a heartbeat."""

    term: int
    leader_id: str
    previous_index: Int32
    """How many entries stand before the first one that is pushed."""
    previous_term: int
    """Of the last of those; 0: there is none."""
    committed: Int32
    """How many entries a majority has."""
    entries: tuple[LogEntry, ...]


@frozen
class PushResponse:
    """Body of the answer to a push."""

    term: int
    success: bool
    matched: Int32
    """How many entries follower and leader share; without success, how many they may share at most."""
