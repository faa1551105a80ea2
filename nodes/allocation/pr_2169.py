"""PR2169: the sticky strategy of a pull request that was never released, with its defects."""

from collections.abc import Sequence
from heapq import heapify, heapreplace

import attrs

from nodes.allocation.strategy import AllocationError, is_member
from nodes.protocol.java import java_compare_key
from nodes.protocol.model import MessageQueue


class NoSuchElementError(AllocationError):
    """The strategy looked for the first of no members.

    Mirrors:
        `java.util.NoSuchElementException`.
    """


@attrs.define
class AllocateSticky2169:
    """The memory of one group, and what it does to it; it is right for one topic whose members only leave.

    Eight queues and the members C0, C1, C2; then C1 leaves; then it returns, and the shares stay uneven::

        C0  Q0 Q3 Q6      C0  Q0 Q3 Q6 Q4      C0  Q0 Q3 Q6 Q4
        C1  Q1 Q4 Q7                           C1  Q2 Q5
        C2  Q2 Q5         C2  Q2 Q5 Q1 Q7      C2  Q1 Q7

    Its defects:

    - It allocates again only when the number of members or of queues has changed. A member that takes another's place
      gets no answer, and the queues of the other have no owner.
    - New members are added only when there are more than before, old ones removed only when there are fewer. When a
      group restarts, the first new member makes it remove all and add none, which is an error. The queues stay listed
      as unassigned and are listed once more by the next call.
    - Shares are ordered once before they are levelled: only the two that were first and last then become even.
    - The memory belongs to the group, not to a topic: a call for the retry topic takes the queues of the other topic
      for gone and for the retry topic's own.
    - A queue is gone when no broker has a queue of its number.
    - The old allocation is to be restored unless the new one is more even. But the copy has the same lists as the
      original, so nothing is ever restored; that is why nothing here compares them.

    It is one broker's memory, without version and without replica.

    Mirrors:
        `org.apache.rocketmq.common.rebalance.AllocateMessageQueueSticky` of pull request #2169.
    """

    _shares: dict[str, list[MessageQueue]] = attrs.field(factory=dict, init=False)
    """member -> its queues."""
    _unassigned: list[MessageQueue] = attrs.field(factory=list, init=False)
    """Empty between calls, except after an error."""

    def allocate(
        self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]
    ) -> list[MessageQueue] | None:
        """The queues of one member, of whatever topic; calls of a group come one after the other.

        Args:
            current_cid: the member that asks.
            mq_all: all queues of one topic, as the member lists them.
            cid_all: all members, as the broker lists them.

        Returns:
            Its queues; empty for a client that is no member; None for a member that the memory does not know.

        Raises:
            AllocationError: an argument is empty.
            NoSuchElementError: the memory knows no member.
        """
        if not is_member(current_cid, mq_all, cid_all):
            return []
        if not self.is_current(mq_all, cid_all):
            self._update_members(cid_all)
            self._update_queues(mq_all)
            self._allocate_queues()
        mine = self._shares.get(current_cid)
        return None if mine is None else list(mine)

    def is_current(self, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> bool:
        """Whether nothing is calculated for as many queues and members as before."""
        return len(cid_all) == len(self._shares) and len(mq_all) == len(self._remembered())

    def _remembered(self) -> list[MessageQueue]:
        return [queue for mine in self._shares.values() for queue in mine]

    def _update_members(self, cid_all: Sequence[str]) -> None:
        if len(cid_all) > len(self._shares):
            for cid in cid_all:
                self._shares.setdefault(cid, [])
        # After new members were added there may be too many: in a larger group that lost members, too.
        if len(cid_all) < len(self._shares):
            self._shares = {cid: mine for cid, mine in self._shares.items() if cid in cid_all}

    def _update_queues(self, mq_all: Sequence[MessageQueue]) -> None:
        remembered = self._remembered()
        if len(mq_all) > len(remembered):
            known = dict.fromkeys(remembered)
            self._unassigned += [queue for queue in mq_all if queue not in known]
        elif len(mq_all) < len(remembered):
            numbers = dict.fromkeys(queue.queue_id for queue in mq_all)
            for queue in remembered:
                if queue.queue_id not in numbers:
                    self._forget(queue)

    def _forget(self, queue: MessageQueue) -> None:
        for mine in self._shares.values():
            if queue in mine:
                mine.remove(queue)

    def _allocate_queues(self) -> None:
        by_size = [(len(mine), java_compare_key(cid), cid) for cid, mine in self._shares.items()]
        if not by_size:
            raise NoSuchElementError("the sticky strategy of PR 2169 knows no member")
        heapify(by_size)
        for queue in self._unassigned:
            size, key, cid = by_size[0]
            self._shares[cid].append(queue)
            heapreplace(by_size, (size + 1, key, cid))
        self._unassigned.clear()
        # They are ordered before the first move only, and that is the defect.
        fewest, maximum = self._shares[min(by_size)[-1]], self._shares[max(by_size)[-1]]
        while len(fewest) < len(maximum) - 1:
            fewest.append(maximum.pop(0))
