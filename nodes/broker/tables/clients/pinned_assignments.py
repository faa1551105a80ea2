"""The assigner: one broker allocates the queues of a group, and remembers how.

An allocation has an epoch, one more than the last. It is made again when the members, the queues or the strategy change
and not before: a member that asks gets its part of the present one. The memory is lost with the process. The next
assigner collects the claims of the members before it allocates, and meanwhile no one has to change anything.
"""

from collections.abc import Iterable, Sequence

import attrs

from nodes.allocation.allocating import Allocate, Shares, defects, owners_of
from nodes.protocol.assigning import AssignmentClaim, StrategyParameters
from nodes.protocol.java import java_sorted
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

_NO_CLAIM = AssignmentClaim()
_DEFECTS_SHOWN = 3


@frozen
class AssignmentQuestion:
    """What a member wants to know, and what the assigner knows about its group and topic."""

    group: str
    topic: str
    client_id: str
    strategy: str
    parameters: StrategyParameters
    """With another strategy or other parameters the queues are allocated again."""
    claim: AssignmentClaim
    mq_all: tuple[MessageQueue, ...]
    """Sorted."""
    client_ids: tuple[str, ...]
    """In any order; one per channel."""


@frozen
class AssignmentAnswer:
    """What the member gets, and what changed because it asked."""

    queues: tuple[MessageQueue, ...] | None
    """None: it keeps what it has; else sorted."""
    epoch: int
    allocated_queues: Shares | None = None
    """The shares of all members, if they were made for this question."""
    heirs: tuple[str, ...] = ()
    """Members that now get queues which this member has just released."""
    problem: str = ""
    """What the strategy did wrong; empty: nothing."""


@attrs.define
class _PinnedGroup:
    """The allocation of one group and topic."""

    collects_until_ms: int | None = None
    """While it collects claims; None: it has allocated."""
    epoch: int = 0
    strategy: str = ""
    parameters: StrategyParameters = StrategyParameters()
    mq_all: tuple[MessageQueue, ...] = ()
    members: tuple[str, ...] = ()
    shares: Shares = attrs.Factory(dict)
    claims: dict[str, AssignmentClaim] = attrs.Factory(dict)
    """Of each member that has asked since this assigner began."""
    holders: dict[MessageQueue, dict[str, None]] = attrs.Factory(dict)
    """Queue -> the members that claim it."""

    def claim(self, client_id: str, claim: AssignmentClaim) -> tuple[MessageQueue, ...]:
        """Replace what a member claims; returns the queues that it has released."""
        before = self.claims.get(client_id, _NO_CLAIM)
        self.claims[client_id] = claim
        for queue in claim.owned:
            self.holders.setdefault(queue, {})[client_id] = None
        owned = dict.fromkeys(claim.owned)
        released = tuple(queue for queue in before.owned if queue not in owned)
        for queue in released:
            self.holders.get(queue, {}).pop(client_id, None)
        return released

    def grant(self, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Count queues that are given to a member as claimed: it may have taken them when it asks again."""
        claim = self.claims.get(client_id)
        if claim is not None:
            self.claim(client_id, attrs.evolve(claim, owned=_listed((*claim.owned, *queues))))

    def forget_departed(self, members: Sequence[str]) -> None:
        """Forget what clients claim that are no members any more."""
        present = dict.fromkeys(members)
        for departed in [cid for cid in self.claims if cid not in present]:
            self.claim(departed, _NO_CLAIM)
            del self.claims[departed]

    def is_held_by_another(self, queue: MessageQueue, client_id: str) -> bool:
        """Whether another member claims a queue that this member does not have yet."""
        holders = self.holders.get(queue, {})
        return bool(holders) and client_id not in holders


class PinnedAssignments:
    """The allocations of all groups that ask this broker as their assigner.

    Args:
        grace_period_ms: how long claims are collected if some member was assigned queues by another assigner.
    """

    def __init__(self, *, grace_period_ms: int) -> None:
        self._grace_period_ms = grace_period_ms
        self._groups: dict[tuple[str, str], _PinnedGroup] = {}

    def ask(self, requested: AssignmentQuestion, allocate_queues: Allocate, *, now_ms: int) -> AssignmentAnswer:
        """Answer a member.

        Args:
            requested: the question; a client that is no member gets no queue.
            allocate_queues: the strategy; what it raises is a problem of the answer, and everybody keeps its queues.
            now_ms: wall clock.
        """
        group = self._groups.setdefault((requested.group, requested.topic), _PinnedGroup())
        members = tuple(java_sorted(dict.fromkeys(requested.client_ids)))
        group.forget_departed(members)
        released = group.claim(requested.client_id, requested.claim) if requested.client_id in members else ()
        self._notice_another_assigner(group, requested.claim, now_ms)
        if group.collects_until_ms is not None and now_ms < group.collects_until_ms:
            return AssignmentAnswer(None, group.epoch)
        allocated_queues, problem = _partitioned(group, requested, members, allocate_queues)
        if not group.shares:
            return AssignmentAnswer(None, group.epoch, problem=problem)
        share = group.shares.get(requested.client_id, ())
        if not requested.claim.revoke_before_assign:
            return AssignmentAnswer(_listed(share), group.epoch, allocated_queues, problem=problem)
        free = _listed(queue for queue in share if not group.is_held_by_another(queue, requested.client_id))
        group.grant(requested.client_id, free)
        return AssignmentAnswer(free, group.epoch, allocated_queues, _heirs(group, requested, released), problem)

    def _notice_another_assigner(self, group: _PinnedGroup, claim: AssignmentClaim, now_ms: int) -> None:
        """Begin to collect claims if somebody else has allocated the queues, and this assigner does not know how."""
        is_first = not group.shares and group.collects_until_ms is None
        if claim.epoch > group.epoch or (is_first and claim.owned):
            if is_first or group.shares:
                group.collects_until_ms = now_ms + self._grace_period_ms
                group.shares = {}
            group.epoch = max(group.epoch, claim.epoch)


def _listed(queues: Iterable[MessageQueue]) -> tuple[MessageQueue, ...]:
    return tuple(sorted(dict.fromkeys(queues)))


def _partitioned(
    group: _PinnedGroup, requested: AssignmentQuestion, members: tuple[str, ...], allocate_queues: Allocate
) -> tuple[Shares | None, str]:
    """Divide again if anything has changed; returns the new shares, and what was wrong with them."""
    now = (members, requested.mq_all, requested.strategy, requested.parameters)
    is_current = (group.members, group.mq_all, group.strategy, group.parameters) == now
    if group.shares and is_current:
        return None, ""
    before = _resolved(group.claims, members) if group.collects_until_ms is not None else group.shares
    try:
        shares = allocate_queues(requested.mq_all, members, before)
    except Exception as error:  # noqa: BLE001 - a strategy of the user's own may raise anything
        return None, f"{requested.strategy}: {type(error).__name__}: {error}"
    found = list(defects(shares, requested.mq_all))
    group.collects_until_ms = None
    group.epoch += 1
    group.members, group.mq_all, group.strategy, group.parameters = now
    group.shares = shares
    more = f"; {len(found) - _DEFECTS_SHOWN} more" if len(found) > _DEFECTS_SHOWN else ""
    return shares, f"{requested.strategy}: {'; '.join(found[:_DEFECTS_SHOWN])}{more}" if found else ""


def _resolved(claims: dict[str, AssignmentClaim], members: Iterable[str]) -> Shares:
    """What the members own; of two claims to a queue that of the newer epoch counts, then that of the smaller id."""
    by_age = sorted(members, key=lambda cid: -claims.get(cid, _NO_CLAIM).epoch)  # stable: members are sorted
    claimed = {cid: claims[cid].owned for cid in by_age if cid in claims}
    owners = owners_of(claimed)
    return {cid: tuple(queue for queue in owned if owners[queue] == cid) for cid, owned in claimed.items()}


def _heirs(group: _PinnedGroup, requested: AssignmentQuestion, released: Iterable[MessageQueue]) -> tuple[str, ...]:
    """The members that get the released queues, which were withheld from them until now."""
    owners = owners_of(group.shares)
    heirs = (owners.get(queue) for queue in released)
    return tuple(dict.fromkeys(cid for cid in heirs if cid is not None and cid != requested.client_id))
